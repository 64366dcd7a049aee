/** The long version of test/firmware-sim/scenarios.test.ts: the built-in scenarios with four seeds each. */
process.env.LOCKGATE_LONG = '1';
await import('../../firmware-sim/scenarios.test.js');

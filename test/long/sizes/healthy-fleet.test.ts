/** A longer version of test/firmware-sim/healthy-fleet.test.ts: up to 30 locks, for three to ten days. */
process.env.LOCKGATE_LONG = '1';
await import('../../firmware-sim/healthy-fleet.test.js');

/** The long version of test/firmware-sim/bugs.test.ts: two locks of each kind, and nine in a generated world. */
process.env.LOCKGATE_LONG = '1';
await import('../../firmware-sim/bugs.test.js');

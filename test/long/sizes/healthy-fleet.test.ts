/** A longer version of test/firmware-sim/healthy-fleet.test.ts: 30 locks, for ten days. */
process.env.LOCKGATE_LONG = '1';
await import('../../firmware-sim/healthy-fleet.test.js');

/** A longer version of test/firmware-sim/fleet-bugs.slow.test.ts: up to 25 locks, for three to seven days. */
process.env.LOCKGATE_LONG = '1';
await import('../../firmware-sim/fleet-bugs.slow.test.js');

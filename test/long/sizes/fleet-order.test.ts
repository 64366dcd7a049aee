/** The long version of test/firmware-sim/fleet-order.test.ts: a thousand locks instead of 200. */
process.env.LOCKGATE_LONG = '1';
await import('../../firmware-sim/fleet-order.test.js');

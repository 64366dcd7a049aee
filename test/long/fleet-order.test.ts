/** The long version of test/firmware-sim/fleet-order.test.ts: a thousand locks whose uplinks arrive repeated, late and reordered. */
process.env.LOCKGATE_LONG = '1';
await import('../firmware-sim/fleet-order.test.js');

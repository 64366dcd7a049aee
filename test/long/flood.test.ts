/**
 * The long form of test/system/flood.test.ts: 1,000 locks at the gateway's highest rate, killed and without power again
 * and again. LOCKGATE_KILLS makes it smaller or larger.
 */
import t from 'tap';
import { testFlood } from '../helpers/durability/flood-test.js';

const kills = Number(process.env.LOCKGATE_KILLS ?? 20);

t.setTimeout(7_200_000);
testFlood(
  t,
  { locks: 1000, heard: 10, kills, lifeMs: 6000 },
  { repeat: 'dist/test/long/flood.test.js', isWhole: true },
);

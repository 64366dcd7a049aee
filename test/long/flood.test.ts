/**
 * The long version of test/system/flood.test.ts: 1,000 locks send at the gateway's highest rate, while the gateway is
 * killed and loses power again and again; no acknowledged ping is lost (quality.md §2). LOCKGATE_KILLS sets the number
 * of kills.
 */
import t from 'tap';
import { testFlood } from '../helpers/durability/flood-test.js';

// Below, `maxFloodMs` is the longest time from a start of the gateway to the next kill.
const kills = Number(process.env.LOCKGATE_KILLS ?? 20);

t.setTimeout(7_200_000);
// `repeat`: the file that the test's output names, with the seed, for running it again.
testFlood(
  t,
  { locks: 1000, locksWithUrl: 10, kills, maxFloodMs: 6000 },
  { repeat: 'dist/test/long/flood.test.js', isLong: true },
);

// The long form of test/gateway/mqtt/uplink-fast-path.test.ts: 50,000 streams. LOCKGATE_SEED and LOCKGATE_STREAMS
// choose others.
import t from 'tap';
import { Minutes } from '../../proto/clock.js';
import { compareFastPath } from '../helpers/mqtt/fast-path-streams.js';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';

const STREAMS = Number(process.env.LOCKGATE_STREAMS ?? 50_000);
/** Each lot with brokers of its own. */
const LOT = 1000;

t.setTimeout(Minutes(30));

t.test('what a lock sends has the same result through the fast path and through the library only', async (t) => {
  const seed = chooseSeed();
  let [uplinks, ended] = [0, 0];
  for (let from = 0; from < STREAMS; from += LOT) {
    const seen = await compareFastPath(t, seed + from, LOT);
    if (seen.faults.length > 0 || seen.left > 0) t.same([seen.faults, seen.left], [[], 0], `LOCKGATE_SEED=${seed}`);
    uplinks += seen.uplinks;
    ended += seen.ended;
    t.comment(`${from + LOT} streams, ${ended} ended, ${uplinks} uplinks`);
  }
  t.ok(uplinks > STREAMS, `${uplinks} uplinks`);
});

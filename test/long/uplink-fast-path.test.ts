// The gateway's fast path for uplinks and the broker library treat the same bytes of a lock alike, in 50,000 random
// streams. The long version of test/gateway/mqtt/uplink-fast-path.test.ts. LOCKGATE_SEED and LOCKGATE_STREAMS set
// another seed and number.
import t from 'tap';
import { Minutes } from '../../proto/clock.js';
import { compareFastPath } from '../helpers/mqtt/fast-path-streams.js';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';

const STREAMS = Number(process.env.LOCKGATE_STREAMS ?? 50_000);
/** Streams that share a pair of brokers. */
const BATCH_STREAMS = 1000;

t.setTimeout(Minutes(30));

t.test('what a lock sends has the same result through the fast path and through the library only', async (t) => {
  const seed = chooseSeed();
  let [uplinks, closedByBroker] = [0, 0];
  for (let from = 0; from < STREAMS; from += BATCH_STREAMS) {
    const result = await compareFastPath(t, seed + from, BATCH_STREAMS);
    // Every connection must be closed at the end: by the broker, because of its bytes, or by the lock.
    if (result.faults.length > 0 || result.openConnections > 0)
      t.same([result.faults, result.openConnections], [[], 0], `LOCKGATE_SEED=${seed}`);
    uplinks += result.uplinks;
    closedByBroker += result.closed;
    t.comment(`${from + BATCH_STREAMS} streams, ${closedByBroker} closed by the broker, ${uplinks} uplinks`);
  }
  t.ok(uplinks > STREAMS, `${uplinks} uplinks`);
});

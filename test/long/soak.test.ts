/**
 * One hour at 1,000 pings a second with 5 % churn (quality.md §2): memory stays what it is after ten minutes, the
 * connections that the gateway counts are the sockets that there are, and the merchant has what the locks were told is
 * safe, each once. LOCKGATE_SOAK_MINUTES makes it shorter, to try it. The quick form is test/system/soak.test.ts.
 */
import t from 'tap';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';
import { heapSlope, runSoak } from '../helpers/soak/soak-run.js';

const seed = chooseSeed();
const minutes = Number(process.env.LOCKGATE_SOAK_MINUTES ?? 60);
/** The heap settles until then: caches fill, and the log's runs reach their size. */
const SETTLED_MINUTE = Math.min(10, minutes / 3);
/** Bytes a minute. */
const MOST_GROWTH = 100_000;

/** What the merchant's count and the gateway's end must say. */
const AS_PROMISED = { missing: 0, neverSent: 0, wrongs: [], complaints: [], exitCode: 0 };

t.setTimeout((minutes + 10) * 60_000);
t.comment(`repeat: LOCKGATE_SEED=${seed} LOCKGATE_SOAK_MINUTES=${minutes} node dist/test/long/soak.test.js`);

t.test('an hour of load with connections that come and go', async (t) => {
  t.setTimeout((minutes + 10) * 60_000);
  const run = await runSoak(t, { seed, locks: 1000, looks: minutes, secondsBetweenLooks: 60, stillSeconds: 10 });
  for (const { connections, sockets } of run.looks) {
    t.equal(sockets, 1000);
    t.equal(connections, sockets, 'connections counted are the sockets that are open');
  }
  t.ok(run.acked > 900 * 60 * minutes, `${run.acked} pings were acknowledged`);
  t.ok(run.tally.connects > 40 * 60 * minutes, `${run.tally.connects} connections were made`);
  const { missing, neverSent, wrongs, complaints, exitCode } = run;
  t.same({ missing, neverSent, wrongs, complaints, exitCode }, AS_PROMISED);
  t.comment(`${run.arrivals} webhooks, ${run.tally.repeats} pings sent again, ${run.tally.late} turns were late`);
  const slope = heapSlope(run.looks, SETTLED_MINUTE);
  t.ok(slope < MOST_GROWTH, `the heap grows by ${(slope / 1e6).toFixed(3)} MB a minute`);
  const [first, last] = [run.looks.at(1), run.looks.at(-1)];
  t.ok((last?.descriptors ?? 0) <= (first?.descriptors ?? 0) + 20, 'descriptors are what they were');
});

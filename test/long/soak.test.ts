/**
 * One hour at 1,000 pings a second with 5 % churn (quality.md §2): memory does not grow after the first ten minutes,
 * the gateway counts as many connections as there are sockets, and the merchant receives each acknowledged ping once.
 * LOCKGATE_SOAK_MINUTES sets another length. Quick version: test/system/soak.slow.test.ts.
 */
import t from 'tap';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';
import { heapSlope, runSoak } from '../helpers/soak/soak-run.js';

const seed = chooseSeed();
const minutes = Number(process.env.LOCKGATE_SOAK_MINUTES ?? 60);
/** Until this minute the heap may grow: caches fill, and the store's newest uplinks, which it holds in memory. */
const SETTLED_MINUTE = Math.min(10, minutes / 3);
const MAX_GROWTH_BYTES_PER_MINUTE = 100_000;
/** Descriptors that come and go in normal work. A leak would grow with each of the many reconnects. */
const MAX_DESCRIPTOR_GROWTH = 20;

/** The expected result: no ping is missing, none was invented, and the gateway stops without a complaint. */
const EXPECTED_RESULT = { missing: 0, neverSent: 0, mistakes: [], errorLines: [], exitCode: 0 };

t.setTimeout((minutes + 10) * 60_000);
t.comment(`repeat: LOCKGATE_SEED=${seed} LOCKGATE_SOAK_MINUTES=${minutes} node dist/test/long/soak.test.js`);

t.test('an hour of load with connections that come and go leaks nothing', async (t) => {
  t.setTimeout((minutes + 10) * 60_000);
  const run = await runSoak(t, {
    seed,
    locks: 1000,
    measurements: minutes,
    secondsBetweenMeasurements: 60,
    stallSeconds: 10,
  });
  for (const { connections, sockets } of run.measurements) {
    t.equal(sockets, 1000);
    t.equal(connections, sockets, 'the gateway counts as many connections as there are open sockets');
  }
  // At least 90 % of 1,000 pings a second, and 80 % of the 50 cuts a second that make a lock reconnect.
  t.ok(run.acked > 900 * 60 * minutes, `${run.acked} pings were acknowledged`);
  t.ok(run.tally.connects > 40 * 60 * minutes, `${run.tally.connects} connections were made`);
  const { missing, neverSent, mistakes, errorLines, exitCode } = run;
  t.same({ missing, neverSent, mistakes, errorLines, exitCode }, EXPECTED_RESULT);
  t.comment(
    `${run.arrivals} webhooks, ${run.tally.repeats} pings sent again, ${run.tally.skippedTurns} turns were late`,
  );
  const slope = heapSlope(run.measurements, SETTLED_MINUTE);
  t.ok(slope < MAX_GROWTH_BYTES_PER_MINUTE, `the heap grows by ${(slope / 1e6).toFixed(3)} MB a minute`);
  const [first, last] = [run.measurements.at(1), run.measurements.at(-1)];
  t.ok((last?.descriptors ?? 0) <= (first?.descriptors ?? 0) + MAX_DESCRIPTOR_GROWTH, 'descriptors did not grow');
});

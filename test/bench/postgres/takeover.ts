/**
 * The bench's row `takeover`: a gateway is killed while locks are connected to two. Its locks try again each half
 * second, all at once, and are served by the other one. How long a lock was without a gateway, from its last
 * acknowledgement until the next, the 99th percentile of each kill; and the slowest lock of the storm of reconnects.
 */
import { type Milliseconds, Seconds } from '../../../proto/clock.js';
import { ChaosRun } from '../../helpers/chaos/chaos-run.js';
import { percentile, roundCount, summarizeFigures } from '../measure.js';
import { type Resources, withResources } from '../resources.js';
import { atMost, type BenchOptions, type BenchRow, withoutPeer } from '../row.js';
import { rowWithoutPostgres } from './postgres.js';

const LOCKS = 2_000;
/** Each lock sends a ping in this time, so 400 a second in all. */
const PING_EVERY = Seconds(5);
/** How long locks ping before the kill, and how long after it: enough for the killed gateway to be back with locks. */
const SPAN_AROUND_KILL = Seconds(25);
/** The first run's seed, by which a gateway is chosen and its restart timed; each further run has the next one. */
const SEED = 1;

/** The row `takeover`. @throws Error if the run lost or doubled something */
export async function benchTakeover({ quick }: BenchOptions): Promise<BenchRow> {
  const row = {
    name: 'takeover',
    title: `a killed gateway’s locks (half of ${LOCKS.toLocaleString('en')}) until another serves them, p99`,
    unit: 'ms',
  };
  const targets = { floor: atMost(10_000, 'ms') };
  const missing = rowWithoutPostgres(row, '', targets);
  if (missing !== null) return missing;
  const runs: (readonly Milliseconds[])[] = [];
  for (let run = 0; run < roundCount(quick); run += 1) runs.push(await withResources((each) => killOne(each, run)));
  const rates = summarizeFigures(runs.map((spans) => percentile(spans, 0.99)));
  return {
    ...row,
    rates,
    against: [withoutPeer(rates.median, row.unit, targets)],
    details: [`the slowest lock of ${runs.length} kills: ${Math.round(Math.max(...runs.flat()))} ms`],
  };
}

/** Kills one of two gateways. Returns how long each of its locks was without a gateway. */
async function killOne(resources: Resources, run: number): Promise<readonly Milliseconds[]> {
  const test = Object.assign(resources, { comment: () => undefined });
  const { broken, servedAgain } = await ChaosRun.run(test, {
    seed: SEED + run,
    gateways: 2,
    locks: LOCKS,
    pingEveryMs: PING_EVERY,
    faultEveryMs: SPAN_AROUND_KILL,
    faults: 1,
    only: ['kill'],
    withStandby: false,
    locksInOwnProcess: true,
    webhookFailureShare: 0,
  });
  if (broken.length > 0) throw new Error(`the run broke promises: ${broken.slice(0, 3).join('; ')}`);
  return servedAgain.map(({ milliseconds }) => milliseconds);
}

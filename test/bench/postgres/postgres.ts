/**
 * The bench's rows `postgres`, `two-gateways` and `arrival-two` (quality.md §1): durable pings a second of one gateway
 * on PostgreSQL, compared with itself on SQLite, and of two gateways on one database, compared with one; and how soon a
 * ping at either of two gateways arrives as a webhook, which one of them sends. Each ping is authenticated, decoded,
 * judged and stored with its event for one webhook URL, in a commit that is on PostgreSQL's disk before the PUBACK. All
 * gateways, the database and the locks share the machine's cores.
 */
import { postgresMissing } from '../../helpers/store/postgres/server.js';
import { startArrivals } from '../load/arrival-times.js';
import { measureAlternating, percentile, roundCount, summarizeFigures } from '../measure.js';
import { withResources } from '../resources.js';
import {
  atLeast,
  atMost,
  type BenchOptions,
  type BenchRow,
  notMeasured,
  ratioTo,
  type Targets,
  withoutPeer,
} from '../row.js';
import { BENCH_LOCKS, roundDurationMs } from '../rows/ingest.js';
import { PINGS_PER_ROUND } from '../rows/webhooks.js';
import { ServeSetup } from '../serve-setup.js';
import { SharedGateways } from './shared-gateways.js';

/** The row `postgres`. */
export async function benchPostgres({ quick, profiles }: BenchOptions): Promise<BenchRow> {
  const row = {
    name: 'postgres',
    title: `durable pings of ${BENCH_LOCKS.toLocaleString('en')} locks on PostgreSQL`,
    unit: 'pings/s',
  };
  const [peer, targets] = ['itself on SQLite', { floor: atLeast(0.7), aim: atLeast(0.9) }];
  const missing = rowWithoutPostgres(row, peer, targets);
  if (missing !== null) return missing;
  return await withResources(async (resources) => {
    const durationMs = roundDurationMs(quick);
    const onPostgres = await SharedGateways.open(resources, { gateways: 1, locks: BENCH_LOCKS, profiles });
    const onSqlite = await ServeSetup.open(resources, { locks: BENCH_LOCKS, urls: 1 });
    const works = [() => onPostgres.floodFor(durationMs), async () => (await onSqlite.floodFor(durationMs)).rate];
    const [rates, peerRates] = (await measureAlternating(works, roundCount(quick))).map(summarizeFigures);
    await onPostgres.stop();
    if (rates === undefined || peerRates === undefined) throw new Error('nothing was measured');
    return {
      ...row,
      rates,
      against: [ratioTo(peer, rates, peerRates, targets)],
      details: [onPostgres.cpuLine],
    };
  });
}

/**
 * The rounds of `two-gateways`. Two gateways and a database share two cores in it, so its ratio differs from round to
 * round by a standard deviation of 12 to 23 %, and a median of five would differ by more than the floor's distance.
 */
const TWO_GATEWAYS_ROUNDS = 31;

/** The row `two-gateways`. */
export async function benchTwoGateways({ quick, profiles }: BenchOptions): Promise<BenchRow> {
  const row = {
    name: 'two-gateways',
    title: `durable pings of ${BENCH_LOCKS.toLocaleString('en')} locks at two gateways on one PostgreSQL`,
    unit: 'pings/s',
  };
  const [peer, targets] = ['one gateway on PostgreSQL', { floor: atLeast(1.2) }];
  const missing = rowWithoutPostgres(row, peer, targets);
  if (missing !== null) return missing;
  return await withResources(async (resources) => {
    const durationMs = roundDurationMs(quick);
    const two = await SharedGateways.open(resources, { gateways: 2, locks: BENCH_LOCKS, profiles });
    const one = await SharedGateways.open(resources, { gateways: 1, locks: BENCH_LOCKS });
    const works = [() => two.floodFor(durationMs), () => one.floodFor(durationMs)];
    const rounds = quick ? roundCount(quick) : TWO_GATEWAYS_ROUNDS;
    const [rates, peerRates] = (await measureAlternating(works, rounds)).map(summarizeFigures);
    await two.stop();
    if (rates === undefined || peerRates === undefined) throw new Error('nothing was measured');
    return {
      ...row,
      rates,
      against: [
        ratioTo(peer, rates, peerRates, targets),
        // Says how two gateways scale where they have cores of their own: here they share what one leaves idle.
        withoutPeer(two.cpuUs / one.cpuUs, '×', {}, 'CPU time of a ping, as a multiple of one gateway’s'),
      ],
      details: [two.cpuLine],
    };
  });
}

/**
 * The row `arrival-two`: from a ping's PUBACK to its webhook's arrival, where one of two idle gateways sends the
 * webhooks of both. The 99th percentile per round, of the gateway whose pings arrive later.
 */
export async function benchArrivalAcross({ quick }: BenchOptions): Promise<BenchRow> {
  const row = {
    name: 'arrival-two',
    title: 'from PUBACK at one gateway to the webhook that another sends, unloaded, p99',
    unit: 'ms',
  };
  const targets = { floor: atMost(50, 'ms') };
  const missing = rowWithoutPostgres(row, '', targets);
  if (missing !== null) return missing;
  return await withResources(async (resources) => {
    const shared = await SharedGateways.open(resources, { gateways: 2, locks: 2 });
    const ports = shared.gateways.map(({ mqttPort }) => mqttPort);
    const measureArrivals = await startArrivals(resources, shared.client, ports);
    const p99s: number[] = [];
    for (let round = 0; round <= roundCount(quick); round++) {
      const ofEach = [];
      for (const gateway of ports.keys())
        ofEach.push(percentile(await measureArrivals(gateway, PINGS_PER_ROUND), 0.99));
      // The first round is the warm-up.
      if (round > 0) p99s.push(Math.max(...ofEach));
    }
    const rates = summarizeFigures(p99s);
    return {
      ...row,
      rates,
      against: [withoutPeer(rates.median, row.unit, targets)],
      details: [],
    };
  });
}

/**
 * A row where PostgreSQL is not installed: it says so, in place of a comparison with this name and floor.
 *
 * @returns null where it is installed
 */
export function rowWithoutPostgres(
  row: Pick<BenchRow, 'name' | 'title' | 'unit'>,
  comparison: string,
  targets: Targets,
): BenchRow | null {
  if (postgresMissing === undefined) return null;
  const rates = { median: Number.NaN, minimum: Number.NaN, maximum: Number.NaN };
  return { ...row, rates, against: [notMeasured(comparison, targets, postgresMissing)], details: [] };
}

/**
 * The bench's rows `growth` and `connections`: how the cost of a ping grows with the number of stored pings and of
 * connected locks (quality.md §1). The compared gateways run at the same time, and are flooded in turn.
 */
import { describeCpuTime } from '../cpu-share.js';
import { largeStores } from '../large-stores.js';
import { type FigureSummary, measureAlternating, roundCount, summarizeFigures } from '../measure.js';
import { withResources } from '../resources.js';
import { atLeast, type BenchOptions, type BenchRow, ratioTo } from '../row.js';
import { type FloodFigures, ServeSetup } from '../serve-setup.js';
import { BENCH_LOCKS, roundDurationMs } from './ingest.js';

const LOCK_COUNTS = [100, 1000, 10_000] as const;

/** The figures of one gateway. */
interface SetupFigures {
  readonly rates: FigureSummary;
  /** The gateway's CPU time per ping in the last round, as text. */
  readonly cpu: string;
}

/** Floods the gateways in turn, as fast as they acknowledge. */
async function floodAll(setups: readonly ServeSetup[], quick: boolean): Promise<SetupFigures[]> {
  const lastFloods = new Map<ServeSetup, FloodFigures>();
  const measurements = setups.map((setup) => async (): Promise<number> => {
    const figures = await setup.floodFor(roundDurationMs(quick));
    lastFloods.set(setup, figures);
    return figures.rate;
  });
  const rounds = await measureAlternating(measurements, roundCount(quick));
  return setups.map((setup, index) => ({
    rates: summarizeFigures(rounds[index] ?? []),
    cpu: describeCpuTime(lastFloods.get(setup)?.gateway ?? null),
  }));
}

/** The row `growth`. */
export function benchGrowth({ quick }: BenchOptions): Promise<BenchRow> {
  return withResources(async (resources) => {
    const { smallerFolder, largerFolder } = await largeStores(quick);
    const setups = [
      await ServeSetup.open(resources, { locks: BENCH_LOCKS, urls: 1 }),
      await ServeSetup.open(resources, { locks: BENCH_LOCKS, urls: 1, data: smallerFolder.data }),
      await ServeSetup.open(resources, { locks: BENCH_LOCKS, urls: 1, data: largerFolder.data }),
    ];
    const [empty, fewer, more] = await floodAll(setups, quick);
    if (empty === undefined || fewer === undefined || more === undefined) throw new Error('nothing was measured');
    for (const setup of setups) await setup.stop();
    const [fewerPings, morePings] = [smallerFolder.pings.toLocaleString('en'), largerFolder.pings.toLocaleString('en')];
    return {
      name: 'growth',
      title: `durable pings with ${morePings} already stored`,
      unit: 'pings/s',
      rates: more.rates,
      against: [
        ratioTo('with an empty store', more.rates, empty.rates, { floor: atLeast(0.8), aim: atLeast(0.95) }),
        ratioTo(`with ${fewerPings} stored`, more.rates, fewer.rates, {}),
      ],
      details: [
        `CPU of the gateway a ping: ${empty.cpu} with an empty store, ${fewer.cpu} with ${fewerPings} pings, ` +
          `${more.cpu} with ${morePings}`,
      ],
    };
  });
}

/** The row `connections`. */
export function benchConnections({ quick }: BenchOptions): Promise<BenchRow> {
  return withResources(async (resources) => {
    const setups: ServeSetup[] = [];
    for (const locks of LOCK_COUNTS) setups.push(await ServeSetup.open(resources, { locks, urls: 1 }));
    const [few, usual, many] = await floodAll(setups, quick);
    if (few === undefined || usual === undefined || many === undefined) throw new Error('nothing was measured');
    const [fewText, usualText, manyText] = LOCK_COUNTS.map((count) => count.toLocaleString('en'));
    return {
      name: 'connections',
      title: `durable pings of ${manyText} locks`,
      unit: 'pings/s',
      rates: many.rates,
      against: [
        ratioTo(`of ${usualText} locks`, many.rates, usual.rates, {}),
        ratioTo(`of ${fewText} locks`, many.rates, few.rates, {}),
      ],
      details: [
        `CPU of the gateway a ping: ${few.cpu} with ${fewText} locks, ${usual.cpu} with ${usualText}, ` +
          `${many.cpu} with ${manyText}`,
      ],
    };
  });
}

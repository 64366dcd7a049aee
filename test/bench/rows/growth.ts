/**
 * The rows `growth` and `connections`: how the cost of a ping grows with the number of stored pings and of connected
 * locks (quality.md §1). The compared gateways run at the same time, and are flooded in turn.
 */
import { describeCpuTime } from '../cpu-share.js';
import { largeStores } from '../large-stores.js';
import { alternate, type Rates, ratesOf, roundsOf } from '../measure.js';
import { withResources } from '../resources.js';
import { atLeast, type BenchOptions, type Row, ratioTo } from '../row.js';
import { type FloodFigures, ServeSetup } from '../serve-setup.js';
import { LOCKS, roundMs } from './ingest.js';

const CONNECTIONS = [100, 1000, 10_000] as const;

interface SetupFigures {
  readonly rates: Rates;
  /** The gateway's CPU time per ping in the last round, as text. */
  readonly cpu: string;
}

/** Floods the setups in turn. */
async function floodAll(setups: readonly ServeSetup[], quick: boolean): Promise<SetupFigures[]> {
  const last = new Map<ServeSetup, FloodFigures>();
  const works = setups.map((setup) => async (): Promise<number> => {
    const figures = await setup.run(roundMs(quick));
    last.set(setup, figures);
    return figures.rate;
  });
  const rounds = await alternate(works, roundsOf(quick));
  return setups.map((setup, index) => ({
    rates: ratesOf(rounds[index] ?? []),
    cpu: describeCpuTime(last.get(setup)?.gateway ?? null),
  }));
}

/** The row `growth`. */
export function benchGrowth({ quick }: BenchOptions): Promise<Row> {
  return withResources(async (resources) => {
    const { smaller, larger } = await largeStores(quick);
    const setups = [
      await ServeSetup.open(resources, { locks: LOCKS, urls: 1 }),
      await ServeSetup.open(resources, { locks: LOCKS, urls: 1, data: smaller.data }),
      await ServeSetup.open(resources, { locks: LOCKS, urls: 1, data: larger.data }),
    ];
    const [empty, fewer, more] = await floodAll(setups, quick);
    if (empty === undefined || fewer === undefined || more === undefined) throw new Error('nothing was measured');
    for (const setup of setups) await setup.stop();
    const [fewerPings, morePings] = [smaller.pings.toLocaleString('en'), larger.pings.toLocaleString('en')];
    return {
      name: 'growth',
      title: `durable pings with ${morePings} already stored`,
      unit: 'pings/s',
      rates: more.rates,
      against: [
        ratioTo('with an empty store', more.rates, empty.rates, atLeast(0.8), atLeast(0.95)),
        ratioTo(`with ${fewerPings} stored`, more.rates, fewer.rates, null, null),
      ],
      details: [
        `CPU of the gateway a ping: ${empty.cpu} with an empty store, ${fewer.cpu} with ${fewerPings} pings, ` +
          `${more.cpu} with ${morePings}`,
      ],
    };
  });
}

/** The row `connections`. */
export function benchConnections({ quick }: BenchOptions): Promise<Row> {
  return withResources(async (resources) => {
    const setups: ServeSetup[] = [];
    for (const locks of CONNECTIONS) setups.push(await ServeSetup.open(resources, { locks, urls: 1 }));
    const [few, usual, many] = await floodAll(setups, quick);
    if (few === undefined || usual === undefined || many === undefined) throw new Error('nothing was measured');
    const [fewText, usualText, manyText] = CONNECTIONS.map((count) => count.toLocaleString('en'));
    return {
      name: 'connections',
      title: `durable pings of ${manyText} locks`,
      unit: 'pings/s',
      rates: many.rates,
      against: [
        ratioTo(`of ${usualText} locks`, many.rates, usual.rates, null, null),
        ratioTo(`of ${fewText} locks`, many.rates, few.rates, null, null),
      ],
      details: [
        `CPU of the gateway a ping: ${few.cpu} with ${fewText} locks, ${usual.cpu} with ${usualText}, ` +
          `${many.cpu} with ${manyText}`,
      ],
    };
  });
}

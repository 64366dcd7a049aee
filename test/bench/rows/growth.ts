/**
 * How the cost of a ping grows (quality.md §1): with what is stored already, and with how many locks are connected. The
 * gateways that are compared stand beside each other, and take turns.
 */
import { cpuText } from '../cpu-share.js';
import { inTurns, type Rates, ratesOf, roundsOf } from '../measure.js';
import { atLeast, type BenchOptions, type Row, ratioTo } from '../row.js';
import { type FloodFigures, ServeSite } from '../serve-site.js';
import { onStage } from '../stage.js';
import { stock } from '../stock.js';
import { LOCKS, roundMs } from './ingest.js';

const CONNECTIONS = [100, 1000, 10_000] as const;

interface Grown {
  readonly rates: Rates;
  /** What a ping took of the gateway, in the last round. */
  readonly cpu: string;
}

/** Floods the sites in turn. */
async function floodAll(sites: readonly ServeSite[], quick: boolean): Promise<Grown[]> {
  const last = new Map<ServeSite, FloodFigures>();
  const works = sites.map((site) => async (): Promise<number> => {
    const figures = await site.run(roundMs(quick));
    last.set(site, figures);
    return figures.rate;
  });
  const rounds = await inTurns(works, roundsOf(quick));
  return sites.map((site, index) => ({
    rates: ratesOf(rounds[index] ?? []),
    cpu: cpuText(last.get(site)?.gateway ?? null),
  }));
}

/** The row `growth`. */
export function benchGrowth({ quick }: BenchOptions): Promise<Row> {
  return onStage(async (stage) => {
    const { some, many } = await stock(quick);
    const sites = [
      await ServeSite.open(stage, { locks: LOCKS, urls: 1 }),
      await ServeSite.open(stage, { locks: LOCKS, urls: 1, data: some.data }),
      await ServeSite.open(stage, { locks: LOCKS, urls: 1, data: many.data }),
    ];
    const [empty, fewer, more] = await floodAll(sites, quick);
    if (empty === undefined || fewer === undefined || more === undefined) throw new Error('nothing was measured');
    for (const site of sites) await site.stop();
    const [fewerPings, morePings] = [some.pings.toLocaleString('en'), many.pings.toLocaleString('en')];
    return {
      name: 'growth',
      title: `durable pings with ${morePings} stored already`,
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
  return onStage(async (stage) => {
    const sites: ServeSite[] = [];
    for (const locks of CONNECTIONS) sites.push(await ServeSite.open(stage, { locks, urls: 1 }));
    const [few, usual, many] = await floodAll(sites, quick);
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

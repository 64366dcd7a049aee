/**
 * A hundred receivers of which ninety misbehave, each in its way (quality.md §2): what the ten good ones notice of it,
 * and what it costs in memory, beside a quiet run in which the ninety answer well.
 */

import { MANNERS, type Manner } from '../load/webhook-host.js';
import { percentile, ratesOf } from '../measure.js';
import { atMost, type BenchOptions, fixedBar, type Row, ratioTo } from '../row.js';
import { ServeSite, startReceivers } from '../serve-site.js';
import { onStage, type Stage } from '../stage.js';

const LOCKS = 20;
/** Each for a hundred URLs. */
const PINGS_A_SECOND = 4;

export interface BadReceiversSize {
  readonly good: number;
  readonly bad: number;
  readonly pings: number;
  readonly rounds: number;
}

/** The 99th percentiles of each round, ms, and how much the process's memory grew over the quiet run's most, bytes. */
export interface BadReceiversFigures {
  readonly quiet: readonly number[];
  readonly bad: readonly number[];
  readonly growth: number;
  /** Webhooks at the good ones, and how many there should be. */
  readonly arrived: number;
  readonly expected: number;
}

/** Runs it: quiet, then bad, in turn. */
export function runBadReceivers(size: BadReceiversSize): Promise<BadReceiversFigures> {
  return onStage((stage) => run(stage, size));
}

async function run(stage: Stage, { good, bad, pings, rounds }: BadReceiversSize): Promise<BadReceiversFigures> {
  const site = await ServeSite.open(stage, { locks: LOCKS, urls: 0 });
  const misbehaving = MANNERS.filter((manner) => manner !== 'good');
  const manners = Array.from({ length: bad }, (_, index) => misbehaving[index % misbehaving.length] as Manner);
  // The bad ones have a process of their own: what they do must not make the good ones late.
  const goodOnes = await startReceivers(stage, good);
  const badOnes = await startReceivers(stage, manners);
  for (const url of [...goodOnes.urls, ...badOnes.urls]) await site.client.post('/webhooks', { url });
  const round = async (how: 'good' | 'bad'): Promise<readonly number[]> => {
    await badOnes.host.answer(how);
    await site.generator.pace(pings, PINGS_A_SECOND);
    await goodOnes.host.answer(`await ${pings * good}`);
    return (await goodOnes.host.answer<{ lags: number[] }>('lags')).lags;
  };
  await round('good');
  const [quietLags, badLags]: [number[], number[]] = [[], []];
  let arrived = 0;
  // All quiet rounds first: what is left of a bad one (retries, circuits) would be in the next.
  for (let each = 0; each < rounds; each++) quietLags.push(percentile(await round('good'), 0.99));
  const before = site.mostMemory();
  for (let each = 0; each < rounds; each++) {
    const lags = await round('bad');
    arrived += lags.length;
    badLags.push(percentile(lags, 0.99));
  }
  const growth = site.mostMemory() - before;
  return { quiet: quietLags, bad: badLags, growth, arrived, expected: rounds * pings * good };
}

/** The good ones' p99 while ninety misbehave, beside the quiet runs'. */
export async function benchBadReceivers({ quick: isQuick }: BenchOptions): Promise<Row> {
  const size = { good: 10, bad: 90, pings: isQuick ? 12 : 24, rounds: isQuick ? 1 : 5 };
  const { quiet, bad, growth } = await runBadReceivers(size);
  const [rates, peer] = [ratesOf(bad), ratesOf(quiet)];
  return {
    name: 'bad-receivers',
    title: 'from a ping to 10 good receivers beside 90 bad ones, p99',
    unit: 'ms',
    rates,
    against: [
      fixedBar(rates.median, 'ms', atMost(1000, 'ms'), null),
      ratioTo('when all are quiet', rates, peer, atMost(2), atMost(1)),
      fixedBar(growth / 1e6, 'MB', atMost(50, 'MB'), null, 'memory beyond the quiet run’s most'),
    ],
    details: [],
  };
}

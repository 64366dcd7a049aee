/**
 * The row `bad-receivers`: of a hundred receivers ninety misbehave in several ways (quality.md §2). Measures the delay
 * of webhooks at the ten good receivers and the gateway's memory, compared with rounds in which all receivers answer
 * well.
 */

import { RECEIVER_BEHAVIOURS, type ReceiverBehaviour } from '../load/webhook-host.js';
import { percentile, ratesOf } from '../measure.js';
import { type Resources, withResources } from '../resources.js';
import { atMost, type BenchOptions, type Row, ratioTo, withoutPeer } from '../row.js';
import { ServeSetup, startReceivers } from '../serve-setup.js';

const LOCKS = 20;
/** Each ping makes a webhook for each of the hundred URLs. */
const PINGS_A_SECOND = 4;

export interface BadReceiversSize {
  readonly good: number;
  readonly bad: number;
  readonly pings: number;
  readonly rounds: number;
}

/** The 99th percentile of the delay in each quiet and each bad round, ms, and the growth of memory, bytes. */
export interface BadReceiversFigures {
  readonly quiet: readonly number[];
  readonly bad: readonly number[];
  /** By how much the maximum memory of the bad rounds exceeds that of the quiet rounds. */
  readonly growth: number;
  /** Webhooks that arrived at the good receivers, and the expected number. */
  readonly arrived: number;
  readonly expected: number;
}

/** Runs all quiet rounds, then all bad rounds. */
export function runBadReceivers(size: BadReceiversSize): Promise<BadReceiversFigures> {
  return withResources((resources) => run(resources, size));
}

async function run(resources: Resources, { good, bad, pings, rounds }: BadReceiversSize): Promise<BadReceiversFigures> {
  const setup = await ServeSetup.open(resources, { locks: LOCKS, urls: 0 });
  const badBehaviours = RECEIVER_BEHAVIOURS.filter((behaviour) => behaviour !== 'good');
  const behaviours = Array.from(
    { length: bad },
    (_, index) => badBehaviours[index % badBehaviours.length] as ReceiverBehaviour,
  );
  // The bad receivers run in a separate process, so that they do not delay the good ones.
  const goodOnes = await startReceivers(resources, good);
  const badOnes = await startReceivers(resources, behaviours);
  for (const url of [...goodOnes.urls, ...badOnes.urls]) await setup.client.post('/webhooks', { url });
  const round = async (how: 'good' | 'bad'): Promise<readonly number[]> => {
    await badOnes.host.answer(how);
    await setup.generator.pace(pings, PINGS_A_SECOND);
    await goodOnes.host.answer(`await ${pings * good}`);
    return (await goodOnes.host.answer<{ lags: number[] }>('lags')).lags;
  };
  await round('good');
  const [quietLags, badLags]: [number[], number[]] = [[], []];
  let arrived = 0;
  // All quiet rounds come first: a bad round leaves retries and open circuits behind.
  for (let each = 0; each < rounds; each++) quietLags.push(percentile(await round('good'), 0.99));
  const before = setup.maxMemoryBytes();
  for (let each = 0; each < rounds; each++) {
    const lags = await round('bad');
    arrived += lags.length;
    badLags.push(percentile(lags, 0.99));
  }
  const growth = setup.maxMemoryBytes() - before;
  return { quiet: quietLags, bad: badLags, growth, arrived, expected: rounds * pings * good };
}

/** The row: the p99 at the good receivers while ninety misbehave, compared with the quiet rounds. */
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
      withoutPeer(rates.median, 'ms', atMost(1000, 'ms'), null),
      ratioTo('when all are quiet', rates, peer, atMost(2), atMost(1)),
      withoutPeer(growth / 1e6, 'MB', atMost(50, 'MB'), null, 'memory beyond the quiet run’s maximum'),
    ],
    details: [],
  };
}

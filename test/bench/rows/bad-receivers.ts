/**
 * The bench's row `bad-receivers`: of a hundred receivers ninety misbehave in several ways (quality.md §2). Measures
 * the delay of webhooks at the ten good receivers and the gateway's memory. Compared with quiet rounds, in which all
 * receivers answer well.
 */

import { RECEIVER_BEHAVIOURS, type ReceiverBehaviour } from '../load/webhook-host.js';
import { percentile, summarizeFigures } from '../measure.js';
import { type Resources, withResources } from '../resources.js';
import { atMost, type BenchOptions, type BenchRow, ratioTo, withoutPeer } from '../row.js';
import { ServeSetup, startReceivers } from '../serve-setup.js';

const LOCKS = 20;
/** Each ping causes a webhook to each of the hundred receivers. */
const PINGS_A_SECOND = 4;

/** The size of a measurement. */
export interface BadReceiversSize {
  /** The numbers of good and of bad receivers. */
  readonly good: number;
  readonly bad: number;
  readonly pings: number;
  readonly rounds: number;
}

/** What was measured. */
export interface BadReceiversFigures {
  /** The 99th percentile of the delay in each quiet round, ms. */
  readonly quiet: readonly number[];
  /** The same in each round in which the bad receivers misbehave, ms. */
  readonly bad: readonly number[];
  /** By how much the gateway's maximum memory of the bad rounds exceeds that of the quiet rounds, bytes. */
  readonly growth: number;
  /** Webhooks that arrived at the good receivers, and the expected number. */
  readonly arrived: number;
  readonly expected: number;
}

/** Runs all quiet rounds, then all bad rounds. */
export function runBadReceivers(size: BadReceiversSize): Promise<BadReceiversFigures> {
  return withResources((resources) => runRounds(resources, size));
}

/** Starts gateway and receivers, and runs the rounds. */
async function runRounds(
  resources: Resources,
  { good, bad, pings, rounds }: BadReceiversSize,
): Promise<BadReceiversFigures> {
  const setup = await ServeSetup.open(resources, { locks: LOCKS, urls: 0 });
  const badBehaviours = RECEIVER_BEHAVIOURS.filter((behaviour) => behaviour !== 'good');
  const behaviours = Array.from(
    { length: bad },
    (_, index) => badBehaviours[index % badBehaviours.length] as ReceiverBehaviour,
  );
  // The bad receivers run in a separate process, so that they do not delay the good ones.
  const goodReceivers = await startReceivers(resources, good);
  const badReceivers = await startReceivers(resources, behaviours);
  for (const url of [...goodReceivers.urls, ...badReceivers.urls]) await setup.client.post('/webhooks', { url });
  /** Returns how long after its ping each webhook arrived at a good receiver, ms. */
  const runRound = async (behaviour: 'good' | 'bad'): Promise<readonly number[]> => {
    await badReceivers.host.ask(behaviour);
    await setup.generator.sendBySchedule(pings, PINGS_A_SECOND);
    await goodReceivers.host.ask(`await ${pings * good}`);
    return (await goodReceivers.host.ask<{ lags: number[] }>('lags')).lags;
  };
  // The warm-up.
  await runRound('good');
  const [quietLags, badLags]: [number[], number[]] = [[], []];
  let arrived = 0;
  // All quiet rounds come first: a bad round leaves retries and open circuits behind.
  for (let round = 0; round < rounds; round++) quietLags.push(percentile(await runRound('good'), 0.99));
  const quietMaxMemoryBytes = setup.maxMemoryBytes();
  for (let round = 0; round < rounds; round++) {
    const lags = await runRound('bad');
    arrived += lags.length;
    badLags.push(percentile(lags, 0.99));
  }
  const growth = setup.maxMemoryBytes() - quietMaxMemoryBytes;
  return { quiet: quietLags, bad: badLags, growth, arrived, expected: rounds * pings * good };
}

/** The row: the p99 at the good receivers while ninety misbehave, compared with the quiet rounds. */
export async function benchBadReceivers({ quick: isQuick }: BenchOptions): Promise<BenchRow> {
  const size = { good: 10, bad: 90, pings: isQuick ? 12 : 24, rounds: isQuick ? 1 : 5 };
  const { quiet, bad, growth } = await runBadReceivers(size);
  const [rates, peerRates] = [summarizeFigures(bad), summarizeFigures(quiet)];
  return {
    name: 'bad-receivers',
    title: 'from a ping to 10 good receivers next to 90 bad ones, p99',
    unit: 'ms',
    rates,
    against: [
      withoutPeer(rates.median, 'ms', { floor: atMost(1000, 'ms') }),
      ratioTo('when all are quiet', rates, peerRates, { floor: atMost(2), aim: atMost(1) }),
      withoutPeer(growth / 1e6, 'MB', { floor: atMost(50, 'MB') }, 'memory beyond the quiet run’s maximum'),
    ],
    details: [],
  };
}

/**
 * A hundred receivers of which ninety misbehave, each in its way (quality.md §2): what the ten good ones notice of it,
 * and what it costs in memory, beside a quiet run in which the ninety answer well.
 */
import { GatewayChild } from '../helpers/gateway-child.js';
import { type Row, ratesOf } from './measure.js';
import { MANNERS, type Manner } from './webhook-host.js';
import { onStage, percentile, type Stage } from './webhooks.js';

const LOCKS = 20;
/** One ping in so many ms, each for a hundred URLs. */
const PING_EVERY_MS = 250;

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
  const gateway = await GatewayChild.start(stage);
  const locks = await stage.locks(gateway, LOCKS);
  const misbehaving = MANNERS.filter((manner) => manner !== 'good');
  const manners = Array.from({ length: bad }, (_, index) => misbehaving[index % misbehaving.length] as Manner);
  // The bad ones have a process of their own: what they do must not make the good ones late.
  const goodOnes = await stage.receivers(Array.from({ length: good }, () => 'good' as const));
  const badOnes = await stage.receivers(manners);
  for (const url of [...goodOnes.urls, ...badOnes.urls]) await gateway.addWebhook(url);
  const round = async (how: 'good' | 'bad'): Promise<readonly number[]> => {
    await badOnes.host.answer(how);
    await locks.answer(`pace ${pings} ${PING_EVERY_MS}`);
    await goodOnes.host.answer(`await ${pings * good}`);
    return (await goodOnes.host.answer<{ lags: number[] }>('lags')).lags;
  };
  await round('good');
  const [quietLags, badLags]: [number[], number[]] = [[], []];
  let arrived = 0;
  // All quiet rounds first: what is left of a bad one (retries, circuits) would be in the next.
  for (let each = 0; each < rounds; each++) quietLags.push(percentile(await round('good'), 0.99));
  const before = gateway.memory().most;
  for (let each = 0; each < rounds; each++) {
    const lags = await round('bad');
    arrived += lags.length;
    badLags.push(percentile(lags, 0.99));
  }
  const growth = gateway.memory().most - before;
  return { quiet: quietLags, bad: badLags, growth, arrived, expected: rounds * pings * good };
}

/** The good ones' p99 while ninety misbehave, beside the quiet runs'. */
export async function benchBadReceivers(): Promise<Row> {
  const { quiet, bad, growth } = await runBadReceivers({ good: 10, bad: 90, pings: 30, rounds: 5 });
  const [rates, peer] = [ratesOf(bad), ratesOf(quiet)];
  return {
    name: `p99 at 10 good receivers beside 90 bad ones (memory +${Math.round(growth / 1e6)} MB)`,
    unit: 'ms',
    rates,
    peer: { name: 'ms when all are quiet', rates: peer },
    ratio: rates.median / peer.median,
    floor: '1,000 ms, 2 ×, +50 MB',
    aim: '1 ×',
  };
}

/**
 * The bench's row `reads`: how long merchants' reads take at 10,000 locks and ten million stored pings, while 1,000
 * pings arrive each second and their webhooks go out; and how long a lock waits for its PUBACK meanwhile, compared with
 * the same load without readers.
 */

import { systemClock } from '../../../proto/clock.js';
import { BENCH_MERCHANT, registerLocks } from '../load/lock-logins.js';
import { measureAlternating, percentile, summarizeFigures } from '../measure.js';
import { type Resources, withResources } from '../resources.js';
import { atMost, type BenchOptions, type BenchRow, ratioTo, withoutPeer } from '../row.js';
import { ServeSetup } from '../serve-setup.js';
import type { HistoryRequest } from './fill-history.js';
import { READ_CALLS, type ReadSubject } from './read-calls.js';
import type { ReadersRequest, ReadFigures } from './readers.js';

/** The size of a measurement. */
export interface ReadsSize {
  readonly locks: number;
  readonly pings: number;
  readonly readers: number;
  /** How long a reader pauses between two calls, ms. */
  readonly pauseMs: number;
  readonly roundSeconds: number;
  readonly rounds: number;
}

/** A call of each reader a second: as many as the default budget of one merchant allows. */
const SIZE: ReadsSize = { locks: 10_000, pings: 10_000_000, readers: 50, pauseMs: 1_000, roundSeconds: 20, rounds: 4 };
const QUICK_SIZE: ReadsSize = { ...SIZE, locks: 1_000, pings: 100_000, roundSeconds: 3, rounds: 1 };
const PINGS_PER_SECOND = 1_000;

/** What was measured. */
export interface ReadsFigures {
  /** The p99 from PUBLISH to PUBACK of each round, ms. */
  readonly quietP99Ms: readonly number[];
  readonly readP99Ms: readonly number[];
  /** The readers' figures of each round. */
  readonly reads: readonly ReadFigures[];
}

/** The row `reads`. */
export function benchReads({ quick, profiles }: BenchOptions): Promise<BenchRow> {
  return withResources(async (resources) => {
    const size = quick ? QUICK_SIZE : SIZE;
    const { data, subject } = await fillStore(resources, size);
    return rowOf(size, await measureReads(resources, { data, subject, size, profiles }));
  });
}

async function fillStore(
  resources: Resources,
  { locks, pings }: ReadsSize,
): Promise<{ readonly data: string; readonly subject: ReadSubject }> {
  const data = resources.makeFolder();
  await registerLocks(data, locks);
  const request: HistoryRequest = { data, locks, pings, endMs: systemClock.now() };
  const startedAtMs = performance.now();
  const subject = await resources.startScript('reads/fill-history.js', request).readAnswer<ReadSubject>();
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(0);
  console.error(`  stored ${pings.toLocaleString('en')} pings of ${locks.toLocaleString('en')} locks in ${seconds} s`);
  return { data, subject };
}

/** Measures rounds with and without readers in turn, on a filled store. */
export async function measureReads(
  resources: Resources,
  terms: {
    readonly data: string;
    readonly subject: ReadSubject;
    readonly size: ReadsSize;
    readonly profiles: string | null;
  },
): Promise<ReadsFigures> {
  const { data, subject, size, profiles } = terms;
  // Without a limit on requests: the readers share a merchant, and make about as many as its budget allows.
  const args = ['--merchant-requests', '0'];
  const setup = await ServeSetup.open(resources, { locks: size.locks, urls: 1, data, args, profiles });
  const { key } = await setup.client.post<{ key: string }>('/keys', { name: 'readers', merchant: BENCH_MERCHANT });
  const { readers: count, pauseMs } = size;
  const request: ReadersRequest = { port: setup.httpPort, key, readers: count, pauseMs, subject };
  const readers = resources.startScript('reads/readers.js', request);
  await readers.readAnswer();
  const sendPings = async (): Promise<number> =>
    (await setup.sendBySchedule(PINGS_PER_SECOND * size.roundSeconds, PINGS_PER_SECOND)).load.p99_ms;
  const reads: ReadFigures[] = [];
  const sendWhileReading = async (): Promise<number> => {
    await readers.ask('start');
    const p99Ms = await sendPings();
    reads.push(await readers.ask<ReadFigures>('end'));
    return p99Ms;
  };
  const [quietP99Ms = [], readP99Ms = []] = await measureAlternating([sendPings, sendWhileReading], size.rounds);
  await setup.stop();
  // The first round is the warm-up.
  return { quietP99Ms, readP99Ms, reads: reads.slice(1) };
}

/** The times of one call in all rounds, from the request to the end of the answer. */
export interface CallFigures {
  readonly name: string;
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

export function callFigures(reads: readonly ReadFigures[]): CallFigures[] {
  return READ_CALLS.map(({ name }) => {
    const times = reads.flatMap(({ times_ms }) => times_ms[name] ?? []);
    const [p50Ms, p99Ms, maxMs] = [percentile(times, 0.5), percentile(times, 0.99), percentile(times, 1)];
    return { name, count: times.length, p50Ms, p99Ms, maxMs };
  });
}

function rowOf(size: ReadsSize, { quietP99Ms, readP99Ms, reads }: ReadsFigures): BenchRow {
  const calls = callFigures(reads);
  const worst = calls.reduce((max, figures) => (figures.p99Ms > max.p99Ms ? figures : max));
  const rates = summarizeFigures(calls.map(({ p99Ms }) => p99Ms));
  const [ackRates, quietRates] = [summarizeFigures(readP99Ms), summarizeFigures(quietP99Ms)];
  const [requests, ms] = [calls.reduce((sum, { count }) => sum + count, 0), reads.reduce((sum, { ms }) => sum + ms, 0)];
  const refused = reads.flatMap(({ refused }) => Object.entries(refused).map(([name, count]) => `${name} × ${count}`));
  const pubacks = ratioTo('PUBACKs, p99, compared with no readers', ackRates, quietRates, { floor: atMost(2) });
  return {
    name: 'reads',
    title: `p99 of each read of ${size.readers} readers, ${PINGS_PER_SECOND.toLocaleString('en')} pings/s arriving`,
    unit: 'ms',
    rates,
    against: [withoutPeer(worst.p99Ms, 'ms', { floor: atMost(100, 'ms') }, `the slowest read: ${worst.name}`), pubacks],
    details: [
      `${Math.round(requests / (ms / 1000)).toLocaleString('en')} reads a second of ` +
        `${size.locks.toLocaleString('en')} locks and ${size.pings.toLocaleString('en')} stored pings; ` +
        `each reader pauses ${size.pauseMs} ms after a call`,
      `PUBACK, p99: ${ackRates.median.toFixed(1)} ms with readers, ${quietRates.median.toFixed(1)} ms without`,
      ...calls.map(({ name, count, p50Ms, p99Ms, maxMs }) => {
        return `${name}: p50 ${p50Ms.toFixed(1)}, p99 ${p99Ms.toFixed(1)}, max ${maxMs.toFixed(0)} ms of ${count}`;
      }),
      ...(refused.length === 0 ? [] : [`not answered with 200: ${refused.join(', ')}`]),
    ],
  };
}

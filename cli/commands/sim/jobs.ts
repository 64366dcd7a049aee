/**
 * A virtual run in several threads (`sim run --jobs`), each with a share of the locks. The bytes of the trace are those
 * of a run in one thread.
 */
import { Worker } from 'node:worker_threads';
import { ChunkLength } from '../../../firmware-sim/fleet/chunk-length.js';
import { type LockRange, lockRanges, type ShareChunk, SharedTrace } from '../../../firmware-sim/fleet/trace-share.js';
import type { VirtualTraceOptions } from '../../../firmware-sim/fleet/virtual-trace.js';
import { Days } from '../../../proto/clock.js';
import type { TraceLock } from '../../../proto/trace/trace.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { SimFlags } from './flags.js';

/** What a thread is given when it starts. */
export interface JobData {
  readonly flags: SimFlags;
  readonly startMs: number;
  readonly range: LockRange;
  /** Whether the run writes a trace; otherwise it only counts. */
  readonly isWritten: boolean;
}

/** Asks a thread for the next chunk of the trace, up to this time (ms since the epoch). */
export interface JobRequest {
  readonly untilMs: number;
}

/** What a thread reports. */
export type JobAnswer =
  /** How many locks it has simulated to the end, and their connections and uplinks. */
  | { readonly type: 'count'; readonly locks: number; readonly connections: number; readonly uplinks: number }
  /** The entries of its locks in the header of the trace. */
  | { readonly type: 'locks'; readonly locks: ReadonlyMap<Mac, TraceLock> }
  | { readonly type: 'chunk'; readonly chunk: ShareChunk };

/** What a run has made so far. */
export interface JobCounts {
  readonly connections: number;
  readonly uplinks: number;
}

/** The run of all threads. */
export class JobsRun {
  /** How many locks have been simulated to the end; only without a trace. */
  finishedLocks = 0;
  /** How far the trace is written, ms since the epoch. */
  nowMs: number;
  counts: JobCounts = { connections: 0, uplinks: 0 };
  readonly #options: VirtualTraceOptions;
  readonly #data: readonly JobData[];

  constructor(flags: SimFlags, options: VirtualTraceOptions, isWritten: boolean) {
    const { startMs, locks } = options;
    // A thread takes only plain values.
    const plainFlags = JSON.parse(JSON.stringify(flags)) as SimFlags;
    this.#options = options;
    this.nowMs = startMs;
    this.#data = lockRanges(locks, flags.jobs ?? 1).map((range) => ({ flags: plainFlags, startMs, range, isWritten }));
  }

  /**
   * Runs to the end, or until `signal` fires.
   *
   * @param write takes whole lines, as bytes that it must not keep; null if the caller needs only the counts
   */
  async run(write: ((lines: Uint8Array) => void) | null, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const jobs = this.#data.map((data) => new Job(data));
    const interrupt = (): void => {
      for (const job of jobs) job.end();
    };
    signal.addEventListener('abort', interrupt, { once: true });
    try {
      if (write === null) await this.#count(jobs);
      else await this.#writeTrace(jobs, write, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      signal.removeEventListener('abort', interrupt);
      for (const job of jobs) job.end();
    }
  }

  async #count(jobs: readonly Job[]): Promise<void> {
    const latest = jobs.map(() => ({ locks: 0, connections: 0, uplinks: 0 }));
    const counted = jobs.map(async (job, index) => {
      const { range } = job.data;
      for (let locks = 0; locks < range.end - range.first; ) {
        const answer = await job.next('count');
        locks = answer.locks;
        latest[index] = answer;
        this.finishedLocks = sumOf(latest, ({ locks }) => locks);
        this.counts = countsOf(latest);
      }
    });
    await Promise.all(counted);
    this.nowMs = this.#endMs;
  }

  async #writeTrace(jobs: readonly Job[], write: (lines: Uint8Array) => void, signal: AbortSignal): Promise<void> {
    const { locks, note, startMs } = this.#options;
    const trace = new SharedTrace(locks, write);
    const headerLocks = await Promise.all(jobs.map((job) => job.next('locks')));
    trace.start(note, startMs, new Map(headerLocks.flatMap((answer) => [...answer.locks])));
    const length = new ChunkLength(locks);
    let fromMs = startMs;
    let untilMs = this.#ask(jobs, fromMs, length);
    while (fromMs < this.#endMs && !signal.aborted) {
      const chunks = (await Promise.all(jobs.map((job) => job.next('chunk')))).map(({ chunk }) => chunk);
      length.fit(
        untilMs - fromMs,
        sumOf(chunks, ({ lines }) => lines.length),
      );
      fromMs = untilMs;
      // The threads make the next chunk while this one is put in order.
      if (fromMs < this.#endMs) untilMs = this.#ask(jobs, fromMs, length);
      trace.write(chunks);
      this.nowMs = fromMs;
      this.counts = countsOf(chunks);
    }
    if (this.nowMs >= this.#endMs) trace.end(this.#endMs);
  }

  /** Asks all threads for the chunk from `fromMs` on. Returns when it ends. */
  #ask(jobs: readonly Job[], fromMs: number, length: ChunkLength): number {
    const untilMs = Math.min(this.#endMs, fromMs + length.ms);
    for (const job of jobs) job.ask({ untilMs });
    return untilMs;
  }

  get #endMs(): number {
    return this.#options.startMs + Math.round(Days(this.#options.days));
  }
}

/** One thread, and its answers that nobody has taken yet. */
class Job {
  readonly data: JobData;
  readonly #thread: Worker;
  readonly #answers: JobAnswer[] = [];
  #waiting: { readonly resolve: (answer: JobAnswer) => void; readonly reject: (error: Error) => void } | undefined;
  #error: Error | undefined;

  constructor(data: JobData) {
    this.data = data;
    this.#thread = new Worker(new URL('./job-thread.js', import.meta.url), { workerData: data });
    this.#thread.on('message', (answer: JobAnswer) => {
      if (this.#waiting === undefined) this.#answers.push(answer);
      else this.#waiting.resolve(answer);
      this.#waiting = undefined;
    });
    this.#thread.on('error', (error: Error) => this.#fail(error));
    this.#thread.on('exit', () => this.#fail(new Error('a thread of the simulation ended')));
  }

  ask(request: JobRequest): void {
    this.#thread.postMessage(request);
  }

  /** The next answer, which must have this type. Must not be called again before it has resolved. */
  async next<Type extends JobAnswer['type']>(type: Type): Promise<Extract<JobAnswer, { type: Type }>> {
    const answer = this.#answers.shift() ?? (await this.#wait());
    if (answer.type !== type) throw new Error(`a thread of the simulation answered ${answer.type} instead of ${type}`);
    return answer as Extract<JobAnswer, { type: Type }>;
  }

  end(): void {
    void this.#thread.terminate();
  }

  #wait(): Promise<JobAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#error !== undefined) reject(this.#error);
      else this.#waiting = { resolve, reject };
    });
  }

  #fail(error: Error): void {
    this.#error ??= error;
    this.#waiting?.reject(this.#error);
    this.#waiting = undefined;
  }
}

function countsOf(items: readonly JobCounts[]): JobCounts {
  return {
    connections: sumOf(items, ({ connections }) => connections),
    uplinks: sumOf(items, ({ uplinks }) => uplinks),
  };
}

function sumOf<Item>(items: readonly Item[], numberOf: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + numberOf(item), 0);
}

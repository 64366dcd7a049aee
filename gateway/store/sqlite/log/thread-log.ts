/** The log's writer in a thread of its own, as the store sees it: requests go there, answers come back in order. */
import { Worker } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { type Milliseconds, monotonicMs, Seconds, systemClock, type Timer } from '../../../../proto/clock.js';
import { type MerchantOutcome, type MerchantWrite, rowsOf } from '../../contract/merchant-write.js';
import type { AgedPiece, AgingPiece } from '../../contract/store.js';
import type { BatchedWrite } from './batched-write.js';
import type { LogBackend } from './log-backend.js';
import type { LogAnswer, LogDone, LogError, LogRequest, LogThreadData, LogWrite } from './log-thread-message.js';
import type { UplinkMemtable } from './memtable/uplink-memtable.js';
import type { PackedCommit } from './packed-commit.js';
import { loadMemtable } from './uplink-writer.js';

/**
 * While commits of uplinks follow each other closely, what is written beside them waits so long for the next, to share
 * its fsync instead of standing in its way.
 */
const BATCHED_WITHIN: Milliseconds = 20;

/**
 * Rows of merchants' writes from which on what else waits is left for a later transaction. One list of users may have
 * more: it is whole or not there.
 */
const MERCHANT_ROWS_TOGETHER = 200;
/**
 * How long merchants' writes wait after such a list while pings come in: a transaction with a thousand users takes some
 * 25 ms, and the pings of one in four or five wait for it, not those of all.
 */
const AFTER_LONG_LIST: Milliseconds = 100;
/** Pings come in where the last ones are no older. */
const PINGS_WITHIN: Milliseconds = Seconds(1);

interface Pending {
  resolve(done: LogDone): void;
  reject(error: Error): void;
}

interface Waiting<Write extends LogWrite = LogWrite> {
  readonly write: Write;
  readonly asked: Pending;
}

const NOTHING: readonly Waiting<MerchantWrite>[] = [];

export class ThreadLog implements LogBackend {
  readonly memtable: UplinkMemtable;
  readonly #thread: Worker;
  /** What has no outcome yet and was sent, oldest first. Whoever writes has limits of its own for what may wait. */
  readonly #pending: Pending[] = [];
  /** What waits for the next commit of uplinks, and who waits for it. */
  #batched: Waiting<BatchedWrite>[] = [];
  /** What merchants write and has not set out. A part of it goes at a time, the next when that is on the disk. */
  readonly #merchantWrites: Waiting<MerchantWrite>[] = [];
  /** Merchants' writes that are under way. */
  #merchantWritesSent = 0;
  #isListLong = false;
  #pause: Timer | undefined;
  #flushTimer: Timer | undefined;
  #appendedAtMs = Number.NEGATIVE_INFINITY;
  readonly #exited: Promise<void>;
  #broken: Error | undefined;

  private constructor(data: LogThreadData, memtable: UplinkMemtable) {
    this.memtable = memtable;
    this.#thread = new Worker(new URL('./log-thread.js', import.meta.url), { workerData: data });
    this.#thread.on('message', (answer: LogAnswer) => this.#answered(answer));
    this.#thread.on('error', (error) => this.#break(error));
    this.#exited = new Promise((resolve) => {
      this.#thread.on('exit', () => {
        this.#break(new Error('it ended'));
        resolve();
      });
    });
  }

  /**
   * Starts the thread on a store's file, whose tables are there. `reader` is a connection to it.
   *
   * @throws what opening it throws there
   */
  static async open(data: LogThreadData, reader: Database): Promise<ThreadLog> {
    const log = new ThreadLog(data, loadMemtable(reader));
    try {
      await new Promise<LogDone>((resolve, reject) => log.#pending.push({ resolve, reject }));
    } catch (error) {
      await log.#thread.terminate();
      throw error;
    }
    return log;
  }

  async append(commit: PackedCommit): Promise<void> {
    this.#appendedAtMs = monotonicMs();
    await new Promise<LogDone>((resolve, reject) => {
      this.#flush([{ write: { type: 'append', commit }, asked: { resolve, reject } }], [commit.uplinks]);
    });
  }

  async writeBatched(write: BatchedWrite): Promise<void> {
    await new Promise<LogDone>((resolve, reject) => {
      this.#batched.push({ write, asked: { resolve, reject } });
      // A lock waits for its CONNACK until its SIM is activated; for the rest nobody waits.
      if (write.type === 'sims') this.#flush();
      else this.#flushSoon();
    });
  }

  async writeForMerchant(write: MerchantWrite): Promise<MerchantOutcome> {
    const { merchant } = await new Promise<LogDone>((resolve, reject) => {
      this.#merchantWrites.push({ write, asked: { resolve, reject } });
      if (this.#maySendMerchantWrites) this.#flushSoon();
    });
    return merchant ?? {};
  }

  /** With the next commit of uplinks, where one is likely to follow; else at once. */
  #flushSoon(): void {
    if (monotonicMs() - this.#appendedAtMs > BATCHED_WITHIN) this.#flush();
    else this.#flushTimer ??= systemClock.after(BATCHED_WITHIN, () => this.#flush());
  }

  /** Those of merchants' writes that go now. */
  #nextMerchantWrites(): readonly Waiting<MerchantWrite>[] {
    if (!this.#maySendMerchantWrites || this.#merchantWrites.length === 0) return NOTHING;
    let [count, rows] = [0, 0];
    for (const { write } of this.#merchantWrites) {
      if (count > 0 && rows + rowsOf(write) > MERCHANT_ROWS_TOGETHER) break;
      rows += rowsOf(write);
      count += 1;
    }
    this.#merchantWritesSent = count;
    this.#isListLong = rows > MERCHANT_ROWS_TOGETHER;
    return this.#merchantWrites.splice(0, count).map(({ write, asked }) => {
      return { write, asked: { resolve: this.#countedBack(asked.resolve), reject: this.#countedBack(asked.reject) } };
    });
  }

  get #maySendMerchantWrites(): boolean {
    return this.#merchantWritesSent === 0 && this.#pause === undefined;
  }

  #afterMerchantWrites(): void {
    const goOn = (): void => {
      this.#pause = undefined;
      if (this.#merchantWrites.length > 0) this.#flushSoon();
    };
    const arePingsComing = monotonicMs() - this.#appendedAtMs < PINGS_WITHIN;
    if (this.#isListLong && arePingsComing) this.#pause = systemClock.after(AFTER_LONG_LIST, goOn);
    else goOn();
  }

  /** Settles a merchant's write, and sends the next ones after the last of those that went with it. */
  #countedBack<Value>(settle: (value: Value) => void): (value: Value) => void {
    return (value) => {
      this.#merchantWritesSent -= 1;
      settle(value);
      if (this.#merchantWritesSent === 0) this.#afterMerchantWrites();
    };
  }

  async flushIndexes(): Promise<void> {
    await this.#ask({ type: 'settle' });
  }

  async deleteOld(piece: AgingPiece): Promise<AgedPiece> {
    const { aged } = await this.#ask({ type: 'age', piece });
    return aged as AgedPiece;
  }

  async checkpointsIdle(): Promise<void> {
    await this.#ask({ type: 'rest' });
  }

  async close(): Promise<void> {
    // Nothing waits for its end: whoever closes has waited for all writes.
    this.#pause?.cancel();
    await this.#ask({ type: 'close' });
    await this.#exited;
  }

  /** Sends what rides, and what it rides with. */
  #flush(more: readonly Waiting[] = [], given: readonly ArrayBuffer[] = []): void {
    this.#flushTimer?.cancel();
    this.#flushTimer = undefined;
    const all = [...this.#batched, ...this.#nextMerchantWrites(), ...more];
    this.#batched = [];
    if (all.length === 0) return;
    const asked = all.map((each) => each.asked);
    this.#send({ type: 'write', writes: all.map(({ write }) => write) }, asked, given);
  }

  #ask(request: LogRequest): Promise<LogDone> {
    this.#flush();
    return new Promise((resolve, reject) => this.#send(request, [{ resolve, reject }]));
  }

  #send(request: LogRequest, asked: readonly Pending[], given: readonly ArrayBuffer[] = []): void {
    if (this.#broken !== undefined) {
      for (const { reject } of asked) reject(this.#broken);
      return;
    }
    this.#thread.postMessage(request, given);
    this.#pending.push(...asked);
  }

  #answered({ outcomes, mark }: LogAnswer): void {
    for (const outcome of outcomes) {
      if (outcome.error !== undefined || outcome.uplinks === undefined) continue;
      this.memtable.addPacked(new Float64Array(outcome.uplinks));
    }
    if (mark !== undefined) this.memtable.follow(mark);
    for (const outcome of outcomes) {
      const asked = this.#pending.shift();
      if (outcome.error === undefined) asked?.resolve(outcome);
      else asked?.reject(thrown(outcome.error));
    }
  }

  /** A thread that ends by itself leaves nobody who knows what is on the disk: for the store, an I/O error. */
  #break(cause: Error): void {
    this.#broken ??= Object.assign(new Error(`the thread that writes it failed: ${cause.message}`), { code: 'EIO' });
    for (const { reject } of this.#pending.splice(0)) reject(this.#broken);
  }
}

function thrown({ code, message }: LogError): Error {
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}

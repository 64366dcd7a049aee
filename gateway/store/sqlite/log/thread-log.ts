/** The log written by a thread of its own: sends requests to it, and gets the answers in order. */
import { Worker } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { type Milliseconds, monotonicMs, Seconds, systemClock, type Timer } from '../../../../proto/clock.js';
import { type MerchantOutcome, type MerchantWrite, rowsOf } from '../../contract/merchants/merchant-write.js';
import type { AgedPiece, AgingPiece } from '../../contract/store.js';
import type { BatchedWrite } from './batched-write.js';
import type { LogBackend } from './log-backend.js';
import type { LogAnswer, LogDone, LogError, LogRequest, LogThreadData, LogWrite } from './log-thread-message.js';
import type { UplinkMemtable } from './memtable/uplink-memtable.js';
import type { PackedCommit } from './packed-commit.js';
import { loadMemtable } from './uplink-writer.js';

/**
 * How long a batched write waits for the next commit of uplinks, to share its fsync instead of delaying it. It waits
 * only while commits follow each other as closely.
 */
const BATCHED_WITHIN: Milliseconds = 20;

/**
 * Rows of merchants' writes in one transaction; the others wait for the next. One list of users may have more, since it
 * is added whole or not at all.
 */
const MERCHANT_ROWS_TOGETHER = 200;
/**
 * How long merchants' writes pause after such a list while pings come in. A transaction with a thousand users takes
 * some 25 ms; so one in four or five pings waits for it, not each.
 */
const AFTER_LONG_LIST: Milliseconds = 100;
/** Pings are coming in if the last commit is no older than this. */
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
  /** Requests that were sent and not answered, oldest first. Those who write limit how many. */
  readonly #pending: Pending[] = [];
  /** Writes that wait for the next commit of uplinks. */
  #batched: Waiting<BatchedWrite>[] = [];
  /** Merchants' writes that were not sent. Some are sent at a time, the next when those are on the disk. */
  readonly #merchantWrites: Waiting<MerchantWrite>[] = [];
  /** How many of them were sent and not answered. */
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
        this.#break(new Error('it ended by itself'));
        resolve();
      });
    });
  }

  /**
   * Starts the thread on a store's file, whose tables exist. `reader` is a connection to it.
   *
   * @throws what opening the file in the thread throws
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
      // A lock's CONNACK waits for the activation of its SIM; nobody waits for the others.
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

  /** Sends with the next commit of uplinks where one is likely to follow, else at once. */
  #flushSoon(): void {
    if (monotonicMs() - this.#appendedAtMs > BATCHED_WITHIN) this.#flush();
    else this.#flushTimer ??= systemClock.after(BATCHED_WITHIN, () => this.#flush());
  }

  /** The merchants' writes that may be sent now. */
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
    // No write is waiting: the store has waited for all of them before it closes.
    this.#pause?.cancel();
    await this.#ask({ type: 'close' });
    await this.#exited;
  }

  /** Sends everything that waits, in one request with `more`. */
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

  /** If the thread ends by itself, nobody knows what is on the disk: for the store, an I/O error. */
  #break(cause: Error): void {
    this.#broken ??= Object.assign(new Error(`the thread that writes it failed: ${cause.message}`), { code: 'EIO' });
    for (const { reject } of this.#pending.splice(0)) reject(this.#broken);
  }
}

function thrown({ code, message }: LogError): Error {
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}

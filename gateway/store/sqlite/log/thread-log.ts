/**
 * The log backend that writes in the log thread (log-thread.ts). Decides when batched writes and merchants' writes are
 * sent, and updates the event loop's copy of the memtable from the thread's answers.
 */
import { Worker } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { type Milliseconds, monotonicMs, Seconds, systemClock, type Timer } from '../../../../proto/clock.js';
import type { AgingChunk, AgingResult } from '../../contract/deletion.js';
import { ALL_STORED, type CommitResult } from '../../contract/log/commit-result.js';
import { type MerchantOutcome, type MerchantWrite, writeCost } from '../../contract/merchants/merchant-write.js';
import type { PackedCommit } from '../../log/packed-commit.js';
import type { BatchedWrite } from './batched-write.js';
import type { LogBackend } from './log-backend.js';
import type { LogAnswer, LogDone, LogError, LogRequest, LogThreadData, LogWrite } from './log-thread-message.js';
import type { UplinkMemtable } from './memtable/uplink-memtable.js';
import { RecentUplinks } from './recent-uplinks.js';
import { loadMemtable } from './uplink-writer.js';

/**
 * How long a batched write (batched-write.ts) waits for the next commit of uplinks, to share its fsync. If no commit
 * was sent within this time before it, a batched write is sent at once.
 */
const BATCH_WAIT: Milliseconds = 20;

/**
 * Maximum number of rows of merchants' writes in one transaction; further writes wait for the next. One list of users
 * may be longer, since it is added completely or not at all.
 */
const MAX_MERCHANT_ROWS_PER_TRANSACTION = 200;
/**
 * How long merchants' writes pause after such a long list while pings arrive. A transaction with a thousand users takes
 * some 25 ms, so with this pause such transactions delay only one in four or five pings.
 */
const LONG_LIST_PAUSE: Milliseconds = 100;
/** Pings count as arriving if the last commit is no older than this. */
const PING_ACTIVITY_WINDOW: Milliseconds = Seconds(1);

/** The callbacks of a promise that waits for the thread's answer. */
interface Caller {
  resolve(done: LogDone): void;
  reject(error: Error): void;
}

/** A write that was not sent to the thread yet. */
interface WaitingWrite<Write extends LogWrite = LogWrite> {
  readonly write: Write;
  readonly caller: Caller;
}

const NO_WRITES: readonly WaitingWrite<MerchantWrite>[] = [];

export class ThreadLog implements LogBackend {
  readonly memtable: UplinkMemtable;
  readonly recent = new RecentUplinks();
  readonly #thread: Worker;
  /**
   * The callers of requests that were sent and not answered, oldest first. Who calls this class limits their number.
   */
  readonly #pending: Caller[] = [];
  /** Writes that wait for the next commit of uplinks. */
  #batched: WaitingWrite<BatchedWrite>[] = [];
  /** Merchants' writes that were not sent yet. A group is sent when the group before it is on the disk. */
  readonly #merchantWrites: WaitingWrite<MerchantWrite>[] = [];
  /** Merchants' writes that were sent and not answered. */
  #merchantWritesSent = 0;
  /** Whether the last group of merchants' writes was a long list. */
  #wasLongList = false;
  /** Set while merchants' writes pause after a long list. */
  #pause: Timer | undefined;
  /** Whether nothing may wait: neither batched writes for a commit, nor merchants' writes for a pause. */
  #isHurried = false;
  /** Set while batched writes wait for the next commit. */
  #flushTimer: Timer | undefined;
  /** When the last commit of uplinks was sent (monotonic). */
  #appendedAtMs = Number.NEGATIVE_INFINITY;
  readonly #monotonic: () => Milliseconds;
  /** Resolves when the thread has ended. */
  readonly #exited: Promise<void>;
  /** Why nothing can be written any more: the thread has ended. */
  #broken: Error | undefined;

  private constructor(data: LogThreadData, memtable: UplinkMemtable, monotonic: () => Milliseconds) {
    this.memtable = memtable;
    this.#monotonic = monotonic;
    this.#thread = new Worker(new URL('./log-thread.js', import.meta.url), { workerData: data });
    this.#thread.on('message', (answer: LogAnswer) => this.#handleAnswer(answer));
    this.#thread.on('error', (error) => this.#break(error));
    this.#exited = new Promise((resolve) => {
      this.#thread.on('exit', () => {
        this.#break(new Error('it exited unexpectedly'));
        resolve();
      });
    });
  }

  /**
   * Starts the thread for a store's file, whose tables must exist. `reader` is a connection to that file, and
   * `monotonic` reads a monotonic clock in ms.
   *
   * @throws the thread's error if it can't open the file
   */
  static async open(
    data: LogThreadData,
    reader: Database,
    monotonic: () => Milliseconds = monotonicMs,
  ): Promise<ThreadLog> {
    const log = new ThreadLog(data, loadMemtable(reader), monotonic);
    try {
      // The thread's first message says whether it could start; no request asks for it.
      await new Promise<LogDone>((resolve, reject) => log.#pending.push({ resolve, reject }));
    } catch (error) {
      await log.#thread.terminate();
      throw error;
    }
    return log;
  }

  async append(commit: PackedCommit): Promise<CommitResult> {
    this.#appendedAtMs = this.#monotonic();
    const { result } = await new Promise<LogDone>((resolve, reject) => {
      this.#flush([{ write: { type: 'append', commit }, caller: { resolve, reject } }], [commit.uplinks]);
    });
    return result ?? ALL_STORED;
  }

  async writeBatched(write: BatchedWrite): Promise<void> {
    await new Promise<LogDone>((resolve, reject) => {
      this.#batched.push({ write, caller: { resolve, reject } });
      // A lock's CONNACK waits for the activation of its SIM; nothing urgent waits for the other batched writes.
      if (write.type === 'sims') this.#flush();
      else this.#flushSoon();
    });
  }

  async writeForMerchant(write: MerchantWrite): Promise<MerchantOutcome> {
    const { merchant } = await new Promise<LogDone>((resolve, reject) => {
      this.#merchantWrites.push({ write, caller: { resolve, reject } });
      if (this.#maySendMerchantWrites) this.#flushSoon();
    });
    return merchant ?? {};
  }

  hurry(isHurried: boolean): void {
    this.#isHurried = isHurried;
    if (!isHurried) return;
    this.#pause?.cancel();
    this.#pause = undefined;
    this.#flush();
  }

  /** Sends waiting writes with the next commit of uplinks if one is likely to follow, else at once. */
  #flushSoon(): void {
    if (this.#isHurried || this.#monotonic() - this.#appendedAtMs > BATCH_WAIT) this.#flush();
    else this.#flushTimer ??= systemClock.after(BATCH_WAIT, () => this.#flush());
  }

  /** Removes and returns the merchants' writes that may be sent now. */
  #takeMerchantWrites(): readonly WaitingWrite<MerchantWrite>[] {
    if (!this.#maySendMerchantWrites || this.#merchantWrites.length === 0) return NO_WRITES;
    let [count, rows] = [0, 0];
    for (const { write } of this.#merchantWrites) {
      if (count > 0 && rows + writeCost(write) > MAX_MERCHANT_ROWS_PER_TRANSACTION) break;
      rows += writeCost(write);
      count += 1;
    }
    this.#merchantWritesSent = count;
    this.#wasLongList = rows > MAX_MERCHANT_ROWS_PER_TRANSACTION;
    return this.#merchantWrites.splice(0, count).map(({ write, caller }) => {
      return {
        write,
        caller: { resolve: this.#countAnswer(caller.resolve), reject: this.#countAnswer(caller.reject) },
      };
    });
  }

  get #maySendMerchantWrites(): boolean {
    return this.#merchantWritesSent === 0 && this.#pause === undefined;
  }

  /** Sends the next group of merchants' writes, after a pause if the last group was a long list and pings arrive. */
  #afterMerchantWrites(): void {
    const resume = (): void => {
      this.#pause = undefined;
      if (this.#merchantWrites.length > 0) this.#flushSoon();
    };
    const arePingsComing = this.#monotonic() - this.#appendedAtMs < PING_ACTIVITY_WINDOW;
    if (this.#wasLongList && arePingsComing && !this.#isHurried)
      this.#pause = systemClock.after(LONG_LIST_PAUSE, resume);
    else resume();
  }

  /** Wraps the callback of a sent merchant's write: after the last answer of a group, the next group is sent. */
  #countAnswer<Value>(settle: (value: Value) => void): (value: Value) => void {
    return (value) => {
      this.#merchantWritesSent -= 1;
      settle(value);
      if (this.#merchantWritesSent === 0) this.#afterMerchantWrites();
    };
  }

  async flushIndexes(): Promise<void> {
    await this.#request({ type: 'flush-indexes' });
  }

  async distrustHints(deviceId: number): Promise<void> {
    await this.#request({ type: 'distrust-hints', deviceId });
  }

  async deleteOld(chunk: AgingChunk): Promise<AgingResult> {
    const { deletion } = await this.#request({ type: 'delete-old', chunk });
    return deletion as AgingResult;
  }

  async checkpointsIdle(): Promise<void> {
    await this.#request({ type: 'await-checkpoint' });
  }

  async close(): Promise<void> {
    // No write is waiting here: the store closes only after all writes.
    this.#pause?.cancel();
    await this.#request({ type: 'close' });
    await this.#exited;
  }

  /** Sends all waiting writes that may be sent, in one request with `commits`. `transfer` is moved to the thread. */
  #flush(commits: readonly WaitingWrite[] = [], transfer: readonly ArrayBuffer[] = []): void {
    this.#flushTimer?.cancel();
    this.#flushTimer = undefined;
    const waiting = [...this.#batched, ...this.#takeMerchantWrites(), ...commits];
    this.#batched = [];
    if (waiting.length === 0) return;
    const callers = waiting.map(({ caller }) => caller);
    this.#send({ type: 'write', writes: waiting.map(({ write }) => write) }, callers, transfer);
  }

  #request(request: LogRequest): Promise<LogDone> {
    this.#flush();
    return new Promise((resolve, reject) => this.#send(request, [{ resolve, reject }]));
  }

  #send(request: LogRequest, callers: readonly Caller[], transfer: readonly ArrayBuffer[] = []): void {
    if (this.#broken !== undefined) {
      for (const { reject } of callers) reject(this.#broken);
      return;
    }
    this.#thread.postMessage(request, transfer);
    this.#pending.push(...callers);
  }

  #handleAnswer({ outcomes, mark }: LogAnswer): void {
    // Before the callers go on: they must find what they stored.
    for (const outcome of outcomes) {
      if (outcome.error !== undefined || outcome.uplinks === undefined) continue;
      const uplinks = new Float64Array(outcome.uplinks);
      this.memtable.addPacked(uplinks);
      this.recent.add(uplinks);
    }
    if (mark !== undefined) this.memtable.follow(mark);
    for (const outcome of outcomes) {
      const caller = this.#pending.shift();
      if (outcome.error === undefined) caller?.resolve(outcome);
      else caller?.reject(toError(outcome.error));
    }
  }

  /** Handles an unexpected end of the thread. The state of the disk is then unknown, so this counts as an I/O error. */
  #break(cause: Error): void {
    this.#broken ??= Object.assign(new Error(`the thread that writes it failed: ${cause.message}`), { code: 'EIO' });
    for (const { reject } of this.#pending.splice(0)) reject(this.#broken);
  }
}

function toError({ code, message }: LogError): Error {
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}

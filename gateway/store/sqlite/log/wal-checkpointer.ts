/**
 * Checkpoints the WAL, that is, has it copied into the file, by a thread of its own (wal-thread.ts) over a connection
 * of its own: that is thousands of pages and an fsync, which SQLite does while commits go on.
 *
 * SQLite restarts the WAL from its beginning only when all of it was copied, and a writer that never rests always
 * leaves a little. So that little is copied here, between two commits, once the WAL is long.
 */
import { Worker } from 'node:worker_threads';
import type { Database, Statement } from 'better-sqlite3';
import { type Milliseconds, Seconds } from '../../../../proto/clock.js';
import { failureKind } from '../../contract/errors.js';
import type { CheckpointAnswer, WalThreadData } from './wal-thread-message.js';

/** At so many pages, 64 MB, the WAL is restarted at any cost; the writer waits for it. */
export const WAL_PAGES_MOST = 16_000;

/** All in pages. */
export interface WalLimits {
  /** When the file lacks so many, the thread copies them. */
  readonly copiedFrom: number;
  /** A WAL of so many is restarted as soon as the file lacks no more than `little`. */
  readonly longFrom: number;
  readonly little: number;
  readonly most: number;
}

/** That is about one checkpoint for 20,000 uplinks. */
const LIMITS: WalLimits = { copiedFrom: 250, longFrom: 4000, little: 100, most: WAL_PAGES_MOST };

/** The longest that one commit waits for the thread, whose end is noticed only between commits. */
const WAIT_LIMIT: Milliseconds = Seconds(1);

interface WalState {
  /** Pages in the WAL, and how many of them the file has. */
  readonly log: number;
  readonly checkpointed: number;
}

export class WalCheckpointer {
  readonly #file: string;
  readonly #limits: WalLimits;
  readonly #pages: Statement;
  readonly #checkpoint: Statement;
  /** 1 while the thread copies; the thread resets it. */
  readonly #checkpointing = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  /** Started at the first checkpoint. */
  #thread: Worker | undefined;
  #failure: unknown;

  /** `db` is the writer's connection to `file`. */
  constructor(db: Database, file: string, limits: WalLimits = LIMITS) {
    this.#file = file;
    this.#limits = limits;
    db.pragma('wal_autocheckpoint = 0');
    this.#pages = db.prepare('PRAGMA wal_checkpoint(NOOP)');
    this.#checkpoint = db.prepare('PRAGMA wal_checkpoint(PASSIVE)');
  }

  /** To be called after each commit, once it is answered. */
  checkpointIfLong(): void {
    try {
      const { log, checkpointed } = this.#pages.get() as WalState;
      const left = log - checkpointed;
      const { copiedFrom, longFrom, little, most } = this.#limits;
      if (log >= most) this.#checkpointHere();
      else if (this.#isCheckpointing) return;
      else if (log >= longFrom && left <= little) this.#checkpointHere();
      else if (left >= copiedFrom) this.#checkpointInThread();
    } catch (error) {
      this.#failed(error);
    }
  }

  get #isCheckpointing(): boolean {
    return Atomics.load(this.#checkpointing, 0) === 1;
  }

  #checkpointHere(): void {
    // SQLite refuses a second checkpoint at the same time.
    if (Atomics.wait(this.#checkpointing, 0, 1, WAIT_LIMIT) !== 'timed-out') this.#checkpoint.get();
  }

  #checkpointInThread(): void {
    Atomics.store(this.#checkpointing, 0, 1);
    this.#thread ??= this.#start();
    this.#thread.postMessage('copy');
  }

  #start(): Worker {
    const data: WalThreadData = { file: this.#file, checkpointing: this.#checkpointing };
    const thread = new Worker(new URL('./wal-thread.js', import.meta.url), { workerData: data });
    thread.on('message', ({ error }: CheckpointAnswer) => {
      if (error !== undefined) this.#failed(error);
    });
    // All of it is still in the WAL; the next checkpoint starts another thread.
    thread.on('error', () => undefined);
    thread.on('exit', () => {
      this.#thread = undefined;
      Atomics.store(this.#checkpointing, 0, 0);
    });
    return thread;
  }

  #failed(error: unknown): void {
    // On a full disk, or during another checkpoint, all of it is still in the WAL.
    if (failureKind(error) === 'io') this.#failure = error;
  }

  /** Resolves when no checkpoint runs. */
  async idle(): Promise<void> {
    const thread = this.#thread;
    if (thread === undefined || !this.#isCheckpointing) return;
    await new Promise<void>((resolve) => {
      thread.once('message', () => resolve());
      thread.once('exit', () => resolve());
    });
  }

  /** Ends the thread after its current checkpoint. */
  async close(): Promise<void> {
    const thread = this.#thread;
    if (thread === undefined) return;
    const ended = new Promise((resolve) => thread.once('exit', resolve));
    thread.postMessage('close');
    await ended;
  }

  /** @throws the failure after which nobody knows what is on the disk */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}

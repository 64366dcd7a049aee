/**
 * Has the WAL copied into the file by a thread of its own (wal-thread.ts), over a connection of its own: that is
 * thousands of pages and an fsync, and whoever commits does not wait for it, as SQLite lets it go on beside.
 *
 * SQLite writes the WAL from its beginning again only when all of it was copied, and beside a writer that never rests
 * a little is always left. So that little is copied here, between two commits, once the WAL is long.
 */
import { Worker } from 'node:worker_threads';
import type { Database, Statement } from 'better-sqlite3';
import { type Milliseconds, Seconds } from '../../../../proto/clock.js';
import { failureKind } from '../../contract/errors.js';
import type { CheckpointAnswer, WalThreadData } from './wal-thread-message.js';

/** With so many pages, 64 MB, the WAL is begun anew whatever that takes; the writer waits for it. */
export const WAL_PAGES_MOST = 16_000;

/** All in pages. */
export interface WalLimits {
  /** With so many that the file lacks, they are copied. */
  readonly copiedFrom: number;
  /** A WAL of so many is begun anew as soon as the file lacks no more than `little`. */
  readonly longFrom: number;
  readonly little: number;
  readonly most: number;
}

/** Copied is about once for 20,000 uplinks. */
const LIMITS: WalLimits = { copiedFrom: 250, longFrom: 4000, little: 100, most: WAL_PAGES_MOST };

/** How long one commit waits for that at the most: a thread that broke off is noticed only in between. */
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
  /** 1 while the thread copies; it says itself when it has ended. */
  readonly #checkpointing = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  /** Made when there is something to copy for the first time. */
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

  /** To be called when whoever waits has been answered. */
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
    // Two can't copy at once: SQLite would refuse the second.
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
    // All of it stands in the WAL still, and the next time it is long another thread is made.
    thread.on('error', () => undefined);
    thread.on('exit', () => {
      this.#thread = undefined;
      Atomics.store(this.#checkpointing, 0, 0);
    });
    return thread;
  }

  #failed(error: unknown): void {
    // Without room for it, or beside somebody else's, all of it stands in the WAL still.
    if (failureKind(error) === 'io') this.#failure = error;
  }

  /** Resolves when nothing is being copied. */
  async idle(): Promise<void> {
    const thread = this.#thread;
    if (thread === undefined || !this.#isCheckpointing) return;
    await new Promise<void>((resolve) => {
      thread.once('message', () => resolve());
      thread.once('exit', () => resolve());
    });
  }

  /** Ends the thread, after what it does. */
  async close(): Promise<void> {
    const thread = this.#thread;
    if (thread === undefined) return;
    const ended = new Promise((resolve) => thread.once('exit', resolve));
    thread.postMessage('close');
    await ended;
  }

  /** @throws what went wrong, where nobody knows any more what is on the disk */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}

/**
 * Checkpoints the write-ahead log (WAL), that is, copies it into the store's file: thousands of pages and an fsync. A
 * separate thread (wal-thread.ts) does this on a separate connection while commits continue.
 *
 * SQLite restarts the WAL from its beginning only after all of it was copied. A busy writer always adds pages that are
 * not copied yet, so once the WAL is long, this class copies the last pages in the writer's thread, between two
 * commits.
 */
import { Worker } from 'node:worker_threads';
import type { Database, Statement } from 'better-sqlite3';
import { type Milliseconds, Seconds } from '../../../../proto/clock.js';
import { failureKind } from '../../contract/errors.js';
import type { CheckpointAnswer, WalThreadData } from './wal-thread-message.js';

/** At this size, 64 MB, the writer waits until the WAL can be restarted from its beginning. */
export const MAX_WAL_PAGES = 16_000;

/** The limits that decide when the WAL is copied, in pages. */
export interface WalLimits {
  /** With this many uncopied pages, the thread copies them. */
  readonly copyFromPages: number;
  /** A WAL of this size is restarted as soon as at most `maxUncopiedPages` pages are not copied yet. */
  readonly longFromPages: number;
  readonly maxUncopiedPages: number;
  /** At this size the writer waits for the thread and restarts the WAL. */
  readonly maxPages: number;
}

/** With these limits there is about one restart for 20,000 uplinks. */
const LIMITS: WalLimits = { copyFromPages: 250, longFromPages: 4000, maxUncopiedPages: 100, maxPages: MAX_WAL_PAGES };

/** Maximum time that a commit waits for the thread: a crash of the thread is noticed only between commits. */
const WAIT_LIMIT: Milliseconds = Seconds(1);

/** SQLite's answer about the WAL. */
interface WalState {
  /** Pages in the WAL, and how many of them were copied into the file. */
  readonly log: number;
  readonly checkpointed: number;
}

export class WalCheckpointer {
  readonly #file: string;
  readonly #limits: WalLimits;
  readonly #pages: Statement;
  readonly #checkpoint: Statement;
  /** 1 while the thread copies; the thread resets it to 0. */
  readonly #checkpointing = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  /** The thread, which starts at the first checkpoint. */
  #thread: Worker | undefined;
  #failure: unknown;

  /** `db` is the writer's connection to `file`. */
  constructor(db: Database, file: string, limits: WalLimits = LIMITS) {
    this.#file = file;
    this.#limits = limits;
    db.pragma('wal_autocheckpoint = 0');
    // NOOP only returns the state of the WAL; PASSIVE copies what it can without waiting for readers.
    this.#pages = db.prepare('PRAGMA wal_checkpoint(NOOP)');
    this.#checkpoint = db.prepare('PRAGMA wal_checkpoint(PASSIVE)');
  }

  /** Must be called after each commit, once the commit is answered. */
  checkpointIfLong(): void {
    try {
      const { log, checkpointed } = this.#pages.get() as WalState;
      const uncopied = log - checkpointed;
      const { copyFromPages, longFromPages, maxUncopiedPages, maxPages } = this.#limits;
      if (log >= maxPages) this.#checkpointHere();
      else if (this.#isCheckpointing) return;
      else if (log >= longFromPages && uncopied <= maxUncopiedPages) this.#checkpointHere();
      else if (uncopied >= copyFromPages) this.#checkpointInThread();
    } catch (error) {
      this.#noteFailure(error);
    }
  }

  get #isCheckpointing(): boolean {
    return Atomics.load(this.#checkpointing, 0) === 1;
  }

  /** Copies the last pages in the calling thread, after which SQLite restarts the WAL. */
  #checkpointHere(): void {
    // Waits for the thread, since SQLite allows only one checkpoint at a time. Returns at once if the thread is idle.
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
      if (error !== undefined) this.#noteFailure(error);
    });
    // After a crash of the thread all pages are still in the WAL; the next checkpoint starts another thread.
    thread.on('error', () => undefined);
    thread.on('exit', () => {
      this.#thread = undefined;
      Atomics.store(this.#checkpointing, 0, 0);
    });
    return thread;
  }

  #noteFailure(error: unknown): void {
    // After any other failure (a full disk, a concurrent checkpoint) all pages are still in the WAL.
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

  /** Stops the thread after its current checkpoint. */
  async close(): Promise<void> {
    const thread = this.#thread;
    if (thread === undefined) return;
    const exited = new Promise((resolve) => thread.once('exit', resolve));
    thread.postMessage('close');
    await exited;
  }

  /** @throws the I/O error of an earlier checkpoint, after which the state of the disk is unknown */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}

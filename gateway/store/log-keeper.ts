/** Who writes the log: this thread, or one of its own. The code that writes is the same. */
import type { Database } from 'better-sqlite3';
import type { PackedCommit } from './packed-commit.js';
import { LogWriter } from './sqlite-log.js';
import type { DeliveryProgress } from './store.js';
import type { RunSize, UplinkTail } from './uplink-tail.js';

/** Each promise settles when the work is on the disk, or with what SQLite threw; what is given first is done first. */
export interface LogKeeper {
  /** The uplinks that the tables by name and by lock do not have yet: of what was answered, never of what waits. */
  readonly tail: UplinkTail;
  append(commit: PackedCommit): Promise<void>;
  recordProgress(progress: readonly DeliveryProgress[]): Promise<void>;
  /** Puts all uplinks into the tables by name and by lock. */
  settle(): Promise<void>;
  /** Resolves when nobody copies the WAL; to be called where nothing else is under way, or it begins again. */
  rest(): Promise<void>;
  /** Ends it after all that it was given. */
  close(): Promise<void>;
}

/** Writes in this thread, over a connection that others write over too. */
export class InlineLog implements LogKeeper {
  readonly #writer: LogWriter;

  constructor(db: Database, runSize?: RunSize) {
    this.#writer = new LogWriter(db, runSize);
  }

  get tail(): UplinkTail {
    return this.#writer.tail;
  }

  async append(commit: PackedCommit): Promise<void> {
    this.#writer.append(commit);
  }

  async recordProgress(progress: readonly DeliveryProgress[]): Promise<void> {
    this.#writer.recordProgress(progress);
  }

  async settle(): Promise<void> {
    this.#writer.settle();
  }

  async rest(): Promise<void> {}

  async close(): Promise<void> {}
}

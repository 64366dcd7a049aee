/** Who writes the log: this thread, or one of its own. The code that writes is the same. */
import type { Database } from 'better-sqlite3';
import type { PackedCommit } from './packed-commit.js';
import { LogWriter } from './sqlite-log.js';
import type { DeliveryProgress } from './store.js';

/** Each promise settles when the work is on the disk, or with what SQLite threw; what is given first is done first. */
export interface LogKeeper {
  append(commit: PackedCommit): Promise<void>;
  recordProgress(progress: readonly DeliveryProgress[]): Promise<void>;
  /** Ends it after all that it was given. */
  close(): Promise<void>;
}

/** One durable transaction. @throws what SQLite throws; nothing of it is kept */
export function inTransaction<T>(db: Database, work: () => T): T {
  return db.transaction(work).immediate();
}

/** Writes in this thread, over a connection that others write over too. */
export class InlineLog implements LogKeeper {
  readonly #db: Database;
  readonly #writer: LogWriter;

  constructor(db: Database) {
    this.#db = db;
    this.#writer = new LogWriter(db);
  }

  async append(commit: PackedCommit): Promise<void> {
    inTransaction(this.#db, () => this.#writer.append(commit));
  }

  async recordProgress(progress: readonly DeliveryProgress[]): Promise<void> {
    inTransaction(this.#db, () => this.#writer.recordProgress(progress));
  }

  async close(): Promise<void> {}
}

/**
 * Copies the WAL into the file between two commits, instead of at the end of one as SQLite does by itself: nobody waits
 * for an acknowledgement meanwhile but those who come next.
 */
import type { Database, Statement } from 'better-sqlite3';
import { failureKind } from './store.js';

/** Pages in the WAL from which on it is copied: some ms of work, about once for 40,000 uplinks. */
const COPIED_FROM = 2000;

interface WalState {
  /** Pages in the WAL, and how many of them the file has. */
  readonly log: number;
  readonly checkpointed: number;
}

export class WalEmptier {
  readonly #look: Statement;
  readonly #copy: Statement;
  #failure: unknown;

  constructor(db: Database) {
    db.pragma('wal_autocheckpoint = 0');
    this.#look = db.prepare('PRAGMA wal_checkpoint(NOOP)');
    this.#copy = db.prepare('PRAGMA wal_checkpoint(PASSIVE)');
  }

  /** To be called when whoever waits has been answered. */
  copyWhereLong(): void {
    try {
      const { log, checkpointed } = this.#look.get() as WalState;
      if (log - checkpointed >= COPIED_FROM) this.#copy.get();
    } catch (error) {
      // Without room for it, or beside somebody else's, all of it stands in the WAL still.
      if (failureKind(error) === 'io') this.#failure = error;
    }
  }

  /** @throws what went wrong, where nobody knows any more what is on the disk */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}

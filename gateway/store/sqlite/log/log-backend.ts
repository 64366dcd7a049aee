/** Who writes the log: this thread, or one of its own. The code that writes is the same. */

import type { Database } from 'better-sqlite3';
import type { MerchantOutcome, MerchantWrite } from '../../contract/merchant-write.js';
import type { AgedPiece, AgingPiece } from '../../contract/store.js';
import type { RunSize } from '../../contract/store-options.js';
import type { BatchedWrite } from './batched-write.js';
import { LogWriter } from './log-writer.js';
import type { UplinkMemtable } from './memtable/uplink-memtable.js';
import type { PackedCommit } from './packed-commit.js';

/** Each promise settles when the work is on the disk, or with what SQLite threw; what is given first is done first. */
export interface LogBackend {
  /** The uplinks that the tables by name and by lock do not have yet: of what was answered, never of what waits. */
  readonly memtable: UplinkMemtable;
  append(commit: PackedCommit): Promise<void>;
  /** What is no part of the log. It may wait a little, to share a transaction. */
  writeBatched(write: BatchedWrite): Promise<void>;
  /** The same for what a merchant writes over HTTP; such writes wait for each other, and never hold up a commit. */
  writeForMerchant(write: MerchantWrite): Promise<MerchantOutcome>;
  /** Puts all uplinks into the tables by name and by lock. */
  flushIndexes(): Promise<void>;
  /** Deletes what is too old, a piece. */
  deleteOld(piece: AgingPiece): Promise<AgedPiece>;
  /** Resolves when nobody copies the WAL; to be called where nothing else is under way, or it begins again. */
  checkpointsIdle(): Promise<void>;
  /** Ends it after all that it was given. */
  close(): Promise<void>;
}

/** Writes in this thread, over a connection that others write over too. */
export class InlineLog implements LogBackend {
  readonly #writer: LogWriter;

  constructor(db: Database, runSize?: RunSize) {
    this.#writer = new LogWriter(db, runSize);
  }

  get memtable(): UplinkMemtable {
    return this.#writer.memtable;
  }

  async append(commit: PackedCommit): Promise<void> {
    this.#writer.write([{ type: 'append', commit }]);
  }

  async writeBatched(write: BatchedWrite): Promise<void> {
    this.#writer.write([write]);
  }

  async writeForMerchant(write: MerchantWrite): Promise<MerchantOutcome> {
    return this.#writer.write([write])[0] ?? {};
  }

  async flushIndexes(): Promise<void> {
    this.#writer.flushIndexes();
  }

  async deleteOld(piece: AgingPiece): Promise<AgedPiece> {
    return this.#writer.deleteOld(piece);
  }

  async checkpointsIdle(): Promise<void> {}

  async close(): Promise<void> {}
}

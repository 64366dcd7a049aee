/** Where the log is written: in the calling thread, or in one of its own. Both use the same {@link LogWriter}. */

import type { Database } from 'better-sqlite3';
import type { MerchantOutcome, MerchantWrite } from '../../contract/merchants/merchant-write.js';
import type { AgedPiece, AgingPiece } from '../../contract/store.js';
import type { RunSize } from '../../contract/store-options.js';
import type { BatchedWrite } from './batched-write.js';
import { LogWriter } from './log-writer.js';
import type { UplinkMemtable } from './memtable/uplink-memtable.js';
import type { PackedCommit } from './packed-commit.js';

/** Each promise resolves when the work is on the disk, or rejects with what SQLite threw. Work is done in order. */
export interface LogBackend {
  /** The uplinks that the indexes do not have yet, of commits that were answered. */
  readonly memtable: UplinkMemtable;
  append(commit: PackedCommit): Promise<void>;
  /** Writes what is no part of the log. It may wait a little, to share a transaction. */
  writeBatched(write: BatchedWrite): Promise<void>;
  /** The same for a merchant's write over HTTP. Such writes wait for each other, and never hold up a commit. */
  writeForMerchant(write: MerchantWrite): Promise<MerchantOutcome>;
  /** Flushes the memtable into the indexes. */
  flushIndexes(): Promise<void>;
  /** Deletes what is too old in a piece of a table. */
  deleteOld(piece: AgingPiece): Promise<AgedPiece>;
  /** Resolves when no checkpoint runs. Only meaningful while nothing is written, or the next one may start. */
  checkpointsIdle(): Promise<void>;
  /** Closes it after all work that it was given. */
  close(): Promise<void>;
}

/** Writes in the calling thread, on a connection that it shares. */
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

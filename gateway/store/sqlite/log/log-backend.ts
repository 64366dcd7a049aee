/**
 * The interface for writing the log, the table of all uplinks (messages from locks) in the order of arrival, and its
 * backend that writes in the calling thread. ThreadLog (thread-log.ts) writes in a separate thread. Both use {@link
 * LogWriter}.
 */

import type { Database } from 'better-sqlite3';
import type { AgingChunk, AgingResult } from '../../contract/deletion.js';
import { ALL_STORED, type CommitResult } from '../../contract/log/commit-result.js';
import type { MerchantOutcome, MerchantWrite } from '../../contract/merchants/merchant-write.js';
import type { RunSize } from '../../contract/store-options.js';
import type { PackedCommit } from '../../log/packed-commit.js';
import type { BatchedWrite } from './batched-write.js';
import { LogWriter } from './log-writer.js';
import type { UplinkMemtable } from './memtable/uplink-memtable.js';
import { RecentUplinks } from './recent-uplinks.js';

/** Each promise resolves when the work is on the disk, or rejects with SQLite's error. Work is done in order. */
export interface LogBackend {
  /** The uplinks of finished commits that are not in the log's indexes (by key, by lock) yet. */
  readonly memtable: UplinkMemtable;
  /** The uplinks of the newest finished commits. */
  readonly recent: RecentUplinks;
  /** Appends a commit of the ingest, which receives and checks uplinks, to the log. */
  append(commit: PackedCommit): Promise<CommitResult>;
  /** Makes a write that is not part of the log. It may wait up to some 20 ms to share a transaction. */
  writeBatched(write: BatchedWrite): Promise<void>;
  /** Makes a merchant's write over HTTP. Such writes wait for each other, and delay commits of uplinks only briefly. */
  writeForMerchant(write: MerchantWrite): Promise<MerchantOutcome>;
  /**
   * Whether to write at once what would wait to share a transaction: a write that may not run beside the log's waits
   * for it, and commits of uplinks for that.
   */
  hurry(isHurried: boolean): void;
  /** Flushes the whole memtable into the indexes. */
  flushIndexes(): Promise<void>;
  /** Must be called before a lock is erased: from now on the hints of its uplinks are made of their stored rows. */
  distrustHints(deviceId: number): Promise<void>;
  /** Deletes old rows in a chunk of a table. */
  deleteOld(chunk: AgingChunk): Promise<AgingResult>;
  /** Resolves when no checkpoint runs. The caller must prevent writes, since a write may start the next checkpoint. */
  checkpointsIdle(): Promise<void>;
  /** Closes the backend after all earlier work. */
  close(): Promise<void>;
}

/** Writes in the calling thread, on the store's writing connection. */
export class InlineLog implements LogBackend {
  readonly recent = new RecentUplinks();
  readonly #writer: LogWriter;

  /** @param runSize how many uplinks the memtable collects before they go into the indexes; for tests */
  constructor(db: Database, runSize?: RunSize) {
    this.#writer = new LogWriter(db, runSize);
  }

  get memtable(): UplinkMemtable {
    return this.#writer.memtable;
  }

  async append(commit: PackedCommit): Promise<CommitResult> {
    this.#writer.write([{ type: 'append', commit }]);
    this.recent.add(new Float64Array(commit.appended ?? commit.uplinks));
    // The writer has set it if a part of the commit was refused.
    return commit.result ?? ALL_STORED;
  }

  async writeBatched(write: BatchedWrite): Promise<void> {
    this.#writer.write([write]);
  }

  async writeForMerchant(write: MerchantWrite): Promise<MerchantOutcome> {
    return this.#writer.write([write])[0] ?? {};
  }

  /** Nothing waits here. */
  hurry(): void {}

  async flushIndexes(): Promise<void> {
    this.#writer.flushIndexes();
  }

  async distrustHints(deviceId: number): Promise<void> {
    this.#writer.distrustHints(deviceId);
  }

  async deleteOld(chunk: AgingChunk): Promise<AgingResult> {
    return this.#writer.deleteOld(chunk);
  }

  /** SQLite makes the checkpoints of this connection itself, within a write. */
  async checkpointsIdle(): Promise<void> {}

  /** The store closes the connection. */
  async close(): Promise<void> {}
}

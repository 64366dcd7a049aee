/** Messages between the store (thread-log.ts) and the log thread (log-thread.ts). Requests are answered in order. */

import type { AgingChunk, AgingResult } from '../../contract/deletion.js';
import type { CommitResult } from '../../contract/log/commit-result.js';
import type { MerchantOutcome } from '../../contract/merchants/merchant-write.js';
import type { RunSize } from '../../contract/store-options.js';
import type { PackedCommit } from '../../log/packed-commit.js';
import type { BatchedWrite } from './batched-write.js';
import type { MemtableMark } from './memtable/uplink-memtable.js';

/** One write, which is made durable completely or not at all. */
export type LogWrite = { readonly type: 'append'; readonly commit: PackedCommit } | BatchedWrite;

/** A request to the thread. `await-checkpoint` is answered when no checkpoint runs. */
export type LogRequest =
  | { readonly type: 'write'; readonly writes: readonly LogWrite[] }
  | { readonly type: 'flush-indexes' }
  | { readonly type: 'distrust-hints'; readonly deviceId: number }
  | { readonly type: 'delete-old'; readonly chunk: AgingChunk }
  | { readonly type: 'await-checkpoint' }
  | { readonly type: 'close' };

/** The answer to a request. The thread's first message is an answer without a request: whether it could start. */
export interface LogAnswer {
  /** One outcome for each write; one for any other request. */
  readonly outcomes: readonly LogOutcome[];
  /**
   * How far the uplinks of the memtable (the newest ones, in memory) have been written into the log's indexes. Left out
   * if a later answer belongs to the same transaction.
   */
  readonly mark?: MemtableMark | undefined;
}

/** Success or an error. */
export type LogOutcome = { readonly error: LogError } | LogDone;

/** The results of one write or request. */
export interface LogDone {
  readonly error?: undefined;
  /** The uplinks of a commit, transferred back with their new ids. */
  readonly uplinks?: ArrayBuffer | undefined;
  /** What a commit did not store; undefined if it stored everything. */
  readonly result?: CommitResult | undefined;
  /** The outcome of a merchant's write. */
  readonly merchant?: MerchantOutcome | undefined;
  /** The outcome of deleting old rows. */
  readonly deletion?: AgingResult | undefined;
}

/** SQLite's error in a form that can be sent between threads. `code` decides the kind of failure. */
export interface LogError {
  readonly code: string | undefined;
  readonly message: string;
}

/** The start parameters of the thread. */
export interface LogThreadData {
  readonly file: string;
  readonly runSize: RunSize | undefined;
}

/** Messages between the store and the log thread. Every request gets one answer, in order. */

import type { MerchantOutcome } from '../../contract/merchants/merchant-write.js';
import type { AgedPiece, AgingPiece } from '../../contract/store.js';
import type { RunSize } from '../../contract/store-options.js';
import type { BatchedWrite } from './batched-write.js';
import type { MemtableMark } from './memtable/uplink-memtable.js';
import type { PackedCommit } from './packed-commit.js';

/** One thing to be made durable, whole or not at all. */
export type LogWrite = { readonly type: 'append'; readonly commit: PackedCommit } | BatchedWrite;

/** A request to the thread. `age` deletes what is old; `rest` waits for a checkpoint. */
export type LogRequest =
  | { readonly type: 'write'; readonly writes: readonly LogWrite[] }
  | { readonly type: 'settle' }
  | { readonly type: 'age'; readonly piece: AgingPiece }
  | { readonly type: 'rest' }
  | { readonly type: 'close' };

/** The answer to a request. The first one, to no request, says whether the thread could start. */
export interface LogAnswer {
  /** One for each write; one for any other request. */
  readonly outcomes: readonly LogOutcome[];
  /** How far the memtable's flush is. Left out where a later answer belongs to the same transaction. */
  readonly mark?: MemtableMark | undefined;
}

/** Success, or what went wrong. */
export type LogOutcome = { readonly error: LogError } | LogDone;

export interface LogDone {
  readonly error?: undefined;
  /** The uplinks of a commit, transferred back with their ids. */
  readonly uplinks?: ArrayBuffer | undefined;
  /** The outcome of a merchant's write. */
  readonly merchant?: MerchantOutcome | undefined;
  /** The outcome of deleting a piece. */
  readonly aged?: AgedPiece | undefined;
}

/** What SQLite threw, in a form that can be sent. The code decides the kind of failure. */
export interface LogError {
  readonly code: string | undefined;
  readonly message: string;
}

/** What the thread gets when it starts. */
export interface LogThreadData {
  readonly file: string;
  readonly runSize: RunSize | undefined;
}

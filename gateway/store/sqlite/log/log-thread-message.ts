/** What the store and the thread that writes its log say to each other. Every request gets one answer, in order. */

import type { MerchantOutcome } from '../../contract/merchant-write.js';
import type { AgedPiece, AgingPiece } from '../../contract/store.js';
import type { RunSize } from '../../contract/store-options.js';
import type { BatchedWrite } from './batched-write.js';
import type { MemtableMark } from './memtable/uplink-memtable.js';
import type { PackedCommit } from './packed-commit.js';

/** One thing to be made durable, whole or not at all. */
export type LogWrite = { readonly type: 'append'; readonly commit: PackedCommit } | BatchedWrite;

/** What the thread is asked to do. */
export type LogRequest =
  | { readonly type: 'write'; readonly writes: readonly LogWrite[] }
  | { readonly type: 'settle' }
  | { readonly type: 'age'; readonly piece: AgingPiece }
  | { readonly type: 'rest' }
  | { readonly type: 'close' };

/** What is known when a request is done. The first answer, to no request, says whether the thread could begin. */
export interface LogAnswer {
  /** One for each write; one for whatever else was asked. */
  readonly outcomes: readonly LogOutcome[];
  /** Left out where more answers belong to the same transaction. */
  readonly mark?: MemtableMark | undefined;
}

/** That it is done, or what went wrong. */
export type LogOutcome = { readonly error: LogError } | LogDone;

export interface LogDone {
  readonly error?: undefined;
  /** The uplinks of a commit, given back with their ids. */
  readonly uplinks?: ArrayBuffer | undefined;
  /** What came of a merchant's write. */
  readonly merchant?: MerchantOutcome | undefined;
  /** What deleting a piece came to. */
  readonly aged?: AgedPiece | undefined;
}

/** What SQLite threw, as it can be sent: its code decides the kind of the failure. */
export interface LogError {
  readonly code: string | undefined;
  readonly message: string;
}

/** What the thread is told when it starts. */
export interface LogThreadData {
  readonly file: string;
  readonly runSize: RunSize | undefined;
}

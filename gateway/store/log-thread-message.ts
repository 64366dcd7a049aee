/** What the store and the thread that writes its log say to each other. Every request gets one answer, in order. */
import type { PackedCommit } from './packed-commit.js';
import type { DeliveryProgress } from './store.js';
import type { RunSize, TailMark } from './uplink-tail.js';

/** What the thread is asked to do. */
export type LogRequest =
  | { readonly type: 'append'; readonly commit: PackedCommit }
  | { readonly type: 'progress'; readonly progress: readonly DeliveryProgress[] }
  | { readonly type: 'settle' }
  | { readonly type: 'rest' }
  | { readonly type: 'close' };

/** That it is done, or what went wrong. The first answer, to no request, says whether the thread could begin. */
export type LogAnswer = LogDone | { readonly error: LogError };

/** What is known when a request is done. */
export interface LogDone {
  readonly error?: undefined;
  /** The uplinks of a commit, given back with their ids. */
  readonly uplinks?: ArrayBuffer | undefined;
  readonly mark: TailMark;
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

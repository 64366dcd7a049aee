/** What the store and the thread that writes its log say to each other. Every request gets one answer, in order. */
import type { PackedCommit } from './packed-commit.js';
import type { DeliveryProgress } from './store.js';

export type LogRequest =
  | { readonly type: 'append'; readonly commit: PackedCommit }
  | { readonly type: 'progress'; readonly progress: readonly DeliveryProgress[] }
  | { readonly type: 'close' };

/** The first answer, to no request, says that the thread is there, or why it can't be. */
export type LogAnswer = { readonly error: LogError | undefined };

/** What SQLite threw, as it can be sent: its code decides the kind of the failure. */
export interface LogError {
  readonly code: string | undefined;
  readonly message: string;
}

/** What the thread is told when it starts. */
export interface LogThreadData {
  readonly file: string;
}

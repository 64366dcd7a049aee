/** Messages between the log's writer (wal-checkpointer.ts) and the thread that checkpoints its WAL (wal-thread.ts). */
import type { LogError } from './log-thread-message.js';

/** A request to the thread. */
export type CheckpointRequest = 'copy' | 'close';

/** The start parameters of the thread. */
export interface WalThreadData {
  readonly file: string;
  /** One number: the writer sets it to 1 with a request; the thread resets it to 0 and wakes waiting threads. */
  readonly checkpointing: Int32Array;
}

/** The thread's answer; `error` is left out on success. */
export interface CheckpointAnswer {
  readonly error?: LogError;
}

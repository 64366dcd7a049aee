/** Messages between the log's writer and the thread that checkpoints its WAL. */
import type { LogError } from './log-thread-message.js';

/** A request to the thread. */
export type CheckpointRequest = 'copy' | 'close';

/** What the thread gets when it starts. */
export interface WalThreadData {
  readonly file: string;
  /** One number: the writer sets it to 1 with a request; the thread sets it to 0 and wakes those who wait for that. */
  readonly checkpointing: Int32Array;
}

/** Success, or what went wrong. */
export interface CheckpointAnswer {
  readonly error?: LogError;
}

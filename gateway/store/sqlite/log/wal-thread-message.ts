/** What the writer of the log and the thread that copies its WAL say to each other. */
import type { LogError } from './log-thread-message.js';

/** What the thread is asked to do. */
export type CheckpointRequest = 'copy' | 'close';

/** What the thread is told when it starts. */
export interface WalThreadData {
  readonly file: string;
  /** Its one number is 1 while it copies, set by who asks; the thread sets it to 0 and wakes who waits for that. */
  readonly checkpointing: Int32Array;
}

/** That it has copied; or what went wrong. */
export interface CheckpointAnswer {
  readonly error?: LogError;
}

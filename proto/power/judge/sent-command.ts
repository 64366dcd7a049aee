/** A command that was sent to a lock, as the judge's belief about the lock stores it: plain data that survives JSON. */
import type { Command } from '../../wire/ping.js';
import { NEVER } from './state.js';

/** A command that was sent. Times are ms since the epoch, by the judge's clock. */
export interface SentCommand {
  readonly id: number;
  readonly command: Command;
  readonly firstSentMs: number;
  /** On which of the lock's connections it was first sent (`Belief.connections`); −1 for none. */
  readonly firstConnection: number;
  /** When and on which connection it was last sent. */
  sentMs: number;
  connection: number;
  /** {@link NEVER} if the command has no known expiry. */
  expiresMs: number;
  /** Whether an acknowledgement has come. */
  isAnswered: boolean;
  /** Whether the lock made an uplink on the same connection so long afterwards that it must have read the command. */
  isOverdue: boolean;
  /** Whether a command-ignored finding has been made. */
  isIgnoredReported: boolean;
}

/** A command that is sent for the first time. */
export function newSentCommand(
  id: number,
  command: Command,
  atMs: number,
  expiresMs: number = NEVER,
  connection = -1,
): SentCommand {
  return {
    id,
    command,
    firstSentMs: atMs,
    firstConnection: connection,
    sentMs: atMs,
    connection,
    expiresMs,
    isAnswered: false,
    isOverdue: false,
    isIgnoredReported: false,
  };
}

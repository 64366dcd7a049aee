/** A command that was sent to a lock, as a belief stores it: plain data that survives JSON. */
import type { Command, PowerChange } from '../../wire/ping.js';
import { NEVER } from './state.js';

/** A command that was sent. Times are ms since the epoch, by the judge's clock. */
export interface SentCommand {
  readonly id: number;
  readonly type: Command['type'];
  /** What a set-power asks for; null for other commands. */
  readonly change: PowerChange | null;
  readonly firstSentMs: number;
  /** On which of the lock's connections it was first sent (`Belief.connections`; −1 for none). */
  readonly firstConnection: number;
  /** When and on which connection it was sent last. */
  sentMs: number;
  connection: number;
  /** {@link NEVER} where nothing says when it expires. */
  expiresMs: number;
  isAnswered: boolean;
  /** Whether the lock sent something on the same connection so long after it that it must have read it. */
  isOverdue: boolean;
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
    type: command.type,
    change: command.type === 'set-power' ? changeOf(command) : null,
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

/** What a set-power asks for, without its type. */
function changeOf({ mode, rideTracking, airplane, recovery, highWindow }: PowerChange): PowerChange {
  return {
    ...(mode !== undefined && { mode }),
    ...(rideTracking !== undefined && { rideTracking }),
    ...(airplane !== undefined && { airplane }),
    ...(recovery !== undefined && { recovery }),
    ...(highWindow !== undefined && { highWindow }),
  };
}

/**
 * One lock's unfinished commands, and which of them is next. Pure: times are arguments, nothing is sent or stored here.
 */
import type { Due } from '../../proto/deadlines.js';
import { NEVER } from '../../proto/power/judge/state.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Session } from '../mqtt/sessions.js';
import type { CommandRecord } from '../store/contract/command-record.js';
import { resendAfter } from './command-terms.js';

/** An unfinished command: neither answered nor expired or cancelled. */
export interface OpenCommand {
  record: CommandRecord;
  /** The connection that it was last sent on, and how often on that one. */
  session: Session | undefined;
  sendsOnSession: number;
}

/** One lock's queue. `dueMs`: when to examine it again, by the run's clock. */
export interface CommandQueue extends Due {
  readonly deviceId: number;
  readonly mac: Mac;
  /** In the order of their ids. */
  open: OpenCommand[];
  /** The command that is on its way through the ingest's queue. */
  leaving: OpenCommand | undefined;
  /** Places that are reserved for commands being stored. */
  reserved: number;
}

/** An empty queue. */
export function newQueue(deviceId: number, mac: Mac): CommandQueue {
  return { deviceId, mac, open: [], leaving: undefined, reserved: 0, dueMs: NEVER };
}

/** From when on a command may leave, which is also its place in the order. */
function turnMs({ createdAtMs, notBeforeMs }: CommandRecord): number {
  return Math.max(createdAtMs, notBeforeMs ?? createdAtMs);
}

/** Whether a command is held back, since it is doubtful that it has not expired. */
export type IsHeld = (record: CommandRecord) => boolean;

/**
 * The command that is next: one that was sent and is unanswered before all others, so that a lock has one at a time;
 * then the oldest, where a scheduled command counts from its time. Commands that are held back are passed over.
 * Undefined where none may leave yet.
 */
export function nextCommand({ open }: CommandQueue, nowMs: number, isHeld: IsHeld): OpenCommand | undefined {
  let first: OpenCommand | undefined;
  for (const each of open) {
    if (isHeld(each.record)) continue;
    if (each.record.state === 'sent') return each;
    const at = turnMs(each.record);
    if (at <= nowMs && (first === undefined || at < turnMs(first.record))) first = each;
  }
  return first;
}

/** When time alone changes something: the next expiry, or the next that is scheduled. {@link NEVER} for nothing. */
export function nextChangeMs({ open }: CommandQueue, nowMs: number): number {
  let next = NEVER;
  for (const { record } of open) {
    next = Math.min(next, record.expiresAtMs);
    if (turnMs(record) > nowMs) next = Math.min(next, turnMs(record));
  }
  return next;
}

/** From when on a command may be sent on this connection: at once, or a while after it was last sent on it. */
export function sendableAtMs({ record, session, sendsOnSession }: OpenCommand, on: Session): number {
  if (session !== on || record.lastSentAtMs === null) return -NEVER;
  return record.lastSentAtMs + resendAfter(record.command.type, sendsOnSession);
}

/**
 * One lock's queue of unfinished commands, and which of them is next. Pure: times are arguments; sends and stores
 * nothing.
 */
import type { Due } from '../../proto/deadlines.js';
import { NEVER } from '../../proto/power/judge/state.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Session } from '../mqtt/sessions.js';
import type { CommandRecord } from '../store/contract/command-record.js';
import { resendDelay } from './command-terms.js';

/** An unfinished command: neither answered nor expired or cancelled. */
export interface OpenCommand {
  record: CommandRecord;
  /** The connection on which it was last sent, and how often it was sent on that connection. */
  session: Session | undefined;
  sendsOnSession: number;
}

/**
 * One lock's queue. `dueMs`: when to examine it again, by the run's clock (wall-clock time, except in a sped-up
 * simulation).
 */
export interface CommandQueue extends Due {
  readonly deviceId: number;
  readonly mac: Mac;
  /** The unfinished commands, in the order of their ids. */
  open: OpenCommand[];
  /**
   * The command that is being sent: ingest stores that it is sent, and then sends it, in turn with the lock's uplinks.
   */
  leaving: OpenCommand | undefined;
  /** Places that are reserved for commands being stored. */
  reserved: number;
}

/** An empty queue. */
export function newQueue(deviceId: number, mac: Mac): CommandQueue {
  return { deviceId, mac, open: [], leaving: undefined, reserved: 0, dueMs: NEVER };
}

/** A lock gets its commands in the order of these times. */
function plannedSendMs({ createdAtMs, notBeforeMs }: CommandRecord): number {
  return Math.max(createdAtMs, notBeforeMs ?? createdAtMs);
}

/**
 * Whether a command may be sent by now, by the run's clock. One without a scheduled time always may: it may have been
 * created by another gateway whose clock is ahead, or before the clock was set back.
 */
function isDue({ notBeforeMs }: CommandRecord, nowMs: number): boolean {
  return notBeforeMs === null || notBeforeMs <= nowMs;
}

/** Returns whether a command is held back: the machine's clock is in doubt, and the command may have expired. */
export type IsHeld = (record: CommandRecord) => boolean;

/**
 * The next command: the unanswered sent one, so that a lock has one at a time; otherwise the oldest one, by its
 * scheduled time if it has one. Commands that are held back are skipped. Undefined if none may be sent yet.
 */
export function nextCommand({ open }: CommandQueue, nowMs: number, isHeld: IsHeld): OpenCommand | undefined {
  let oldest: OpenCommand | undefined;
  for (const command of open) {
    if (isHeld(command.record)) continue;
    if (command.record.state === 'sent') return command;
    if (!isDue(command.record, nowMs)) continue;
    if (oldest === undefined || plannedSendMs(command.record) < plannedSendMs(oldest.record)) oldest = command;
  }
  return oldest;
}

/** When the passing of time changes the queue: the next expiry or scheduled time. {@link NEVER} if there is none. */
export function nextChangeMs({ open }: CommandQueue, nowMs: number): number {
  let changeMs = NEVER;
  for (const { record } of open) {
    changeMs = Math.min(changeMs, record.expiresAtMs);
    if (record.notBeforeMs !== null && !isDue(record, nowMs)) changeMs = Math.min(changeMs, record.notBeforeMs);
  }
  return changeMs;
}

/** From when on a command may be sent on a connection: at once, or some time after its last send on this connection. */
export function sendableAtMs({ record, session, sendsOnSession }: OpenCommand, current: Session): number {
  // Earlier than any time: at once.
  if (session !== current || record.lastSentAtMs === null) return -NEVER;
  return record.lastSentAtMs + resendDelay(record.command.type, sendsOnSession);
}

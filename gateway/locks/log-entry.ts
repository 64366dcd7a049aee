/**
 * Converts entries of a lock's log (stored uplinks and other events, in the order of arrival) to events for the judge
 * and to decoded uplinks, and checks whether they are intact. Pure.
 */
import type { JudgeEvent } from '../../proto/power/judge/event.js';
import { decodeUplink } from '../../proto/wire/codec.js';
import type { Uplink } from '../../proto/wire/ping.js';
import { FIRST_LIFE, lifeOf, NO_MARKS } from '../../proto/wire/uplink-life.js';
import type { LockEvent, LogEntry } from '../store/contract/log/log-entry.js';
import type { StoredUplink } from '../store/contract/log/stored-uplink.js';
import { DEFAULT_SET_POWER_LIFETIME } from './stored-belief.js';

/** When the uplink was received or the event happened, ms since the epoch. */
export function entryTimeMs(entry: LogEntry): number {
  return entry.type === 'uplink' ? entry.uplink.receivedAtMs : entry.atMs;
}

/**
 * The event that the judge saw when the entry was written. An uplink's life is derived from the lock's present reflash
 * marks, the times at which the lock's flash was wiped (uplink-life.ts).
 *
 * @throws Error if an uplink's bytes are damaged
 */
export function judgeEventOf(entry: LogEntry, marks: readonly number[] = NO_MARKS): JudgeEvent {
  if (entry.type === 'lock-event') return lockEventOf(entry.event, entry.atMs);
  const { credentialId: credential, source, receivedAtMs: atMs } = entry.uplink;
  const uplink = decodeStored(entry.uplink);
  const life = source === 'lock' && marks.length > 0 ? lifeOf(marks, uplink.timeMs, atMs) : FIRST_LIFE;
  return { type: 'uplink', source, credential, life, novelty: 'new', uplink, atMs };
}

function lockEventOf(event: LockEvent, atMs: number): JudgeEvent {
  if (event.event === 'gateway') return { type: 'gateway', state: event.state, atMs };
  if (event.event === 'command') {
    // Older versions did not log when a set-power command expires.
    const { id, command, expiresMs = atMs + DEFAULT_SET_POWER_LIFETIME } = event;
    return { type: 'command', id, command, expiresMs, atMs };
  }
  const { source = 'lock' } = event;
  if (event.event === 'connect') return { type: 'connect', source, atMs };
  return { type: 'disconnect', source, cause: event.cause, atMs };
}

/** Whether the entry is intact: false for an uplink whose stored bytes are damaged. */
export function isIntact(entry: LogEntry): boolean {
  if (entry.type !== 'uplink') return true;
  return !entry.uplink.isDamaged && decodeUplink(entry.uplink.bytes).ok;
}

/** @throws Error if the stored bytes are damaged */
export function decodeStored({ id, bytes, isDamaged }: StoredUplink): Uplink {
  if (isDamaged) throw new Error(`uplink ${id} in the log does not match its checksum`);
  const decoded = decodeUplink(bytes);
  if (!decoded.ok) throw new Error(`uplink ${id} in the log can't be decoded: ${decoded.error.message}`);
  return decoded.value;
}

/**
 * Records that the store returns about a lock: log entries, findings (rules of the protocol that the lock broke), and
 * quarantined messages.
 */

import type { DisconnectCause, Finding } from '../../../../proto/power/judge/event.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import type { Command } from '../../../../proto/wire/ping.js';
import type { StoredUplink } from './stored-uplink.js';

/**
 * An event in a lock's log, with the members that it has in a trace (a recorded history, docs/traces.md). A connection
 * without `source` is the lock's, not a phone's. `expiresMs` is the time when the command expires, in ms since the
 * epoch; it is absent in traces that do not say.
 */
export type LockEvent =
  | { readonly event: 'connect'; readonly source?: 'phone' }
  | { readonly event: 'disconnect'; readonly source?: 'phone'; readonly cause: DisconnectCause }
  | { readonly event: 'gateway'; readonly state: 'start' | 'stop' }
  | { readonly event: 'command'; readonly id: number; readonly command: Command; readonly expiresMs?: number };

/** A stored finding. */
export interface StoredFinding {
  readonly id: number;
  readonly finding: Finding;
}

/** An entry of one lock's log: an uplink (a message from the lock) or another event, in the order of arrival. */
export type LogEntry =
  | { readonly type: 'uplink'; readonly uplink: StoredUplink }
  | { readonly type: 'lock-event'; readonly atMs: number; readonly event: LockEvent };

/** Bytes that could not be accepted as an uplink. */
export interface QuarantinedMessage {
  readonly id: number;
  readonly mac: Mac;
  readonly receivedAtMs: number;
  readonly code: string;
  readonly message: string;
  readonly bytes: Buffer;
}

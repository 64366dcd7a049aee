/** What the store gives back of a lock's log, of its findings and of its quarantine. */

import type { DisconnectCause, Finding } from '../../../proto/power/judge/event.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Command } from '../../../proto/wire/ping.js';
import type { StoredUplink } from './stored-uplink.js';

/** A connection is the lock's own where it has no source, as in a trace. */
export type LockEvent =
  | { readonly event: 'connect'; readonly source?: 'phone' }
  | { readonly event: 'disconnect'; readonly source?: 'phone'; readonly cause: DisconnectCause }
  | { readonly event: 'gateway'; readonly state: 'start' | 'stop' }
  | { readonly event: 'command'; readonly id: number; readonly command: Command; readonly expiresMs?: number };

/** A finding as the store has it. */
export interface StoredFinding {
  readonly id: number;
  readonly finding: Finding;
}

/** What is in the log of one lock, in the order in which it came. */
export type LogEntry =
  | { readonly type: 'uplink'; readonly uplink: StoredUplink }
  | { readonly type: 'lock-event'; readonly atMs: number; readonly event: LockEvent };

/** Bytes that could not be taken as an uplink. */
export interface QuarantinedMessage {
  readonly id: number;
  readonly mac: Mac;
  readonly receivedAtMs: number;
  readonly code: string;
  readonly message: string;
  readonly bytes: Buffer;
}

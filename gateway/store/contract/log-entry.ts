/** What the store returns from a lock's log, its findings and its quarantine. */

import type { DisconnectCause, Finding } from '../../../proto/power/judge/event.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Command } from '../../../proto/wire/ping.js';
import type { StoredUplink } from './stored-uplink.js';

/** As in a trace: a connection without a source is the lock's own. */
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

/** An entry of one lock's log. Entries come in the order of arrival. */
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

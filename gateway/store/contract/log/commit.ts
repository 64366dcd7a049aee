/**
 * What one durable commit of the log contains: uplinks and other entries as they arrive, the results of judging them,
 * and the states, commands and events that follow from them.
 */
import type { Finding, Withdrawal } from '../../../../proto/power/judge/event.js';
import type { CommandChange } from '../command-record.js';
import type { NewMerchantEvent } from '../webhooks/merchant-event.js';
import type { LockEvent } from './log-entry.js';

/**
 * The kinds of uplink by their stored numbers. Kind 0 is a lock's answer to a command; the others are pings, which are
 * events for merchants. Higher kinds are other events (webhooks/merchant-event.ts).
 */
export const UPLINK_KINDS = ['ack', 'cellular', 'gps', 'close_connection'] as const;

/** A decoded uplink to be appended to the log. */
export interface IncomingUplink {
  readonly type: 'uplink';
  readonly deviceId: number;
  readonly merchantId: number;
  /** The credential with which it was sent: the lock's own, or that of a phone that acts for it. */
  readonly credentialId: number;
  /** A counter of the lock's boots, and one of its uplinks since the boot. */
  readonly boot: number;
  readonly sequence: number;
  /** The first 8 bytes of the SHA-256 of `bytes`. The store recomputes it. */
  readonly digest: Buffer;
  /** Index into {@link UPLINK_KINDS}. */
  readonly kind: number;
  readonly bytes: Buffer;
  readonly receivedAtMs: number;
  /** It arrived over 60 s after the lock made it. */
  readonly buffered: boolean;
  /**
   * The lock's life in which it made the uplink: a number that grows whenever its flash is wiped. It is not stored,
   * since an operator may tell of such a wipe later (mark-store.ts), and the life of stored uplinks then changes.
   */
  readonly life?: number;
}

/** A connection event of a lock, a start or stop of the gateway, or a sent command: for traces (protocol.md §4). */
export interface IncomingLockEvent {
  readonly type: 'lock-event';
  readonly deviceId: number;
  readonly atMs: number;
  readonly event: LockEvent;
}

/** Bytes that can't be accepted as an uplink, to be quarantined. */
export interface IncomingQuarantine {
  readonly type: 'quarantine';
  readonly deviceId: number;
  readonly credentialId: number;
  readonly receivedAtMs: number;
  /** The error: a code, and a sentence. */
  readonly code: string;
  readonly message: string;
  readonly bytes: Buffer;
}

export type Incoming = IncomingUplink | IncomingQuarantine | IncomingLockEvent;

/**
 * The result of judging one event of a lock, that is, of checking it against the protocol's rules: new findings (broken
 * rules), and earlier findings that are taken back. Withdrawals are applied before findings.
 */
export interface Judged {
  readonly deviceId: number;
  readonly withdrawn: readonly Withdrawal[];
  readonly findings: readonly Finding[];
}

/** The content of one durable commit. */
export interface Commit {
  /** Entries for the log, in order. An uplink that the log already has with the same bytes is skipped. */
  readonly incoming: readonly Incoming[];
  /** The results of judging, in order. */
  readonly judged: readonly Judged[];
  /** JSON of each changed lock's state after the commit, by device id. */
  readonly states: ReadonlyMap<number, string>;
  /** In order. */
  readonly commands?: readonly CommandChange[];
  /** Events for merchants that the commit causes; stored if a webhook URL of the lock's merchant gets their type. */
  readonly merchantEvents?: readonly NewMerchantEvent[];
}

/**
 * A commit that stores nothing of its own. It shows that the store can write, and as every commit it moves *staged
 * events* into the log: events for merchants that the ends of commands have left for the next commit.
 */
export const EMPTY_COMMIT: Commit = { incoming: [], judged: [], states: new Map() };

/** Maximum number of quarantined messages of a lock; the oldest are deleted first (protocol.md §1). */
export const MAX_QUARANTINED_PER_LOCK = 1000;

/**
 * Maximum number of events of a lock ({@link IncomingLockEvent}), exceeded by up to a few thousand; the oldest are
 * deleted first. A normal lock needs years to reach it; it limits a lock that connects in a tight loop. Uplinks have no
 * such limit.
 */
export const MAX_LOCK_EVENTS_PER_LOCK = 100_000;

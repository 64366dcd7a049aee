/**
 * The gateway's events about its own operation: the store, readiness, clocks, operators' work, calls. events.ts has the
 * map of all events. Times (`atMs`) are by the run's clock (wall-clock time, except in a sped-up simulation), ms since
 * the epoch.
 */
import type { StoreFailureKind } from './store/contract/errors.js';
import type { AuditActor, AuditOutcome } from './store/contract/operators/audit-store.js';

/** The store failed to read or write. */
export interface StoreFailed {
  readonly atMs: number;
  readonly why: string;
}

/** Old data was deleted. */
export interface Swept {
  readonly atMs: number;
  /** Data received before this time was deleted. */
  readonly beforeMs: number;
  readonly uplinks: number;
  /** Lock events, findings and quarantined messages. */
  readonly others: number;
  /** Old events that stay because they were not delivered to a URL yet. */
  readonly held: number;
}

/** The store can no longer be trusted: the process must end (gateway/health/store.ts). */
export interface StoreBroken {
  readonly atMs: number;
  readonly why: string;
}

/** Why a gateway is not ready (gateway/health/health.ts). */
export type ReasonCode = 'starting' | 'stopping' | 'store' | 'store-broken' | 'event-loop';

/** The gateway is not ready, for a new reason. */
export interface Degraded {
  readonly atMs: number;
  readonly reason: ReasonCode;
  readonly why: string;
}

/** A reason for not being ready has ended. */
export interface Recovered {
  readonly atMs: number;
  readonly reason: ReasonCode;
  /** How long it lasted, wall-clock time. */
  readonly lastedMs: number;
}

/** The machine's clock jumped and is in doubt, or is confirmed (gateway/clocks/clock-guard.ts). */
export interface ClockStateChanged {
  readonly atMs: number;
  readonly state: 'agrees' | 'ahead' | 'behind';
  /** The machine's date, ms since the epoch. */
  readonly machineMs: number;
  /** The confirmed time. */
  readonly confirmedMs: number;
  /** A sentence for people. */
  readonly why: string;
}

/** A merchant's month was closed. */
export interface StatementClosed {
  readonly atMs: number;
  readonly merchant: string;
  /** Such as `2026-11`. */
  readonly month: string;
  /** Whether the gateway closed it automatically; otherwise an operator did. */
  readonly byItself: boolean;
}

/**
 * A change, or an attempted one, that the audit log recorded (gateway/audit/audit.ts). It contains no secret.
 */
export interface Audited {
  readonly atMs: number;
  readonly actor: AuditActor;
  readonly address: string | null;
  readonly osUser: string | null;
  /** The merchant of the user or API key that acted, and their names; null for others. */
  readonly merchant: string | null;
  readonly user: string | null;
  readonly key: string | null;
  /** Such as `device.set`. */
  readonly action: string;
  readonly object: string;
  readonly outcome: AuditOutcome;
  readonly code: string | null;
}

/** A notify URL fails, or works again (gateway/notify/). */
export interface NotifyUrlChanged {
  readonly atMs: number;
  /** Null for the operators' URL. */
  readonly merchant: { readonly id: number; readonly name: string } | null;
  readonly state: 'failing' | 'working';
  /** For people. */
  readonly why: string;
}

/** Notices for operators were written (gateway/notices/notices.ts). */
export interface NoticesWritten {
  readonly atMs: number;
  /** How many were written. */
  readonly noted: number;
  /** How many are unread now. */
  readonly unread: number;
}

/** One durable write, successful or failed. */
export interface CommitMade {
  readonly atMs: number;
  readonly what: CommitKind;
  readonly durationMs: number;
  /** The number of uplinks and events, or of outcomes of deliveries; 1 for any other write. */
  readonly rows: number;
  /** Undefined if it succeeded. */
  readonly failure: StoreFailureKind | undefined;
}

/** The kind of a write: incoming uplinks and events, outcomes of deliveries, or anything else. */
export type CommitKind = 'ingest' | 'deliveries' | 'other';

/** A publish at QoS 1 was answered. */
export interface Acknowledged {
  /** From the arrival of the publish to handing the PUBACK to the socket. */
  readonly durationMs: number;
}

/** File descriptors are too few for the registered locks, run short, or suffice again (network/descriptor-watch.ts). */
export interface DescriptorsChanged {
  readonly atMs: number;
  readonly state: 'few' | 'short' | 'enough';
  /** Maximum number that the process may have open. */
  readonly limit: number;
  /** A sentence for operators. */
  readonly why: string;
}

/** Progress of the upgrade of an older store, before the gateway can start. */
export interface StoreCatchingUp {
  readonly atMs: number;
  /** The number of upgraded uplinks, and of all uplinks. */
  readonly done: number;
  readonly of: number;
}

/** Files of the data folder were readable by other users; their modes were corrected. */
export interface FilesMended {
  readonly atMs: number;
  /** A sentence that names the files. */
  readonly what: string;
}

/** The store's database has a setting that is unsafe, but with which a gateway may start. */
export interface StoreWarning {
  readonly atMs: number;
  /** A sentence. */
  readonly what: string;
}

/** A tile of the pages' maps could not be fetched. The event has no URL: that of the tile server may have a key. */
export interface TileFailed {
  readonly atMs: number;
  readonly why: string;
}

/** A call of the merchants' interface was answered. The event has neither URL nor body: they may contain a password. */
export interface RequestAnswered {
  readonly atMs: number;
  /** The value of `X-Request-Id`. */
  readonly requestId: string;
  readonly method: string;
  /** The path pattern of the route, or `(none)`. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
  /** An error of the gateway itself; undefined if there was none. */
  readonly why: string | undefined;
}

/**
 * The events of the gateway, as a typed event map. The gateway's parts emit them; the log, metrics, notices, `tail`,
 * the demo and tests listen, so that parts need not call each other. Times are by the run's clock (wall-clock time,
 * except in a sped-up simulation), ms since the epoch.
 */
import { EventEmitter } from 'node:events';
import type { DisconnectCause, Finding } from '../proto/power/judge/event.js';
import type { Presence } from '../proto/power/judge/presence.js';
import type { Mac } from '../proto/wire/mac.js';
import type { Source, Uplink } from '../proto/wire/ping.js';
import type { RefusalReason } from './mqtt/refusals/refusal-reason.js';
import type { CommandRecord } from './store/contract/command-record.js';
import type { RefusedWhat } from './store/contract/devices/refusal-store.js';
import type { StoreFailureKind } from './store/contract/errors.js';
import type { AuditActor, AuditOutcome } from './store/contract/operators/audit-store.js';

export interface LockConnected {
  readonly atMs: number;
  readonly mac: Mac;
  readonly source: Source;
  readonly simulated: boolean;
}

export interface LockDisconnected {
  readonly atMs: number;
  readonly mac: Mac;
  readonly source: Source;
  readonly cause: DisconnectCause;
}

/** Something that the gateway refused. */
export interface Refused {
  readonly atMs: number;
  readonly what: RefusedWhat;
  /** The client id as given, at most 64 characters. */
  readonly clientId: string;
  /** The lock that the client id or user name claims; null if neither is a MAC. */
  readonly mac: Mac | null;
  /** Whether the client id is a lock's or a phone's. */
  readonly source: Source;
  /** Whether the client is authenticated. Otherwise its MAC is only a claim. */
  readonly isAuthenticated: boolean;
  readonly address: string;
  readonly reason: RefusalReason;
  /** A sentence for operators; the client itself only gets the MQTT code. */
  readonly why: string;
}

/**
 * A lock, or the phones that act for it, exceeded the uplink budget (gateway/mqtt/budget/), or is within it again.
 * Nothing is refused: the gateway only reads the lock more slowly.
 */
export interface BudgetChanged {
  readonly atMs: number;
  readonly mac: Mac;
  readonly source: Source;
  readonly state: 'over' | 'within';
  /** For people. */
  readonly why: string;
}

/** The judging of a lock stopped because the judge threw (gateway/ingest/judging.ts), or resumed. */
export interface JudgingTurned {
  readonly atMs: number;
  readonly mac: Mac;
  readonly state: 'stopped' | 'resumed';
  /** The message of the exception; empty if judging resumed. */
  readonly why: string;
}

/** An uplink of a lock or phone was stored and acknowledged. */
export interface UplinkTaken {
  readonly atMs: number;
  readonly mac: Mac;
  readonly source: Source;
  /** The id of the credential with which it was sent. */
  readonly credentialId: number;
  readonly eventId: string;
  readonly uplink: Uplink;
  /** The received bytes. */
  readonly bytes: Buffer;
  readonly buffered: boolean;
  /** Whether the log already had the uplink with the same bytes. */
  readonly repeated: boolean;
  readonly simulated: boolean;
  /** The judge's findings. Some may be about an earlier uplink. */
  readonly findings: readonly Finding[];
}

/** A finding that did not result from an uplink, but from a connection or the passing of time. */
export interface FindingMade {
  readonly atMs: number;
  readonly mac: Mac;
  readonly finding: Finding;
}

/** The presence of a lock changed (protocol.md §3). */
export interface PresenceChanged {
  readonly atMs: number;
  readonly mac: Mac;
  readonly presence: Presence;
}

/** A lock's boot counter went back (boot-back, protocol.md §3). */
export interface BootBack {
  readonly atMs: number;
  readonly mac: Mac;
  /** When the lower boot was first used, by the lock's clock. */
  readonly sinceMs: number;
}

/** An operator marked a lock as reflashed (protocol.md §1). */
export interface LockReflashed {
  readonly atMs: number;
  readonly mac: Mac;
  /** When the lock's boots start to count anew, by the lock's clock. */
  readonly markMs: number;
  /** When a lower boot counter was first used that no mark explains; undefined if there is none. */
  readonly backSinceMs: number | undefined;
}

/** Received bytes that are not an uplink were quarantined. */
export interface UplinkQuarantined {
  readonly atMs: number;
  readonly mac: Mac;
  readonly code: string;
  readonly message: string;
  readonly bytes: Buffer;
}

/** A delivery of an event to a webhook URL was attempted. */
export interface DeliveryAttempted {
  readonly atMs: number;
  readonly urlId: number;
  readonly mac: Mac;
  readonly eventId: string;
  /** The number of the attempt, 1 for the first. */
  readonly number: number;
  /** The HTTP status; null if there was no answer. */
  readonly status: number | null;
  readonly durationMs: number;
  /** Why it failed; null if it was delivered. */
  readonly error: string | null;
  /** `dead`: no further attempt follows. */
  readonly outcome: 'delivered' | 'pending' | 'dead';
  /** Wall-clock time of the next attempt; null if none follows. */
  readonly nextAttemptAtMs: number | null;
}

/** An event was not sent to a URL, since its stored ping does not match its checksum. It waits until it is repaired. */
export interface EventDamaged {
  readonly atMs: number;
  readonly mac: Mac;
  readonly eventId: string;
  readonly urlId: number;
}

/** The gateway disabled a webhook URL. It gets no attempts until an operator activates it. */
export interface UrlDisabled {
  readonly atMs: number;
  readonly urlId: number;
  readonly why: string;
}

/** An operator changed a webhook URL. If it is active, attempts start again. */
export interface UrlChanged {
  readonly atMs: number;
  readonly urlId: number;
  readonly state: 'active' | 'disabled' | 'removed';
}

/** A URL's circuit breaker opened or closed. While it is open, only probes are sent. */
export interface CircuitChanged {
  readonly atMs: number;
  readonly urlId: number;
  readonly state: 'opened' | 'closed';
  /** The result of the last attempt, for people. */
  readonly why: string;
}

/** A webhook URL is far behind, or has caught up (webhooks/backlogs.ts). */
export interface BacklogChanged {
  readonly atMs: number;
  readonly urlId: number;
  readonly state: 'behind' | 'caught-up';
  /** How far, for people. */
  readonly why: string;
}

/** Webhooks can't be sent since this machine lacks a resource, or can be sent again. */
export interface CannotSend {
  readonly atMs: number;
  /** The lacking resource. */
  readonly what: 'descriptors' | 'memory' | 'ports' | 'name-service';
  readonly state: 'began' | 'ended';
  /** For people. */
  readonly why: string;
}

/** The store refuses the outcomes of attempts at a URL, or has now stored all of them. */
export interface CannotRecord {
  readonly atMs: number;
  readonly urlId: number;
  readonly state: 'began' | 'ended';
  /** For people: which uplinks, and the store's error. */
  readonly why: string;
}

/** A command was accepted, sent (each time), answered, expired or cancelled; `record` is its present state. */
export interface CommandChanged {
  readonly atMs: number;
  readonly mac: Mac;
  readonly record: CommandRecord;
}

/** A lock acknowledged a command that was never sent to it. The acknowledgement has no effect. */
export interface StrayAck {
  readonly atMs: number;
  readonly mac: Mac;
  readonly commandId: number;
  readonly why: string;
}

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

/** The stored state of a lock could not be read at the start, and was rebuilt. */
export interface StateRebuilt {
  readonly atMs: number;
  readonly mac: Mac;
  /** What was wrong with the stored state, for people. */
  readonly why: string;
  /** `log`: from the lock's whole log. `nothing`: the log could not be read either, so the state is a new lock's. */
  readonly from: 'log' | 'nothing';
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

/** One commit stored uplinks: one event for all of them, for metrics. */
export interface UplinksStored {
  readonly uplinks: readonly Pick<UplinkTaken, 'uplink' | 'repeated' | 'findings'>[];
}

/** The states of some locks may have changed. One event for all locks of a commit, for streams of locks. */
export interface LocksChanged {
  /** The device ids of the locks are those of the objects, each at most once. */
  readonly locks: readonly { readonly deviceId: number }[];
}

/** Locks were added. */
export interface LocksAdded {
  readonly macs: readonly Mac[];
}

/** A merchant lost a lock: it was moved to another merchant or taken out of service. */
export interface LockDeparted {
  readonly deviceId: number;
  readonly mac: Mac;
  /** Who lost it. */
  readonly merchantId: number;
}

export interface GatewayEventMap {
  connected: [LockConnected];
  disconnected: [LockDisconnected];
  refused: [Refused];
  budget: [BudgetChanged];
  judging: [JudgingTurned];
  uplink: [UplinkTaken];
  finding: [FindingMade];
  presence: [PresenceChanged];
  quarantined: [UplinkQuarantined];
  delivery: [DeliveryAttempted];
  'event-damaged': [EventDamaged];
  'url-disabled': [UrlDisabled];
  'url-changed': [UrlChanged];
  circuit: [CircuitChanged];
  backlog: [BacklogChanged];
  'cannot-send': [CannotSend];
  'cannot-record': [CannotRecord];
  swept: [Swept];
  command: [CommandChanged];
  'stray-ack': [StrayAck];
  'store-failed': [StoreFailed];
  'store-broken': [StoreBroken];
  degraded: [Degraded];
  recovered: [Recovered];
  clock: [ClockStateChanged];
  'statement-closed': [StatementClosed];
  descriptors: [DescriptorsChanged];
  notices: [NoticesWritten];
  'notify-url': [NotifyUrlChanged];
  'catching-up': [StoreCatchingUp];
  'files-mended': [FilesMended];
  audited: [Audited];
  /* For metrics only: too many for streams. */
  stored: [UplinksStored];
  commit: [CommitMade];
  acknowledged: [Acknowledged];
  request: [RequestAnswered];
  'state-rebuilt': [StateRebuilt];
  /* For notices only: streams have the findings and the audit log. */
  'boot-back': [BootBack];
  reflashed: [LockReflashed];
  /* For streams of locks only (gateway/live/). */
  'locks-changed': [LocksChanged];
  'locks-added': [LocksAdded];
  'lock-departed': [LockDeparted];
}

/** The events that `tail` does not contain: they are only counted, or are emitted before a stream can exist. */
export type UnstreamedEventName =
  | 'stored'
  | 'commit'
  | 'acknowledged'
  | 'request'
  | 'catching-up'
  | 'files-mended'
  | 'boot-back'
  | 'reflashed'
  | 'locks-changed'
  | 'locks-added'
  | 'lock-departed';

/** Node warns of a leak beyond this number of listeners: some parts of the gateway, and one for each `tail`. */
const MAX_EXPECTED_LISTENERS = 64;

export class GatewayEvents extends EventEmitter<GatewayEventMap> {
  constructor() {
    super();
    this.setMaxListeners(MAX_EXPECTED_LISTENERS);
  }
}

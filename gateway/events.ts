/**
 * What happens in the gateway, as a typed event map. Log, `tail`, the demo and tests listen; nobody has to be called.
 * Times are by the run's clock, ms since the epoch.
 */
import { EventEmitter } from 'node:events';
import type { DisconnectCause, Finding } from '../proto/power/judge/event.js';
import type { Presence } from '../proto/power/judge/presence.js';
import type { Mac } from '../proto/wire/mac.js';
import type { Source, Uplink } from '../proto/wire/ping.js';
import type { RefusalReason } from './mqtt/refusals/refusal-reason.js';
import type { AuditActor, AuditOutcome } from './store/contract/audit-store.js';
import type { CommandRecord } from './store/contract/command-record.js';
import type { StoreFailureKind } from './store/contract/errors.js';
import type { RefusedWhat } from './store/contract/refusal-store.js';

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

/** Something that the gateway did not take from whoever connected. */
export interface Refused {
  readonly atMs: number;
  readonly what: RefusedWhat;
  /** The client id as given, at most 64 characters. */
  readonly clientId: string;
  /** The lock that it is about, as its client id or user name has it; null where neither is a lock's. */
  readonly mac: Mac | null;
  /** Whether it came from the lock or from a phone that acts for it, by its client id. */
  readonly source: Source;
  /** It had proved who it is. Anybody can say a MAC. */
  readonly isAuthenticated: boolean;
  readonly address: string;
  readonly reason: RefusalReason;
  /** A sentence for operators; the client itself is told no more than the MQTT code. */
  readonly why: string;
}

/**
 * A lock, or the phones that act for it, sent more than it may (gateway/mqtt/budget/), or is within its budget again.
 * Nothing was refused: it is read more slowly.
 */
export interface BudgetTurned {
  readonly atMs: number;
  readonly mac: Mac;
  readonly source: Source;
  readonly state: 'over' | 'within';
  /** For people. */
  readonly why: string;
}

/** A lock is not judged any more, because the judge threw (gateway/judging/), or is judged again. */
export interface JudgingTurned {
  readonly atMs: number;
  readonly mac: Mac;
  readonly state: 'stopped' | 'resumed';
  /** What was thrown; empty where it is judged again. */
  readonly why: string;
}

export interface UplinkTaken {
  readonly atMs: number;
  readonly mac: Mac;
  readonly source: Source;
  readonly eventId: string;
  readonly uplink: Uplink;
  /** As they came. */
  readonly bytes: Buffer;
  readonly buffered: boolean;
  /** It was in the log already, with the same bytes. */
  readonly repeated: boolean;
  readonly simulated: boolean;
  /** What judging it brought; some may be about an earlier uplink. */
  readonly findings: readonly Finding[];
}

/** A finding that no uplink brought: of a connection, or of time that passed. */
export interface FindingMade {
  readonly atMs: number;
  readonly mac: Mac;
  readonly finding: Finding;
}

/** What a lock's silence or connection means now, where that changed (protocol.md §3). */
export interface PresenceChanged {
  readonly atMs: number;
  readonly mac: Mac;
  readonly presence: Presence;
}

/** A lock's boot counter went back (boot-back, protocol.md §3). */
export interface BootBack {
  readonly atMs: number;
  readonly mac: Mac;
  /** When the lower boot began to be used, by the lock's clock. */
  readonly sinceMs: number;
}

/** An operator marked a lock as reflashed (protocol.md §1). */
export interface LockReflashed {
  readonly atMs: number;
  readonly mac: Mac;
  /** When the new life begins, by the lock's clock. */
  readonly markMs: number;
  /** When a lower boot began to be used that the marks don't explain; undefined where they explain all. */
  readonly backSinceMs: number | undefined;
}

export interface UplinkQuarantined {
  readonly atMs: number;
  readonly mac: Mac;
  readonly code: string;
  readonly message: string;
  readonly bytes: Buffer;
}

export interface DeliveryAttempted {
  readonly atMs: number;
  readonly urlId: number;
  readonly mac: Mac;
  readonly eventId: string;
  /** 1 for the first. */
  readonly number: number;
  readonly status: number | null;
  readonly durationMs: number;
  readonly error: string | null;
  readonly outcome: 'delivered' | 'pending' | 'dead';
  /** By the wall's clock; null where none follows. */
  readonly nextAttemptAtMs: number | null;
}

/** An event was not sent to a URL, since its stored ping does not fit its checksum. It waits until that is mended. */
export interface EventDamaged {
  readonly atMs: number;
  readonly mac: Mac;
  readonly eventId: string;
  readonly urlId: number;
}

export interface UrlDisabled {
  readonly atMs: number;
  readonly urlId: number;
  readonly why: string;
}

/** An operator changed a URL: it is tried anew as it is now, or gone. */
export interface UrlChanged {
  readonly atMs: number;
  readonly urlId: number;
  readonly state: 'active' | 'disabled' | 'removed';
}

/** A URL's circuit: while it is open, probes alone are sent there. */
export interface CircuitTurned {
  readonly atMs: number;
  readonly urlId: number;
  readonly state: 'opened' | 'closed';
  /** What the last attempt came to, for people. */
  readonly why: string;
}

/** A webhook URL is far behind, or is so no longer (webhooks/backlogs.ts). */
export interface BacklogTurned {
  readonly atMs: number;
  readonly urlId: number;
  readonly state: 'behind' | 'caught-up';
  /** How far, for people. */
  readonly why: string;
}

/** Attempts at webhooks can't be made for a reason of our own; or they are made again. */
export interface CannotSend {
  readonly atMs: number;
  /** What is lacking. */
  readonly what: 'descriptors' | 'memory' | 'ports' | 'name-service';
  readonly state: 'began' | 'ended';
  /** For people. */
  readonly why: string;
}

/** The store refuses what came of attempts at a URL, for its own sake; or all of it is kept by now. */
export interface CannotRecord {
  readonly atMs: number;
  readonly urlId: number;
  readonly state: 'began' | 'ended';
  /** For people: of which uplinks, and what the store says. */
  readonly why: string;
}

/** A command was taken, sent (each time that it is), answered, expired or cancelled: it is as it stands now. */
export interface CommandChanged {
  readonly atMs: number;
  readonly mac: Mac;
  readonly record: CommandRecord;
}

/** A lock acknowledged a command that was never sent to it. It changes nothing. */
export interface StrayAck {
  readonly atMs: number;
  readonly mac: Mac;
  readonly commandId: number;
  readonly why: string;
}

export interface StoreFailed {
  readonly atMs: number;
  readonly why: string;
}

/** What was too old was deleted. */
export interface Swept {
  readonly atMs: number;
  /** What came before this time, ms since the epoch. */
  readonly beforeMs: number;
  readonly uplinks: number;
  /** Lock events, findings and quarantined messages. */
  readonly others: number;
  /** Events that are as old, and stay because a URL has not had them yet. */
  readonly held: number;
}

/** The store is not to be believed any more: the process has to end (gateway/health/store.ts). */
export interface StoreBroken {
  readonly atMs: number;
  readonly why: string;
}

/** Why a gateway is not ready (gateway/health/health.ts). */
export type ReasonCode = 'starting' | 'stopping' | 'store' | 'store-broken' | 'event-loop';

/** The gateway is no longer ready, or for one reason more. */
export interface Degraded {
  readonly atMs: number;
  readonly reason: ReasonCode;
  readonly why: string;
}

/** A reason for not being ready is gone. */
export interface Recovered {
  readonly atMs: number;
  readonly reason: ReasonCode;
  /** How long it lasted, by the wall's clock. */
  readonly lastedMs: number;
}

/** The machine's clock leapt and is believed no longer, or is believed again (gateway/clocks/clock-guard.ts). */
export interface ClockTurned {
  readonly atMs: number;
  readonly state: 'agrees' | 'ahead' | 'behind';
  /** What the machine's clock says, ms since the epoch. */
  readonly machineMs: number;
  /** The time that is believed meanwhile. */
  readonly confirmedMs: number;
  /** A sentence for people. */
  readonly why: string;
}

/** A merchant's month was closed. */
export interface StatementClosed {
  readonly atMs: number;
  readonly merchant: string;
  /** As `2026-11`. */
  readonly month: string;
  /** Whether the gateway did so on its own; an operator's wish else. */
  readonly byItself: boolean;
}

/**
 * Something was changed, or should have been, and the audit log has it (gateway/audit/audit.ts). No secret stands here.
 */
export interface Audited {
  readonly atMs: number;
  readonly actor: AuditActor;
  readonly address: string | null;
  readonly osUser: string | null;
  /** As `device.set`. */
  readonly action: string;
  readonly object: string;
  readonly outcome: AuditOutcome;
  readonly code: string | null;
}

/** Notices for operators were written (gateway/notices/notices.ts). */
export interface NoticesWritten {
  readonly atMs: number;
  /** How many were made or repeated. */
  readonly noted: number;
  /** How many are unread now. */
  readonly unread: number;
}

/** One durable write, made or failed. */
export interface CommitMade {
  readonly atMs: number;
  readonly what: CommitKind;
  readonly durationMs: number;
  /** Uplinks and what else came in, or outcomes of deliveries; 1 for what is neither. */
  readonly rows: number;
  /** Undefined where it was made. */
  readonly failure: StoreFailureKind | undefined;
}

/** What a write was of: what came in, what came of deliveries, or anything else. */
export type CommitKind = 'ingest' | 'deliveries' | 'other';

/** A publish at QoS 1 was answered. */
export interface Acknowledged {
  /** From its arrival to the PUBACK's being handed to the socket. */
  readonly durationMs: number;
}

/** What was stored of a lock's state could not be read at the start, and was made anew. */
export interface StateRebuilt {
  readonly atMs: number;
  readonly mac: Mac;
  /** What was wrong with it, for people. */
  readonly why: string;
  /** `log`: from all that is stored of the lock. `nothing`: that could not be read either, so it is as a new lock's. */
  readonly from: 'log' | 'nothing';
}

/** File descriptors (network/descriptor-watch.ts): too few for what is registered, running short, or enough again. */
export interface DescriptorsTurned {
  readonly atMs: number;
  readonly state: 'few' | 'short' | 'enough';
  /** The most that the process may have open. */
  readonly limit: number;
  /** A sentence for operators. */
  readonly why: string;
}

/** A store from an older version is made ready, before the gateway can start. */
export interface StoreCatchingUp {
  readonly atMs: number;
  /** Ids of uplinks that are done, and the last of them. */
  readonly done: number;
  readonly of: number;
}

/** Files of the data folder could be read by others, and can't be any more. */
export interface FilesMended {
  readonly atMs: number;
  /** A sentence that says which. */
  readonly what: string;
}

/** A call of the merchants' interface was answered. Nothing of what was asked stands here: it may hold a password. */
export interface RequestAnswered {
  readonly atMs: number;
  /** As `X-Request-Id` had it. */
  readonly requestId: string;
  readonly method: string;
  /** The path of the row, or `(none)`. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
  /** What of ours broke; undefined where nothing did. */
  readonly why: string | undefined;
}

/** Uplinks were stored, with one commit: for figures, which need not be told of each by itself. */
export interface UplinksStored {
  readonly uplinks: readonly Pick<UplinkTaken, 'uplink' | 'repeated' | 'findings'>[];
}

export interface GatewayEventMap {
  connected: [LockConnected];
  disconnected: [LockDisconnected];
  refused: [Refused];
  budget: [BudgetTurned];
  judging: [JudgingTurned];
  uplink: [UplinkTaken];
  finding: [FindingMade];
  presence: [PresenceChanged];
  quarantined: [UplinkQuarantined];
  delivery: [DeliveryAttempted];
  'event-damaged': [EventDamaged];
  'url-disabled': [UrlDisabled];
  'url-changed': [UrlChanged];
  circuit: [CircuitTurned];
  backlog: [BacklogTurned];
  'cannot-send': [CannotSend];
  'cannot-record': [CannotRecord];
  swept: [Swept];
  command: [CommandChanged];
  'stray-ack': [StrayAck];
  'store-failed': [StoreFailed];
  'store-broken': [StoreBroken];
  degraded: [Degraded];
  recovered: [Recovered];
  clock: [ClockTurned];
  'statement-closed': [StatementClosed];
  descriptors: [DescriptorsTurned];
  notices: [NoticesWritten];
  'catching-up': [StoreCatchingUp];
  'files-mended': [FilesMended];
  audited: [Audited];
  /* Figures: too many to be told one by one, so no stream has them. */
  stored: [UplinksStored];
  commit: [CommitMade];
  acknowledged: [Acknowledged];
  request: [RequestAnswered];
  'state-rebuilt': [StateRebuilt];
  /* Notices alone listen to these; streams have the findings, and the audit log. */
  'boot-back': [BootBack];
  reflashed: [LockReflashed];
}

/** Those that are counted and not told; and what there is to tell before a stream can be there. */
export type FigureName =
  | 'stored'
  | 'commit'
  | 'acknowledged'
  | 'request'
  | 'catching-up'
  | 'files-mended'
  | 'boot-back'
  | 'reflashed';

/** How many listeners there may be before Node warns of a leak: some parts of ours, and one for each `tail`. */
const EXPECTED_LISTENERS = 64;

export class GatewayEvents extends EventEmitter<GatewayEventMap> {
  constructor() {
    super();
    this.setMaxListeners(EXPECTED_LISTENERS);
  }
}

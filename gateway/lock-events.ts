/**
 * The gateway's events about locks and what they send: connections, uplinks, findings, commands. events.ts has the map
 * of all events. Times (`atMs`) are by the run's clock (wall-clock time, except in a sped-up simulation), ms since the
 * epoch.
 */
import type { DisconnectCause, Finding } from '../proto/power/judge/event.js';
import type { Presence } from '../proto/power/judge/presence.js';
import type { Mac } from '../proto/wire/mac.js';
import type { Source, Uplink } from '../proto/wire/ping.js';
import type { RefusalReason } from './mqtt/refusals/refusal-reason.js';
import type { CommandRecord } from './store/contract/command-record.js';
import type { RefusedWhat } from './store/contract/devices/refusal-store.js';

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
  /** Whether it was received over a minute after the lock made it. */
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
  /** What was wrong with them: for programs, and as a sentence. */
  readonly code: string;
  readonly message: string;
  readonly bytes: Buffer;
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

/** The stored state of a lock could not be read at the start, and was rebuilt. */
export interface StateRebuilt {
  readonly atMs: number;
  readonly mac: Mac;
  /** What was wrong with the stored state, for people. */
  readonly why: string;
  /** `log`: from the lock's whole log. `nothing`: the log could not be read either, so the state is a new lock's. */
  readonly from: 'log' | 'nothing';
}

/** One commit stored uplinks: one event for all of them, for metrics. */
export interface UplinksStored {
  readonly uplinks: readonly Pick<UplinkTaken, 'uplink' | 'repeated' | 'findings'>[];
}

/** The states of some locks may have changed. One event for all locks of a commit, for streams of locks. */
export interface LocksChanged {
  /** Each lock at most once. Emitters may pass whole lock objects; listeners read only the id. */
  readonly locks: readonly { readonly deviceId: number }[];
  /** Whether somebody changed what is stored about them, such as a name. Absent if only their states may differ. */
  readonly isEdit?: boolean;
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

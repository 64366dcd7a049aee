/**
 * What the gateway asks of its store. One contract suite (test/gateway/store/store-contract.ts) holds every engine to
 * it.
 *
 * The promise of every method that writes resolves after the write is on the disk (fsynced), and rejects with a
 * StoreFailure (errors.ts) where it could not be made so; nothing of a rejected call is kept.
 */

import type { Finding, Withdrawal } from '../../../proto/power/judge/event.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Source } from '../../../proto/wire/ping.js';
import type { AccessStore } from './access-store.js';
import type { AuditStore } from './audit-store.js';
import type { CommandChange, CommandStore } from './command-record.js';
import type { LockEvent, LogEntry, QuarantinedMessage, StoredFinding } from './log-entry.js';
import type { MarkStore } from './mark-store.js';
import type { NoticeStore } from './notice-store.js';
import type { PeopleStore } from './people-store.js';
import type { RefusalStore } from './refusal-store.js';
import type { SecretStore } from './secret-store.js';
import type { StoreCopy } from './store-copy.js';
import type { DiskSpace, StoreFigures } from './store-figures.js';
import type { StoredUplink } from './stored-uplink.js';
import type { UsageStore } from './usage-store.js';
import type { Failing, Hold, WebhookStore, WebhookUrl } from './webhook-store.js';
import type { WhyStore } from './why-store.js';

export type { LockEvent, LogEntry, QuarantinedMessage, StoredFinding } from './log-entry.js';
export type { StoredUplink } from './stored-uplink.js';
export type { WebhookUrl } from './webhook-store.js';

export interface Merchant {
  readonly id: number;
  readonly name: string;
  readonly createdAtMs: number;
}

export interface Device {
  readonly id: number;
  readonly mac: Mac;
  readonly merchantId: number;
  readonly merchantName: string;
  readonly simulated: boolean;
  readonly createdAtMs: number;
}

/** A lock and what it may prove itself with. */
export interface LockAccount {
  readonly deviceId: number;
  readonly merchantId: number;
  readonly mac: Mac;
  readonly simulated: boolean;
  /** Those that are not revoked first, then newest first; at most {@link CREDENTIALS_READ}. */
  readonly credentials: readonly StoredCredential[];
}

/** What a lock, or a phone that acts for it, proves itself with. */
export interface StoredCredential {
  readonly id: number;
  readonly secretHash: Buffer;
  /** From then on it proves nothing, ms since the epoch by the wall's clock; null where it never expires. */
  readonly expiresAtMs: number | null;
  readonly isRevoked: boolean;
}

/** Credentials of a lock that a CONNECT is compared with: all that may hold, and of the revoked ones the newest. */
export const CREDENTIALS_READ = 64;

/** Phone credentials that a lock may have at the same time, those that expired or were revoked not counted. */
export const PHONES_PER_LOCK = 32;

/** A phone that acts for a lock (protocol.md §1). */
export interface Phone {
  readonly credentialId: number;
  readonly name: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  readonly revokedAtMs: number | null;
}

export interface NewPhone {
  readonly mac: Mac;
  readonly name: string;
  readonly secretHash: Buffer;
  readonly expiresAtMs: number | null;
  readonly nowMs: number;
}

/** Credentials that hold no longer, or from a time on, and whose they are: their live connections are to end. */
export interface EndedCredentials {
  readonly deviceId: number;
  readonly credentialIds: readonly number[];
}

/** What an operator changes of a lock; what is left out stays. */
export interface DeviceChange {
  readonly mac: Mac;
  /** The merchant's name. */
  readonly merchant?: string | undefined;
  readonly simulated?: boolean | undefined;
  /** JSON of what is known of the lock from now on; left out where it stays, null where nothing is. */
  readonly state?: string | null;
  /** Given with a move: commands that wait are cancelled as of this time, by the run's clock. */
  readonly cancelledAtMs?: number | undefined;
}

/** What an erasure took away. */
export interface Erased {
  readonly uplinks: number;
  readonly findings: number;
  readonly quarantined: number;
  readonly lockEvents: number;
  readonly refusals: number;
  /** Deliveries that waited for a retry. */
  readonly pendingDeliveries: number;
}

/** The tables that grow with time, and are cut by age. */
export const AGING_TABLES = ['uplink', 'lock_event', 'finding', 'quarantine'] as const;

/** A piece of a table, in the order of arrival, from which what is too old is deleted. */
export interface AgingPiece {
  readonly table: (typeof AGING_TABLES)[number];
  /** What came before this time is too old: ms since the epoch, by the run's clock. */
  readonly beforeMs: number;
  /** Only what comes after this id. */
  readonly afterId: number;
  /** Rows looked at. */
  readonly limit: number;
}

/** What became of an {@link AgingPiece}. */
export interface AgedPiece {
  readonly deleted: number;
  /** Events that are too old and not delivered yet: they stay. */
  readonly held: number;
  /** Where the next piece begins; null where nothing old is left. */
  readonly nextId: number | null;
}

/** Kinds of uplink as stored: 0 is an acknowledgement, the others are pings and so events for merchants. */
export const UPLINK_KINDS = ['ack', 'cellular', 'gps', 'close_connection'] as const;

/** A decoded uplink on its way into the log. */
export interface IncomingUplink {
  readonly type: 'uplink';
  readonly deviceId: number;
  readonly merchantId: number;
  readonly credentialId: number;
  readonly boot: number;
  readonly sequence: number;
  /** The first 8 bytes of the SHA-256 of `bytes`. The store works it out for itself. */
  readonly digest: Buffer;
  /** Index into {@link UPLINK_KINDS}. */
  readonly kind: number;
  readonly bytes: Buffer;
  readonly receivedAtMs: number;
  readonly buffered: boolean;
  /** Which life of its lock it was made in (protocol.md §1); it is not stored, since marks may come later. */
  readonly life?: number;
}

/** What happened to a lock’s connection or the gateway’s listening, or a command sent: for traces (protocol.md §4). */
export interface IncomingLockEvent {
  readonly type: 'lock-event';
  readonly deviceId: number;
  readonly atMs: number;
  readonly event: LockEvent;
}

/** Bytes that can't be taken as an uplink, on their way into quarantine. */
export interface IncomingQuarantine {
  readonly type: 'quarantine';
  readonly deviceId: number;
  readonly credentialId: number;
  readonly receivedAtMs: number;
  readonly code: string;
  readonly message: string;
  readonly bytes: Buffer;
}

export type Incoming = IncomingUplink | IncomingQuarantine | IncomingLockEvent;

/** What judging one event of a lock brought. The withdrawals come before the findings. */
export interface Judged {
  readonly deviceId: number;
  readonly withdrawn: readonly Withdrawal[];
  readonly findings: readonly Finding[];
}

/** What one durable commit is made of. */
export interface Commit {
  /** For the log, in order. An uplink that is in it already with the same bytes is left out. */
  readonly incoming: readonly Incoming[];
  /** In order. */
  readonly judged: readonly Judged[];
  /** JSON of what is known of each lock afterwards, by device id. */
  readonly states: ReadonlyMap<number, string>;
  /** In order. */
  readonly commands?: readonly CommandChange[];
}

/** How many quarantined messages are kept for each lock, oldest out first (protocol.md §1). */
export const QUARANTINE_PER_LOCK = 1000;

/**
 * How many events of connections are kept for each lock, oldest out first, give or take a few thousand: years of a lock
 * that behaves, and a bound for one that connects in a tight loop. Its uplinks are kept for ever all the same.
 */
export const LOCK_EVENTS_PER_LOCK = 100_000;

/** A retry that is due. */
export interface DueDelivery {
  readonly uplink: StoredUplink;
  /** How many attempts were made so far. */
  readonly attempts: number;
  /** How many of them before it was last sent anew: the schedule begins after them. */
  readonly attemptsBefore: number;
}

/** One attempt at a delivery, and what follows from it. */
export interface AttemptRecord {
  readonly urlId: number;
  readonly uplinkId: number;
  /** 1 for the first. */
  readonly number: number;
  readonly atMs: number;
  readonly durationMs: number;
  readonly status: number | null;
  readonly error: string | null;
  readonly answer: string | null;
  /** The delivery has a row, though this may be its first attempt. */
  readonly hasRow?: boolean;
  /** Where the delivery stands now; `delivered` at the first attempt needs no row. */
  readonly outcome:
    | { readonly state: 'delivered' }
    | { readonly state: 'pending'; readonly nextAttemptAtMs: number }
    | { readonly state: 'dead' };
}

/** What a URL's worker wants remembered, in one commit. */
export interface DeliveryProgress {
  readonly urlId: number;
  readonly attempts: readonly AttemptRecord[];
  /** Events that wait, without an attempt, for an earlier one of their lock; due from `atMs` on, once it has an end. */
  readonly blocked?: readonly { readonly uplinkId: number; readonly atMs: number }[];
  /** Events that can't be sent, since their stored pings are damaged; no attempt was made. */
  readonly damaged?: readonly number[];
  /** How long it does nothing but fail; null where an attempt went well. Absent where that is not to be noted. */
  readonly failing?: Failing | null;
  /** Its receiver asked to be left alone. */
  readonly hold?: Hold;
  /** The new cursor, where it moved. */
  readonly cursor?: number | undefined;
  /** Why the URL is disabled from now on. */
  readonly disabledWhy?: string;
}

/** A lock's state as it is stored, as JSON. */
export interface StoredState {
  readonly deviceId: number;
  readonly mac: Mac;
  readonly state: string;
  /** Its row does not fit its checksum: a disk changed it. */
  readonly isDamaged?: true;
}

/** The readings that an operator sees of a device. */
export interface DeviceReading {
  readonly device: Device;
  /** JSON of the lock's state; null where it never sent an uplink. */
  readonly state: string | null;
}

export interface Store {
  /** A name for people: which engine, and where. */
  readonly description: string;
  /** What operators ask about webhooks. */
  readonly webhooks: WebhookStore;
  /** All secrets at once: which key they are under, and another. */
  readonly secrets: SecretStore;
  /** SIM cards, counts, price plans, statements. */
  readonly usage: UsageStore;
  /** Merchants' API keys and tokens. */
  readonly access: AccessStore;
  /** Merchants' users, sessions and pets. */
  readonly people: PeopleStore;
  /** What operators should know. */
  readonly notices: NoticeStore;
  /** What `why` looks up. */
  readonly why: WhyStore;
  readonly audit: AuditStore;
  /** What was refused of locks. */
  readonly refusals: RefusalStore;
  /** The marks of locks that were reflashed. */
  readonly marks: MarkStore;

  /* Pings: the hot path. */

  /** Makes all of it durable together. */
  append(commit: Commit): Promise<void>;
  /** The state last stored for a device, as JSON. */
  readDeviceState(deviceId: number): Promise<string | null>;
  /**
   * The states of all devices that have one: as of the uplinks that stood in the log, with those of its own commit,
   * when it was written.
   */
  readDeviceStates(deviceIds?: readonly number[]): Promise<StoredState[]>;
  /**
   * Of the newest `most` uplinks those that came after the state of their lock was stored, in the order in which they
   * came, in pieces of at most `limit`. What was there before the state, or belongs to a merchant that had the lock
   * before, is not among them, nor is what has no state.
   */
  readUplinksAfterStates(most: number, limit: number, deviceIds?: readonly number[]): AsyncIterable<StoredUplink[]>;
  /** The digests that the log has under one name; an empty one stands for whatever was erased under it. */
  readDigests(credentialId: number, boot: number, sequence: number): Promise<Buffer[]>;
  /** The lock that has this MAC, and its credentials of one kind (its own, where none is said), for authentication. */
  findLock(mac: Mac, kind?: Source): Promise<LockAccount | null>;

  /* Deliveries: the other hot path. */

  /** The merchant's events after `afterId`, oldest first. */
  readEvents(merchantId: number, afterId: number, limit: number): Promise<StoredUplink[]>;
  /**
   * Events after `afterId` that have an outcome at this URL already: a failure has a row, a success an attempt, and
   * the cursor may stand before them for an older event that has none.
   */
  readOutcomesAfter(urlId: number, afterId: number): Promise<number[]>;
  /** The URL's retries due by `nowMs`, the longest due first; at an ordered URL, of each lock its oldest pending. */
  readDueDeliveries(urlId: number, nowMs: number, limit: number): Promise<DueDelivery[]>;
  /** When the URL's next retry but these (uplink ids) is due, ms since the epoch; null where none waits. */
  nextDueAtMs(urlId: number, besides?: ReadonlySet<number>): Promise<number | null>;
  recordProgress(progress: readonly DeliveryProgress[]): Promise<void>;

  /* The registry. Each rejects with a LockgateError where a name or MAC is taken or missing. */

  addMerchant(name: string, nowMs: number): Promise<Merchant>;
  listMerchants(): Promise<Merchant[]>;
  addDevice(device: NewDevice): Promise<Device>;
  /** Adds all of them or none; a lock that was removed comes back. */
  addDevices(devices: readonly NewDevice[]): Promise<void>;
  /** Which of these MACs a lock in service has. */
  findTakenMacs(macs: readonly Mac[]): Promise<Mac[]>;
  /**
   * Gives the lock a new credential and revokes its others; the one before may hold until `keepOldUntilMs`. Answers
   * those that hold no longer.
   */
  replaceLockCredential(
    mac: Mac,
    secretHash: Buffer,
    nowMs: number,
    keepOldUntilMs?: number,
  ): Promise<EndedCredentials>;
  addPhone(phone: NewPhone): Promise<Phone>;
  /** The lock's phones that are not revoked, and the newest of those that are, newest first. */
  listPhones(mac: Mac): Promise<Phone[]>;
  /** Revokes the phone credential of this name. */
  revokePhone(mac: Mac, name: string, nowMs: number): Promise<EndedCredentials>;
  changeDevice(change: DeviceChange): Promise<void>;
  /** Revokes all credentials of a lock, its phones' too. @throws LockgateError `no-such-device` */
  revokeCredentials(mac: Mac, nowMs: number): Promise<void>;
  /**
   * Takes the lock out of service: its credentials are revoked, its state is dropped, its history stays. Commands that
   * wait are cancelled as of `cancelledAtMs`, by the run's clock; left out, as of `nowMs`.
   */
  removeDevice(mac: Mac, nowMs: number, cancelledAtMs?: number): Promise<void>;
  /** The id of a lock, in service or removed; null where there never was one. */
  findDeviceId(mac: Mac): Promise<number | null>;
  /**
   * Erases what is known of a lock, its positions above all: uplinks but for their names, findings, quarantine, lock
   * events, deliveries and their attempts. `state` is what is known from now on, as JSON.
   */
  eraseDevice(deviceId: number, state: string | null): Promise<Erased>;
  /** Takes what was erased out of the files too, where an engine keeps a copy of what was. */
  scrub(): Promise<void>;
  /** Deletes what is too old in one piece of a table, but for events that a URL still waits for. */
  deleteOld(piece: AgingPiece): Promise<AgedPiece>;
  listDevices(): Promise<DeviceReading[]>;
  /** How many locks are in service. */
  countDevices(): Promise<number>;
  findDevice(mac: Mac): Promise<DeviceReading | null>;
  /* What is read of a device is what it did for the merchant that has it now; the rest stays with those before. */

  /** Its latest uplinks from the lock itself, or from phones, by the order of protocol.md §1, newest first. */
  readUplinks(deviceId: number, limit: number, source?: Source): Promise<StoredUplink[]>;
  /** The device's findings, newest first. */
  readFindings(deviceId: number, limit: number): Promise<StoredFinding[]>;
  /** What the log has of the device, oldest first, in pieces of at most `limit`. */
  readLog(deviceId: number, limit: number): AsyncIterable<LogEntry[]>;
  /** The same, a piece at a time. A piece is empty where the log ends; asked again, it goes on with what came since. */
  readLogPieces(deviceId: number, limit: number): { next(): Promise<LogEntry[]> };
  /** The device's quarantined messages, newest first. */
  readQuarantine(deviceId: number, limit: number): Promise<QuarantinedMessage[]>;
  addWebhookUrl(url: NewWebhookUrl): Promise<WebhookUrl>;
  listWebhookUrls(): Promise<WebhookUrl[]>;

  /* Commands. */

  readonly commands: CommandStore;

  /* Facts about the store itself. */

  /** Figures as of now. They are counted in a thread, however much there is to count. */
  readFigures(): Promise<StoreFigures>;
  /** The room that the store takes and has, as of now. */
  readDiskSpace(): Promise<DiskSpace>;

  /** When the newest uplink in the log was received, ms since the epoch; null where there is none. */
  readLastReceivedAtMs(): Promise<number | null>;
  readMetadata(name: string): Promise<string | null>;
  writeMetadata(name: string, value: string): Promise<void>;
  /**
   * A copy of all of it as it is now, for a backup; writing goes on meanwhile. One at a time.
   *
   * @throws LockgateError `backup-exists`, `no-room`
   */
  readCopy(): Promise<StoreCopy>;
  /** Closes the store; nothing may be asked of it afterwards. */
  close(): Promise<void>;
}

export interface NewDevice {
  readonly mac: Mac;
  readonly merchant: string;
  readonly simulated: boolean;
  readonly secretHash: Buffer;
  readonly nowMs: number;
}

export interface NewWebhookUrl {
  readonly merchant: string;
  readonly url: string;
  /** Values sealed, as {@link WebhookUrl} has them. */
  readonly headersSealed: Readonly<Record<string, string>>;
  readonly secretSealed: Buffer;
  readonly ordered?: boolean | undefined;
  /** The first uplink that it is to get; absent, it follows the log from now on. */
  readonly fromUplinkId?: number | undefined;
  readonly nowMs: number;
}

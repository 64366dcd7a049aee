/**
 * What operators do with webhooks: change and remove URLs, rotate secrets, look at deliveries, send events again. The
 * hot paths of deliveries are in store.ts, and its promises hold: resolved = fsynced.
 */
import type { EventName } from '../../webhooks/event-id.js';
import type { StoredUplink } from './stored-uplink.js';

/** Where a merchant's events go. */
export interface WebhookUrl {
  readonly id: number;
  readonly merchantId: number;
  readonly merchantName: string;
  readonly url: string;
  /** The custom headers: names in clear, values sealed, in base64 (payload/custom-headers.ts). */
  readonly headersSealed: Readonly<Record<string, string>>;
  /** The newest signing secret. */
  readonly secretSealed: Buffer;
  readonly state: 'active' | 'disabled';
  readonly disabledWhy: string | null;
  /** Every event up to this uplink id is delivered or has a delivery row. */
  readonly cursor: number;
  /** A lock's later events wait for one that fails. */
  readonly ordered: boolean;
  /** Events up to this uplink id are not for this URL: it started to follow the log after them. */
  readonly startedAfter: number;
  /** When the first attempt since the last success failed, wall-clock time; null where none did. */
  readonly failingSinceMs: number | null;
  /** How long it was seen to fail since then: time in which a gateway ran and could send. */
  readonly failingForMs: number;
  /** Its receiver asked for a pause; null where it did not. */
  readonly hold: Hold | null;
  readonly createdAtMs: number;
}

/** How long every attempt at a URL has failed. */
export interface Failing {
  /** When the first attempt failed, wall-clock time. */
  readonly sinceMs: number;
  /** How long it was seen to fail since then. */
  readonly forMs: number;
}

/** What a Retry-After asks for. */
export interface Hold {
  /** By the clock of deliveries. */
  readonly untilMs: number;
  /** Its length at its start. It never gets longer, whatever happens to the clock. */
  readonly spanMs: number;
}

/** A pending delivery that waits. */
export interface DeliveryWait {
  readonly uplinkId: number;
  /** Attempts since it was last resent. */
  readonly attempts: number;
  /** When it is due, by the clock of deliveries. */
  readonly atMs: number;
}

/** Selects waits: of uplinks after `afterId`, due after `fromMs`. */
export interface WaitsPiece {
  readonly afterId: number;
  readonly fromMs: number;
  readonly limit: number;
}

/** What an operator changes of a URL; what is left out stays. */
export interface WebhookChange {
  readonly url?: string | undefined;
  /** All of them, with sealed values. */
  readonly headersSealed?: Readonly<Record<string, string>> | undefined;
  readonly ordered?: boolean | undefined;
  /** Disabled, with a sentence why; or active again, with null: it follows the log from its end on. */
  readonly disabledWhy?: string | null | undefined;
}

/** A signing secret that is still valid in addition to the newest. */
export interface OldSecret {
  readonly secretSealed: Buffer;
  readonly validUntilMs: number;
}

/** A new signing secret, and until when those before it stay valid. */
export interface SecretRotation {
  readonly secretSealed: Buffer;
  readonly nowMs: number;
  readonly oldValidUntilMs: number;
}

/**
 * The state of a delivery. `pending` will be sent; `kept` was not sent while the URL was disabled, and is sent only on
 * request. `damaged` has a stored ping that does not fit its checksum: it is never sent as it is, and becomes due again
 * once its row is what was written (interfaces.md §3).
 */
export const DELIVERY_STATES = ['pending', 'delivered', 'dead', 'kept', 'damaged'] as const;

export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** Selects deliveries; ids are those of uplinks, both ends included. */
export interface DeliveryFilter {
  readonly urlIds: readonly number[];
  readonly states: readonly DeliveryState[];
  readonly deviceId?: number | undefined;
  readonly fromId: number;
  readonly toId: number;
  readonly limit: number;
}

/** A stored attempt. Times are ms since the epoch, wall-clock time. */
export interface StoredAttempt {
  readonly number: number;
  readonly atMs: number;
  readonly durationMs: number;
  readonly status: number | null;
  readonly error: string | null;
  readonly answer: string | null;
}

/** A delivery of an event to a URL. */
export interface DeliveryReading {
  readonly urlId: number;
  readonly uplink: StoredUplink;
  readonly state: DeliveryState;
  /** Null where none is planned. */
  readonly nextAttemptAtMs: number | null;
  /** Attempts before it was last resent; 0 where it never was. */
  readonly attemptsBefore: number;
  /** Oldest first. */
  readonly attempts: readonly StoredAttempt[];
}

/** The outcome of a resend: the delivery is due now, or is on its way for the first time anyway. */
export type Resent = 'due' | 'on-its-way';

/** One step of a recovery: events after one uplink id, up to another, at most `limit`. */
export interface RecoveryPiece {
  readonly afterId: number;
  readonly toId: number;
  readonly limit: number;
  readonly nowMs: number;
}

export interface WebhookStore {
  /** A URL by its id; null where there is none. */
  find(urlId: number): Promise<WebhookUrl | null>;
  /** @throws LockgateError `no-such-webhook` */
  change(urlId: number, change: WebhookChange): Promise<WebhookUrl>;
  /** Removes the URL, with its deliveries, attempts and secrets. @throws LockgateError `no-such-webhook` */
  remove(urlId: number): Promise<void>;
  /** @throws LockgateError `no-such-webhook` */
  rotateSecret(urlId: number, rotation: SecretRotation): Promise<WebhookUrl>;
  /** The secrets before the newest that are valid at this time, newest first. */
  readOldSecrets(urlId: number, nowMs: number): Promise<OldSecret[]>;

  /** The locks with a pending delivery at this URL. */
  readPendingLocks(urlId: number): Promise<number[]>;
  /** Deliveries pending at this URL, in the order of their events. */
  readWaits(urlId: number, piece: WaitsPiece): Promise<DeliveryWait[]>;
  /** Makes deliveries due earlier; those that are due by then, or final, stay as they are. */
  shortenWaits(urlId: number, waits: readonly { readonly uplinkId: number; readonly atMs: number }[]): Promise<void>;
  /** Whether the URL has a pending delivery of this lock. */
  findPending(urlId: number, deviceId: number): Promise<boolean>;

  /** The id of the first uplink received at this time or later; one past the last where there is none. */
  findFirstUplinkFrom(receivedAtMs: number): Promise<number>;
  /** The event of this name, if the lock has this MAC; null where the log has none. */
  findEvent(name: EventName): Promise<StoredUplink | null>;
  /** Newest events first; of one event, in the order of the URLs. */
  readDeliveries(filter: DeliveryFilter): Promise<DeliveryReading[]>;
  /** Makes an event due at a URL now, with the whole retry schedule again. */
  resend(urlId: number, uplinkId: number, nowMs: number): Promise<Resent>;
  /**
   * Makes those damaged events due, with ids after `afterId` up to `toId`, whose rows fit their checksums again.
   * Returns how many.
   */
  releaseRepaired(urlId: number, range: Omit<RecoveryPiece, 'limit'>): Promise<number>;
  /**
   * Makes events due that the URL lacks: dead, kept, or waiting for a retry. Returns how many, and the last of them, to
   * go on from; null where there was none.
   */
  recover(urlId: number, piece: RecoveryPiece): Promise<{ readonly count: number; readonly lastId: number | null }>;
}

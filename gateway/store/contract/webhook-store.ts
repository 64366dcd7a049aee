/**
 * Operators' work on webhooks: change and remove URLs, rotate secrets, inspect deliveries, send events again. The hot
 * paths of deliveries are in store.ts. As there, a method that writes resolves after the write is on the disk. An event
 * is a stored ping, or one of the other things that a webhook can report, such as the end of a command
 * (webhooks/merchant-event.ts). Its uplink id is its id in the log, where it stands among the messages from locks.
 */
import type { EventKey } from '../../webhooks/event-id.js';
import type { LogPosition } from './log/log-position.js';
import type { StoredUplink } from './log/stored-uplink.js';
import type { AttemptFigures, SummedAttempts } from './webhooks/attempt-figures.js';
import type { WebhookFilter } from './webhooks/webhook-filter.js';
import type { Hold, WebhookUrl } from './webhooks/webhook-url.js';

/** A pending delivery and its due time. */
export interface DeliveryWait {
  readonly uplinkId: number;
  /** Attempts since it was last resent. */
  readonly attempts: number;
  /** The due time, by the delivery clock, as {@link Hold.untilMs}. */
  readonly atMs: number;
}

/** Selects pending deliveries: of uplinks after `afterId`, due after `afterMs` by the delivery clock. */
export interface WaitsPage {
  readonly afterId: number;
  readonly afterMs: number;
  readonly limit: number;
}

/** An operator's changes to a URL; members that are left out do not change. */
export interface WebhookChange {
  readonly url?: string | undefined;
  /** All headers, with sealed values. */
  readonly headersSealed?: Readonly<Record<string, string>> | undefined;
  readonly ordered?: boolean | undefined;
  /** A limit of the rate; null removes it. */
  readonly attemptsPerSecond?: number | null | undefined;
  /** The time limit of an attempt; null for that of all URLs. */
  readonly timeoutMs?: number | null | undefined;
  /** The only certificate authorities that the URL's certificate may come from, in PEM; null for the usual ones. */
  readonly ca?: string | null | undefined;
  /** Which events the URL gets from now on. */
  readonly filter?: WebhookFilter | undefined;
  /** A sentence disables the URL and says why; null makes it active again, from the log's current end on. */
  readonly disabledWhy?: string | null | undefined;
}

/** A signing secret that is still valid in addition to the newest one. */
export interface OldSecret {
  readonly secretSealed: Buffer;
  readonly validUntilMs: number;
}

/** A new signing secret, and until when the older secrets stay valid. */
export interface SecretRotation {
  readonly secretSealed: Buffer;
  readonly nowMs: number;
  readonly oldValidUntilMs: number;
}

/**
 * The state of a delivery. `pending` will be sent. `kept` was not sent while the URL was disabled, and is sent only on
 * request. `damaged` has a stored ping that does not match its checksum: the ping is not sent until it matches again
 * (interfaces.md §3).
 */
export const DELIVERY_STATES = ['pending', 'delivered', 'dead', 'kept', 'damaged'] as const;

export type DeliveryState = (typeof DELIVERY_STATES)[number];

/**
 * Selects deliveries; `fromId` and `toId` are uplink ids, both included. Ids of different slots (log/log-position.ts)
 * are compared too: they grow with the time of receipt, except for differences between the clocks of gateways.
 */
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
  /** HTTP status; null if there was no answer. */
  readonly status: number | null;
  /** Why it failed, as a sentence; null if it succeeded. */
  readonly error: string | null;
  /** The start of the answer's body; null if there was none. */
  readonly answer: string | null;
}

/** A delivery of an event to a URL. */
export interface DeliveryReading {
  readonly urlId: number;
  readonly uplink: StoredUplink;
  readonly state: DeliveryState;
  /** When the next attempt is due, by the delivery clock; null if none is planned. */
  readonly nextAttemptAtMs: number | null;
  /** Attempts before the event was last resent; 0 if it never was. */
  readonly attemptsBefore: number;
  /** Oldest first. */
  readonly attempts: readonly StoredAttempt[];
}

/**
 * A slice of the log whose deliveries are counted: uplink ids after `afterId` up to `toId`. It ends after `limit`
 * pings, or attempted events; events that wait, or are dead, are not limited.
 */
export interface CountedRange {
  readonly afterId: number;
  readonly toId: number;
  /** If given, only uplinks after this position count. */
  readonly after?: LogPosition | undefined;
  /** If given, only uplinks before this position count. */
  readonly before?: LogPosition | undefined;
  readonly limit: number;
}

/** Deliveries of a URL in a slice of the log. */
export interface AttemptedCounts {
  /** The end of the slice: `toId`, or an earlier id if the limit ended it. */
  readonly lastId: number;
  /** Events with an attempt. */
  readonly attempted: number;
  /** All attempts at these events. */
  readonly attempts: number;
  /** The attempted events that were delivered. */
  readonly delivered: number;
  /** Events that wait for a further attempt. */
  readonly pending: number;
  /** Events that were given up, or whose stored ping is damaged. */
  readonly dead: number;
}

/** Pings in a slice of the log. */
export interface PingCount {
  /** The end of the slice, as in {@link AttemptedCounts}. */
  readonly lastId: number;
  readonly count: number;
}

/** The outcome of a resend: the delivery is due now, or its first delivery is still under way. */
export type ResendOutcome = 'due' | 'on-its-way';

/** One step of a recovery: events between two positions, at most `limit`. */
export interface RecoveryStep {
  readonly after: LogPosition;
  /** Undefined for the end of the log. */
  readonly before: LogPosition | undefined;
  readonly limit: number;
  readonly nowMs: number;
}

export interface WebhookStore {
  /** Returns a URL by its id; null if there is none. */
  find(urlId: number): Promise<WebhookUrl | null>;
  /** @throws LockgateError `no-such-webhook` */
  change(urlId: number, change: WebhookChange): Promise<WebhookUrl>;
  /** Removes the URL, with its deliveries, attempts and secrets. @throws LockgateError `no-such-webhook` */
  remove(urlId: number): Promise<void>;
  /** @throws LockgateError `no-such-webhook` */
  rotateSecret(urlId: number, rotation: SecretRotation): Promise<WebhookUrl>;
  /** Returns the older secrets that are still valid at this time, newest first. */
  readOldSecrets(urlId: number, nowMs: number): Promise<OldSecret[]>;

  /** Returns the device ids of locks with a pending delivery at this URL. */
  readPendingLocks(urlId: number): Promise<number[]>;
  /** Returns the pending deliveries of this URL, in the order of their events. */
  readWaits(urlId: number, page: WaitsPage): Promise<DeliveryWait[]>;
  /** Makes deliveries due earlier; deliveries that are already due earlier, or final, are not changed. */
  shortenWaits(urlId: number, waits: readonly { readonly uplinkId: number; readonly atMs: number }[]): Promise<void>;
  /** Whether the URL has a pending delivery of this lock. */
  hasPending(urlId: number, deviceId: number): Promise<boolean>;

  /**
   * Returns the id of the first uplink received at this time or later; the last id + 1 if there is none. For lists in
   * the order of ids ({@link DeliveryFilter}).
   */
  findFirstUplinkFrom(receivedAtMs: number): Promise<number>;
  /** Returns the position after the merchant's events received before this time. */
  findPositionAt(merchantId: number, receivedAtMs: number): Promise<LogPosition>;
  /** Returns the event with this key; null if the log has none, or the key's MAC is not the lock's. */
  findEvent(key: EventKey): Promise<StoredUplink | null>;
  /** Returns those of the events that pass a filter, by the present labels of their locks. */
  selectPassing(filter: WebhookFilter, events: readonly StoredUplink[]): Promise<StoredUplink[]>;
  /** Returns deliveries, newest events first; of one event, in the order of the URLs. */
  readDeliveries(filter: DeliveryFilter): Promise<DeliveryReading[]>;
  /** Sums up the attempts at the URL's newest attempted events. */
  sumUpNewestAttempts(urlId: number, summed: SummedAttempts): Promise<AttemptFigures>;
  /** Counts deliveries of a URL in a slice of the log. */
  countAttempted(urlId: number, range: CountedRange): Promise<AttemptedCounts>;
  /** Counts the pings of the URL's merchant in a slice of the log. */
  countPings(urlId: number, range: CountedRange): Promise<PingCount>;
  /** Makes an event due at a URL now; its retry schedule starts again. */
  resend(urlId: number, uplinkId: number, nowMs: number): Promise<ResendOutcome>;
  /**
   * Makes `damaged` deliveries due whose uplinks match their checksums again, between two positions. Returns how many.
   */
  releaseRepaired(urlId: number, range: Omit<RecoveryStep, 'limit'>): Promise<number>;
  /**
   * Makes undelivered events of the URL due: dead, kept, or waiting for a retry. Returns how many, and the position
   * after which the next step starts; null if there was no such event.
   */
  recover(urlId: number, step: RecoveryStep): Promise<{ readonly count: number; readonly next: LogPosition | null }>;
}

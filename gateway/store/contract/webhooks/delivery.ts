/** Records of the hot paths of deliveries: what is due, and what the worker of a URL stores about its attempts. */
import type { LogPosition } from '../log/log-position.js';
import type { StoredUplink } from '../log/stored-uplink.js';
import type { Failing, Hold } from './webhook-url.js';

/** A retry that is due. */
export interface DueDelivery {
  readonly uplink: StoredUplink;
  /** How many attempts were made so far. */
  readonly attempts: number;
  /** Attempts before the event was last resent; the retry schedule does not count them. */
  readonly attemptsBefore: number;
}

/** One attempt at a delivery, and its outcome. */
export interface AttemptRecord {
  readonly urlId: number;
  readonly uplinkId: number;
  /** Attempts are numbered from 1. */
  readonly number: number;
  /** Wall-clock time. */
  readonly atMs: number;
  readonly durationMs: number;
  /** HTTP status; null if there was no answer. */
  readonly status: number | null;
  /** Why it failed, as a sentence; null if it succeeded. */
  readonly error: string | null;
  /** The start of the answer's body; null if there was none. */
  readonly answer: string | null;
  /** Whether the table of deliveries has a row for it. An event that waited for another has one before any attempt. */
  readonly hasRow?: boolean;
  /**
   * The delivery's new state; `delivered` at the first attempt needs no row. `nextAttemptAtMs` is by the delivery
   * clock ({@link Hold.untilMs}); `dead` is given up.
   */
  readonly outcome:
    | { readonly state: 'delivered' }
    | { readonly state: 'pending'; readonly nextAttemptAtMs: number }
    | { readonly state: 'dead' };
}

/** What the delivery worker of a URL stores in one commit. */
export interface DeliveryProgress {
  readonly urlId: number;
  readonly attempts: readonly AttemptRecord[];
  /** Unattempted events that wait for an earlier event of their lock; due from `atMs` on, once that event is final. */
  readonly blocked?: readonly { readonly uplinkId: number; readonly atMs: number }[];
  /** Uplink ids of events that can't be sent since their stored pings are damaged; no attempt was made. */
  readonly damaged?: readonly number[];
  /** How long every attempt has failed; null after a success; left out if unchanged. */
  readonly failing?: Failing | null;
  /** A pause that the receiver asked for. */
  readonly hold?: Hold;
  /** The new cursor: the position before the URL's oldest events without an outcome; left out if unchanged. */
  readonly cursor?: LogPosition | undefined;
  /** If given, disables the URL: a sentence why. */
  readonly disabledWhy?: string;
}

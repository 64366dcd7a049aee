/** The rows of the tables of webhook URLs and their deliveries. ../schema.ts says what all tables have in common. */
import type { Generated } from 'kysely';

export interface WebhookUrlTable {
  id: Generated<number>;
  merchant_id: number;
  url: string;
  /** JSON object of the custom headers, each value sealed, in base64. */
  headers: string;
  /** 0 if an older version left the values unencrypted; the next start seals them. */
  headers_sealed: Generated<number>;
  /** The newest signing secret, encrypted. */
  secret_sealed: Buffer;
  state: 'active' | 'disabled';
  /** Why the URL is disabled, as a sentence; null while active. */
  disabled_why: string | null;
  /**
   * Every event up to this uplink id is delivered, has a row in `delivery`, is in a gap, or was left out by the filter.
   */
  cursor: number;
  created_at_ms: number;
  /** 1 if a lock's later events wait for a failed event. */
  ordered: Generated<number>;
  /** The URL gets only events after this uplink id. */
  started_after: Generated<number>;
  /** Which events the URL gets, as JSON (contract/webhooks/webhook-filter.ts); null if it gets all pings. */
  filter: Generated<string | null>;
  /** After this uplink id the cursor may have passed events that a filter left out; null if it never had one. */
  filtered_after: Generated<number | null>;
  /** The last uplink id of those events; null while the URL has a filter, or if it never had one. */
  filtered_until: Generated<number | null>;
  /** The most attempts per second; null for no limit. */
  attempts_per_second: Generated<number | null>;
  /** The time limit of an attempt; null for the usual limit of all URLs. */
  timeout_ms: Generated<number | null>;
  /** PEM: the only certificate authorities that the URL's certificate may come from. */
  ca: Generated<string | null>;
  /** When the first attempt since the last success failed; null if no attempt failed since. */
  failing_since_ms: Generated<number | null>;
  /** How long the URL has failed since then, counting only time in which a gateway ran and could send. */
  failing_for_ms: Generated<number>;
  /**
   * The end, by the delivery clock (wall-clock time at the gateway's start, monotonic from then on), and the
   * initial length of a pause that the receiver asked for; or null.
   */
  held_until_ms: Generated<number | null>;
  held_for_ms: Generated<number | null>;
}

/** A replaced signing secret: attempts are also signed with it until it expires. */
export interface WebhookOldSecretTable {
  id: Generated<number>;
  url_id: number;
  secret_sealed: Buffer;
  valid_until_ms: number;
}

/** Events that were not sent since the URL was disabled: uplink ids after `after_id` up to `until_id`. */
export interface WebhookGapTable {
  url_id: number;
  after_id: number;
  until_id: number;
}

/**
 * A delivery that failed at its first attempt, waits for an earlier event of its lock, is damaged, or is to be sent
 * again. One that succeeded at once has no row.
 */
export interface DeliveryTable {
  url_id: number;
  uplink_id: number;
  /** The uplink's lock, for ordered URLs. */
  device_id: Generated<number>;
  state: 'pending' | 'delivered' | 'dead' | 'damaged';
  attempts: number;
  /** Attempts before the event was last resent; the retry schedule does not count them. */
  attempts_before: Generated<number>;
  next_attempt_at_ms: number | null;
}

export interface AttemptTable {
  id: Generated<number>;
  url_id: number;
  uplink_id: number;
  number: number;
  at_ms: number;
  duration_ms: number;
  /** HTTP status; null if there was no answer. */
  status: number | null;
  /** What failed, as a sentence; null on success. */
  error: string | null;
  /** The first 1 KiB of the answer. */
  answer: string | null;
}

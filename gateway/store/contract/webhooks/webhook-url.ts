/** A webhook URL: an address that receives a merchant's events, with its settings and its state. */
import type { LogPosition } from '../log/log-position.js';
import type { WebhookFilter } from './webhook-filter.js';

/** A URL that receives a merchant's events. */
export interface WebhookUrl {
  readonly id: number;
  readonly merchantId: number;
  readonly merchantName: string;
  readonly url: string;
  /** The custom headers: names unencrypted, values sealed (encrypted), in base64 (payload/custom-headers.ts). */
  readonly headersSealed: Readonly<Record<string, string>>;
  /** The newest signing secret. */
  readonly secretSealed: Buffer;
  readonly state: 'active' | 'disabled';
  readonly disabledWhy: string | null;
  /**
   * Every event before this position is delivered, has a delivery row, or was left out: by the filter, or while the URL
   * was disabled.
   */
  readonly cursor: LogPosition;
  /** Whether a lock's later events wait for a failed event. */
  readonly ordered: boolean;
  /** The URL gets only events after this position. */
  readonly startedAfter: LogPosition;
  /** Which events the URL gets; null if it gets all. */
  readonly filter: WebhookFilter | null;
  /** Whether it has or had a filter, so that its cursor may have passed events that were not sent. */
  readonly wasFiltered: boolean;
  /** The most attempts per second; null for no limit. */
  readonly attemptsPerSecond: number | null;
  /** The time limit of an attempt; null for the usual limit of all URLs. */
  readonly timeoutMs: number | null;
  /** PEM: the only certificate authorities that its certificate may come from; null for the usual ones. */
  readonly ca: string | null;
  /** When the first attempt since the last success failed, wall-clock time; null if no attempt failed since. */
  readonly failingSinceMs: number | null;
  /** How long the URL has failed since then, counting only time in which a gateway ran and could send. */
  readonly failingForMs: number;
  /** The pause that the URL's receiver asked for; null if it asked for none. */
  readonly hold: Hold | null;
  readonly createdAtMs: number;
}

/** How long every attempt at a URL has failed. */
export interface Failing {
  /** When the first attempt failed, wall-clock time. */
  readonly sinceMs: number;
  /** How long the URL has failed since then, counting only time in which a gateway ran and could send. */
  readonly forMs: number;
}

/** A pause that a receiver asked for with Retry-After. */
export interface Hold {
  /** The end, by the delivery clock: wall-clock time at the gateway's start, and monotonic from then on. */
  readonly untilMs: number;
  /** The initial length. Clock changes never make the pause longer. */
  readonly spanMs: number;
}

export interface NewWebhookUrl {
  readonly merchant: string;
  readonly url: string;
  /** Header values, sealed as in {@link WebhookUrl}. */
  readonly headersSealed: Readonly<Record<string, string>>;
  readonly secretSealed: Buffer;
  readonly ordered?: boolean | undefined;
  /** Which events the URL gets; all by default. */
  readonly filter?: WebhookFilter | undefined;
  /** Limits, as in {@link WebhookUrl}. */
  readonly attemptsPerSecond?: number | null | undefined;
  readonly timeoutMs?: number | null | undefined;
  readonly ca?: string | null | undefined;
  /** The URL gets uplinks after this position; by default it gets uplinks from now on. */
  readonly after?: LogPosition | undefined;
  readonly nowMs: number;
}

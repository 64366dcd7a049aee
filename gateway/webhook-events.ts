/**
 * The gateway's events about webhook URLs and their deliveries. events.ts has the map of all events. Times (`atMs`) are
 * by the run's clock (wall-clock time, except in a sped-up simulation), ms since the epoch.
 */
import type { Mac } from '../proto/wire/mac.js';

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

/**
 * An event was not sent to a URL, since its stored ping does not match its checksum. It waits until the ping is
 * repaired.
 */
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

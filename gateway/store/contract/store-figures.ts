/** What the store counts for operators, when they ask. */

/** What a webhook URL has not delivered. */
export interface UrlBacklog {
  readonly urlId: number;
  readonly isDisabled: boolean;
  /** Events behind its cursor that have no outcome; of a disabled URL, those that are held for it. */
  readonly behind: number;
  /** Events that wait for a retry, or for an earlier one of their lock. */
  readonly pending: number;
  readonly dead: number;
  /** Events whose stored pings are damaged. */
  readonly damaged: number;
  /** When the oldest that is behind or pending was received, by the run's clock; null where there is none. */
  readonly oldestReceivedAtMs: number | null;
}

/** All figures as of one moment. */
export interface StoreFigures {
  /** Of every webhook URL, by their ids. */
  readonly backlogs: readonly UrlBacklog[];
  /** Locks in service, including those that never connected. */
  readonly locksInService: number;
}

/** How much room the store takes, and how much is left for it. */
export interface DiskSpace {
  /** What the store's files take, in bytes. */
  readonly storeBytes: number;
  /** What is free on their disk for this user, in bytes. */
  readonly freeBytes: number;
}

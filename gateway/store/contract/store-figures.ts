/** Figures about the store, counted when an operator asks for them. */

/** Counts of a webhook URL's undelivered events. */
export interface UrlBacklog {
  readonly urlId: number;
  readonly isDisabled: boolean;
  /**
   * Events that were not attempted yet: those after the URL's cursor, a position in the log, that are not `pending`,
   * `dead` or `damaged`. For a disabled URL, events that are stored for it.
   */
  readonly behind: number;
  /** Events that wait for a retry, or for an earlier event of their lock. */
  readonly pending: number;
  /** Events that were given up after the last retry. */
  readonly dead: number;
  /** Events whose stored pings are damaged. */
  readonly damaged: number;
  /**
   * When the oldest event in `behind` or `pending` was received, by the run's clock (wall-clock time, except in a
   * sped-up simulation); null if there is none.
   */
  readonly oldestReceivedAtMs: number | null;
}

/** All figures as of one moment. */
export interface StoreFigures {
  /** One entry for each webhook URL, ordered by id. */
  readonly backlogs: readonly UrlBacklog[];
  /** Locks in service of open merchants, including those that never connected. */
  readonly locksInService: number;
}

/** Disk space that the store uses, and free disk space. */
export interface DiskSpace {
  /** The size of the store's files. */
  readonly storeBytes: number;
  /** Free space for this user on the same disk; null if the engine can't know it. */
  readonly freeBytes: number | null;
}

/**
 * Records about deletion: the erasure of one lock's data, and the deletion of old rows, one chunk of a table at a time.
 */

/** How many rows an erasure removed. */
export interface Erased {
  readonly uplinks: number;
  readonly findings: number;
  readonly quarantined: number;
  readonly lockEvents: number;
  readonly refusals: number;
  /** Deliveries that waited for a retry. */
  readonly pendingDeliveries: number;
}

/** The tables from which rows are deleted by age. */
export const AGING_TABLES = ['uplink', 'lock_event', 'finding', 'quarantine'] as const;

/** The name of the metadata entry with the latest time before which rows may have been deleted, by the run's clock. */
export const SWEPT_METADATA = 'swept-before-ms';

/** A chunk of a table, in the order of arrival, from which old rows are deleted. */
export interface AgingChunk {
  readonly table: (typeof AGING_TABLES)[number];
  /** Rows from before this time are too old: ms since the epoch, by the run's clock. */
  readonly beforeMs: number;
  /** Only rows after this id. */
  readonly afterId: number;
  /** Maximum number of rows examined. */
  readonly limit: number;
}

/** The outcome of an {@link AgingChunk}. */
export interface AgingResult {
  readonly deleted: number;
  /** Events that are too old but were not deleted, since they are undelivered. */
  readonly held: number;
  /** The `afterId` of the next chunk; null if no old row is left. */
  readonly nextId: number | null;
}

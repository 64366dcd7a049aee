/** What `lockgate db check` reports about a store (quality.md §2, bit rot). */

/** Something that is not as it was written, or that contradicts other data. */
export interface Damage {
  /** The check that found it. */
  readonly check: string;
  /** Its table; null where it is in none or that can't be known. */
  readonly table: string | null;
  /** The row, by its rowid or its key. */
  readonly row: string | null;
  /** A sentence for people. */
  readonly what: string;
}

/** What one check did. */
export interface CheckResult {
  readonly name: string;
  /** How many it looked at, and of what: blocks, pages, rows … */
  readonly count: number;
  readonly unit: string;
  /** How much of it is damaged, all of it counted, however much is reported one by one. */
  readonly damaged: number;
  /** Why the check was left out, or what it can't see. */
  readonly note: string | null;
}

/** What `db check` found. */
export interface CheckReport {
  readonly file: string;
  readonly bytes: number;
  /** The last migration that was applied; null where that can't be known. */
  readonly schema: string | null;
  /** Bytes of its write-ahead log: 0 for a store that was closed. */
  readonly walBytes: number;
  readonly checks: readonly CheckResult[];
  readonly damage: readonly Damage[];
}

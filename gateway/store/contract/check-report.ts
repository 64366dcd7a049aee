/** What `lockgate db check` reports about a store (quality.md §2, bit rot). */

/** Data that differs from what was written, or that contradicts other data. */
export interface Damage {
  /** The check that found it. */
  readonly check: string;
  /** The damaged table; null if the damage is in no table or the table is unknown. */
  readonly table: string | null;
  /** The rowid or key of the damaged row; null if the damage is in no row. */
  readonly row: string | null;
  /** What is wrong, as a sentence. */
  readonly what: string;
}

/** The result of one check. */
export interface CheckResult {
  readonly name: string;
  /** How many items were checked, in `unit`: blocks, pages, rows … */
  readonly count: number;
  readonly unit: string;
  /** How many of the items are damaged; `CheckReport.damage` may list fewer. */
  readonly damaged: number;
  /** Why the check was skipped, or what it can't detect. */
  readonly note: string | null;
}

/** The result of `db check`. */
export interface CheckReport {
  /** The path of the store's file. */
  readonly file: string;
  readonly bytes: number;
  /** The last applied migration; null if unknown. */
  readonly schema: string | null;
  /** Bytes of the write-ahead log; 0 for a closed store. */
  readonly walBytes: number;
  readonly checks: readonly CheckResult[];
  readonly damage: readonly Damage[];
}

/** How a store is opened. */
import type { Quota } from './merchants/quota.js';

/**
 * When the newest uplinks (messages from locks), which are collected in a "run" in memory, are written to the indexes
 * of the store's log. A run is full at `minUplinks` uplinks if it has `uplinksPerCredential` uplinks of each credential
 * on average, and at `maxUplinks` uplinks in any case.
 */
export interface RunSize {
  readonly minUplinks: number;
  readonly uplinksPerCredential: number;
  readonly maxUplinks: number;
}

/** Progress of upgrading a large store from an older version, in ids of uplinks: `done` of `of`. */
export interface CatchUpProgress {
  readonly done: number;
  readonly of: number;
}

export interface StoreOptions {
  /**
   * Whether a separate thread writes the log, so that the event loop is not blocked during an fsync. Without the thread
   * a store opens sooner and writes the same data.
   */
  readonly logThread?: boolean | undefined;
  /**
   * Whether a separate thread counts figures, so that the event loop does not wait for them. It starts at once, while
   * there are file descriptors for it.
   */
  readonly figuresThread?: boolean | undefined;
  /** Whether a separate thread scans uplinks (merchants/uplink-scan.ts). It starts at the first scan. */
  readonly scanThread?: boolean | undefined;
  /** Overrides the size of the log's runs, for tests. */
  readonly runSize?: RunSize | undefined;
  /** How much each merchant may store. */
  readonly quota?: Quota | undefined;
  /** Called with the progress of upgrading a large store from an older version. */
  readonly onCatchUp?: ((progress: CatchUpProgress) => void) | undefined;
  /**
   * Called, by an engine that waits for a database, when nothing can be stored for now, although no write has failed
   * yet.
   */
  readonly onTrouble?: ((why: string) => void) | undefined;
  /** Called with a sentence about what is unsafe in the database's settings, if a start does not refuse it. */
  readonly onWarning?: ((what: string) => void) | undefined;
  /** Whether other gateways may use the store at the same time; then each serves the locks that connect to it. */
  readonly isShared?: boolean | undefined;
  /** Whether to create a new store although the data folder shows that an earlier store is missing. */
  readonly makeNew?: boolean | undefined;
  /** Called with a sentence after file modes were corrected: other users could read files of the folder. */
  readonly onModesCorrected?: ((sentence: string) => void) | undefined;
  /**
   * If given, a damaged store is opened too. Called with sentences about the damage, and the new names of the files
   * that prove it.
   */
  readonly onDamage?: ((damage: readonly string[], evidence: readonly string[]) => void) | undefined;
}

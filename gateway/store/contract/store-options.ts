/** How a store is opened. */
import type { Quota } from './merchants/quota.js';

/**
 * When the newest uplinks are sorted into the indexes: a run of them ends at `least` uplinks once it has
 * `perCredential` of each credential on average, and at `most` in any case.
 */
export interface RunSize {
  readonly least: number;
  readonly perCredential: number;
  readonly most: number;
}

/** How far a large store from an older version is with what it needs before it can be used, in ids of uplinks. */
export interface CatchUpProgress {
  readonly done: number;
  readonly of: number;
}

export interface StoreOptions {
  /**
   * Whether the log is written by a thread of its own, so that the event loop goes on during an fsync. Without it a
   * store opens sooner, and writes the same.
   */
  readonly logThread?: boolean | undefined;
  /**
   * Whether the thread that counts figures starts at once, while there are file descriptors for it. Without it, the
   * thread starts at the first question.
   */
  readonly figuresThread?: boolean | undefined;
  /** Another size of the log's runs, for tests. */
  readonly runSize?: RunSize | undefined;
  /** How much each merchant may store. */
  readonly quota?: Quota | undefined;
  /** Called with the progress of work that a large store from an older version needs. */
  readonly onCatchUp?: ((progress: CatchUpProgress) => void) | undefined;
  /** Create a new store where the data folder shows that it had one, and has none. */
  readonly makeNew?: boolean | undefined;
  /** Called with a sentence where files could be read by other users, and no longer can. */
  readonly onMended?: ((sentence: string) => void) | undefined;
  /**
   * Where it is given, a damaged store is opened all the same. It gets sentences about the damage, and the files of
   * evidence under the names that they were moved to.
   */
  readonly onDamage?: ((damage: readonly string[], evidence: readonly string[]) => void) | undefined;
}

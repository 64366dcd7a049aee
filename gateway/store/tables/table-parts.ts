/**
 * What the tables that all SQL engines share are built of, and writes that an engine may commit together with uplinks.
 */
import type { Kysely } from 'kysely';
import type { Mac } from '../../../proto/wire/mac.js';
import type { RefusalChange } from '../contract/devices/refusal-store.js';
import type { UsageDelta } from '../contract/usage-store.js';
import type { RawBuilder } from './kysely.js';
import type { Tables } from './schema.js';

/** Runs writes that must not run at the same time as others. */
export interface ExclusiveWrites {
  /**
   * Runs `work` while no other such work runs, so that it may count rows and then write by the count.
   */
  runExclusive<T>(work: () => T | Promise<T>): Promise<T>;
}

/** The dependencies of tables that are written and read through Kysely. */
export interface TableParts {
  readonly mutex: ExclusiveWrites;
  /** For writes, inside `mutex.runExclusive`. */
  readonly tables: Kysely<Tables>;
  /** For reads of committed rows. */
  readonly readTables: Kysely<Tables>;
  readonly dialect: Dialect;
}

/** What differs between the engines' SQL. */
export interface Dialect {
  /** Makes a statement use an index (SQLite's `INDEXED BY`), in engines that have such a hint. */
  indexHint(index: string): RawBuilder<unknown>;
  /** An id that is not below any id of the lock's uplinks in the log. */
  newestUplinkOf(deviceId: number): RawBuilder<number>;
  /**
   * Keeps everybody else from adding usage until the transaction ends; undefined in engines whose writes take turns.
   */
  readonly lockUsage: RawBuilder<unknown> | undefined;
}

/** Usage counts to be added; `nowMs` is wall-clock time. */
export interface UsageWrite {
  readonly type: 'usage';
  readonly deltas: readonly UsageDelta[];
  readonly nowMs: number;
}

/** First activations of SIMs. */
export interface SimsWrite {
  readonly type: 'sims';
  readonly sims: readonly { readonly mac: Mac; readonly atMs: number }[];
}

export interface RefusalsWrite {
  readonly type: 'refusals';
  readonly changes: readonly RefusalChange[];
  readonly nowMs: number;
}

/**
 * Makes a write that may wait for others to share a commit.
 *
 * @param action completes a failure's message "the store could not …"
 * @throws StoreFailure
 */
export type WriteBatched = (action: string, write: UsageWrite | SimsWrite | RefusalsWrite) => Promise<void>;

/**
 * What the gateway refused of locks, in the store. The promises of store.ts hold: a method that writes resolves after
 * the write is on the disk. Times are ms since the epoch, by the run's clock.
 */
import { Days } from '../../../proto/clock.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Source } from '../../../proto/wire/ping.js';

/**
 * What was refused: a CONNECT (or what should have been one), a PUBLISH, a SUBSCRIBE; any other packet, by its type,
 * its length or its fields; or a connection that was cut because its client reads no more.
 */
export type RefusedWhat = 'connect' | 'publish' | 'subscribe' | 'packet' | 'connection';

/** Retained for so long after the last time. */
export const REFUSALS_RETAINED_FOR = Days(14);
/** Rows of a lock; beyond it, those with the oldest last time are deleted. */
export const REFUSALS_PER_LOCK = 100;
/** Rows of all locks together, give or take a few thousand. */
export const REFUSALS_RETAINED = 100_000;

/** What was refused of a lock, or of a phone that acts for it, for one reason, with a count. */
export interface Refusal {
  readonly source: Source;
  readonly what: RefusedWhat;
  /** Its kind (refusals/refusal-reason.ts). */
  readonly reason: string;
  /** The sentence for operators. */
  readonly why: string;
  /** From where the last of them came. */
  readonly address: string;
  readonly count: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
}

/** What was refused since the last write of the lock with this MAC. */
export type RefusalChange = Refusal & { readonly mac: Mac };

export interface RefusalStore {
  /**
   * Stores changes in one commit. A repeat is counted in the existing row; a MAC of no lock in service leaves nothing.
   * Deletes rows that are too old at `nowMs`, or too many.
   */
  write(changes: readonly RefusalChange[], nowMs: number): Promise<void>;
  /** Those of a lock under the merchant that has it now; the latest first. */
  read(deviceId: number, nowMs: number): Promise<Refusal[]>;
}

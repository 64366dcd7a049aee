/**
 * Refused packets and connections of locks, in the store. As in store.ts, a method that writes resolves after the write
 * is on the disk. Times are ms since the epoch, by the run's clock: it follows the wall clock, except in a sped-up
 * simulation.
 */
import { Days } from '../../../../proto/clock.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import type { Source } from '../../../../proto/wire/ping.js';

/**
 * What was refused: a CONNECT (or a first packet that is not a CONNECT), a PUBLISH, a SUBSCRIBE; any other packet, for
 * its type, length or fields; or a connection that was closed because its client stopped reading.
 */
export type RefusedWhat = 'connect' | 'publish' | 'subscribe' | 'packet' | 'connection';

/** How long a refusal is retained after its last occurrence. */
export const REFUSALS_RETAINED_FOR = Days(14);
/** Maximum rows of a lock; beyond it, rows with the oldest last occurrence are deleted. */
export const MAX_REFUSALS_PER_LOCK = 100;
/** Maximum rows of all locks together; exceeded by up to a few thousand. */
export const MAX_REFUSALS = 100_000;

/** Refusals of a lock, or of a phone that acts for it, for one reason, with a count. */
export interface Refusal {
  readonly source: Source;
  readonly what: RefusedWhat;
  /** The code of the reason (refusals/refusal-reason.ts). */
  readonly reason: string;
  /** The sentence for operators. */
  readonly why: string;
  /** The address of the latest refused client. */
  readonly address: string;
  readonly count: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
}

/** Refusals of the lock with this MAC since the last write. */
export type RefusalChange = Refusal & { readonly mac: Mac };

export interface RefusalStore {
  /**
   * Stores changes in one commit. A repeat is counted in the existing row; a change for a MAC that no lock in service
   * has is ignored. Deletes rows beyond the limits of age and number.
   */
  write(changes: readonly RefusalChange[], nowMs: number): Promise<void>;
  /** Returns the refusals of a lock while it belonged to its current merchant; latest first. */
  read(deviceId: number, nowMs: number): Promise<Refusal[]>;
}

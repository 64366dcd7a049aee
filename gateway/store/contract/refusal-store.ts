/**
 * What was refused of locks, as the store keeps it. The promises of store.ts hold: a method that writes resolves after
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

/** Kept for so long after the last time. */
export const REFUSALS_RETAINED_FOR = Days(14);
/** Rows of a lock: of more, those go that were last heard of longest ago. */
export const REFUSALS_PER_LOCK = 100;
/** Rows of all locks together, give or take some thousands. */
export const REFUSALS_RETAINED = 100_000;

/** Something that was refused of a lock, or of a phone that acts for it, for one reason, as often as it was. */
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

/** What was refused since the last write, of whoever has this MAC. */
export type RefusalChange = Refusal & { readonly mac: Mac };

export interface RefusalStore {
  /**
   * Keeps changes in one commit. A repeat is counted in the row that there is; what names no lock in service leaves
   * nothing. What is too old at `nowMs`, or too much, goes.
   */
  write(changes: readonly RefusalChange[], nowMs: number): Promise<void>;
  /** Those of a lock, made for the merchant that has it now; the latest first. */
  read(deviceId: number, nowMs: number): Promise<Refusal[]>;
}

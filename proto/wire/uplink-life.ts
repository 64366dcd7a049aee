/**
 * Lives of a lock (protocol.md §1). A lock whose flash was wiped counts its boots from 1 again. The operator marks when
 * that happened. The marks divide the lock's uplinks into *lives*, and uplinks are ordered by life before boot and
 * sequence. The life is the only part of the order that depends on a clock. Pure.
 */

/** The number of a lock's first life. A lock that was never reflashed has only this one. */
export const FIRST_LIFE = 1;

/** A lock's clock that shows an earlier time has never been set. Ms since the epoch. */
export const PLAUSIBLE_FROM_MS = Date.UTC(2020, 0, 1);

/** How often one lock can be marked as reflashed. */
export const MAX_REFLASH_MARKS = 100;

/** The marks of a lock that was never reflashed. */
export const NO_MARKS: readonly number[] = Object.freeze([]);

/**
 * The life of an uplink: 1, and one more for each mark at or before the time at which the uplink was made. If that time
 * is before 2020 or after the receipt, the clock was wrong, and the marks before the receipt count instead. All times
 * are ms since the epoch.
 *
 * @param marksMs in any order
 * @param timeMs by the lock's clock
 */
export function lifeOf(marksMs: readonly number[], timeMs: number, receivedAtMs: number): number {
  let life = FIRST_LIFE;
  const isPlausible = timeMs >= PLAUSIBLE_FROM_MS && timeMs <= receivedAtMs;
  for (const markMs of marksMs) {
    if (isPlausible ? markMs <= timeMs : markMs < receivedAtMs) life += 1;
  }
  return life;
}

/**
 * Lives of a lock (protocol.md §1). A lock whose flash was wiped counts its boots from 1 again. Marks record when that
 * happened and divide its uplinks into lives, which come before boot and sequence in the order. Only here does a clock
 * take part in the order.
 */

/** The life of a lock that was never reflashed, and the first of any other. */
export const FIRST_LIFE = 1;

/** A clock that was never set shows a time before this one, ms since the epoch. */
export const PLAUSIBLE_FROM_MS = Date.UTC(2020, 0, 1);

/** How often one lock can be marked as reflashed. */
export const MAX_REFLASH_MARKS = 100;

/** The marks of a lock that was never reflashed. */
export const NO_MARKS: readonly number[] = Object.freeze([]);

/**
 * The life of an uplink: 1, and one more for each mark at or before the time it was made. Where that time is before
 * 2020 or after its receipt, the marks before its receipt count instead. All times are ms since the epoch.
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

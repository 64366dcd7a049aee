/**
 * An inferred event: something that must have happened around a lock, inferred from its uplinks. Of several at the same
 * moment the order matters to the lock, so each kind has a rank.
 */
import type { WorldChange } from '../world/world.js';

export interface InferredEvent {
  /** Ms since the epoch. */
  readonly atMs: number;
  readonly change: WorldChange;
  /** Its rank among events of the same moment, where it differs from that of its kind. */
  readonly rank?: number;
}

/**
 * By how much an uplink may differ from the time that the model predicts and still be the one that was due: the
 * inaccuracy of a machine under load.
 */
export const TOLERANCE = 1500;

/** By how much a GPS ping may be late. It is small, since an inferred stop that did not take place changes nothing. */
export const GPS_TOLERANCE = 2;

/** Whether two times are the same within the tolerance. */
export function isNear(oneMs: number, otherMs: number): boolean {
  return Math.abs(oneMs - otherMs) <= TOLERANCE;
}

/**
 * Coverage starts before the lock sends and ends after; what a ping merely carries comes before what makes the lock
 * send it; motion ends before the shackle moves, and starts after.
 */
const RANKS: Readonly<Record<WorldChange['type'], number>> = {
  boot: 2,
  sky: 3,
  tether: 4,
  ebike: 5,
  battery: 6,
  settings: 7,
  'modem-reset': 7.5,
  'lock-state': 9,
  motion: 10,
  coverage: 11,
};

/** After everything else of its moment, while there is still coverage. */
export const LATE = 10.5;

function rankOf({ change, rank }: InferredEvent): number {
  if (rank !== undefined) return rank;
  if (change.type === 'coverage' && change.covered) return 0;
  if (change.type === 'motion' && !change.moving) return 8;
  return RANKS[change.type];
}

/** Sorts events into the order in which they happened. */
export function inOrder(events: readonly InferredEvent[]): InferredEvent[] {
  return events.toSorted((one, other) => one.atMs - other.atMs || rankOf(one) - rankOf(other));
}

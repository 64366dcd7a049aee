/**
 * A clue: something that must have happened around a lock, made out from what it said. Where several fall on one
 * moment their order matters to the lock, and so each kind has a rank.
 */
import type { WorldChange } from '../world/world.js';

export interface InferredEvent {
  /** Ms since the epoch. */
  readonly atMs: number;
  readonly change: WorldChange;
  /** Where it stands among those of its moment, if not where its kind does. */
  readonly rank?: number;
}

/**
 * By how much an uplink may be off the moment at which the model has it and still be the one that was due: what a
 * machine under load makes of a second.
 */
export const TOLERANCE = 1500;

/** By how much a GPS ping may be late: a stop that is made out where there was none changes nothing. */
export const GPS_TOLERANCE = 2;

/** Whether two moments are one, by and large. */
export function isNear(oneMs: number, otherMs: number): boolean {
  return Math.abs(oneMs - otherMs) <= TOLERANCE;
}

/**
 * The network is there before the lock speaks and leaves after; what a ping merely carries comes before what makes the
 * lock send it; motion that ended, ended before the shackle moved, and motion that began, began after.
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

/** After all else of its moment, while the network is still there. */
export const LATE = 10.5;

function rankOf({ change, rank }: InferredEvent): number {
  if (rank !== undefined) return rank;
  if (change.type === 'coverage' && change.covered) return 0;
  if (change.type === 'motion' && !change.moving) return 8;
  return RANKS[change.type];
}

/** In the order in which they happened. */
export function inOrder(clues: readonly InferredEvent[]): InferredEvent[] {
  return clues.toSorted((one, other) => one.atMs - other.atMs || rankOf(one) - rankOf(other));
}

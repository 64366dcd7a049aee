/**
 * An inferred event: a change that must have happened around a lock, inferred from its uplinks in a trace. The order of
 * events at the same moment matters to the lock, so each kind of event has a rank. Pure.
 */
import type { WorldChange } from '../world/world.js';

/** See the top of this file. */
export interface InferredEvent {
  /** Ms since the epoch. */
  readonly atMs: number;
  readonly change: WorldChange;
  /** The rank among events of the same moment, if it differs from the rank of the kind. */
  readonly rank?: number;
}

/**
 * By how much an uplink may differ from the time that the model predicts and still count as the predicted uplink. A
 * machine under load is that inaccurate.
 */
export const TOLERANCE_MS = 1500;

/** By how much a GPS ping may be late. Small, since inferring a stop that did not take place does no harm. */
export const GPS_TOLERANCE_MS = 2;

/** Whether two times are the same within the tolerance. */
export function isNear(aMs: number, bMs: number): boolean {
  return Math.abs(aMs - bMs) <= TOLERANCE_MS;
}

/**
 * The ranks by kind; lower ranks come first. Coverage starts before all other events (rank 0) and ends after them.
 * Changes that pings only report come before changes that make the lock send a ping. Motion ends before the shackle
 * moves (rank 8), and starts after.
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

/** The rank after all other events of a moment, but before coverage ends. */
export const LAST_RANK = 10.5;

function rankOf({ change, rank }: InferredEvent): number {
  if (rank !== undefined) return rank;
  if (change.type === 'coverage' && change.covered) return 0;
  if (change.type === 'motion' && !change.moving) return 8;
  return RANKS[change.type];
}

/** Sorts events by time, and events of the same moment by rank. */
export function sortInferredEvents(events: readonly InferredEvent[]): InferredEvent[] {
  return events.toSorted((a, b) => a.atMs - b.atMs || rankOf(a) - rankOf(b));
}

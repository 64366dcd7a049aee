/**
 * Where a lock truly was: the true positions (*fixes*) of `world` events, which record what truly happened around the
 * lock, and whether the lock moved between them. Decides whether a GPS position can be true (protocol.md §3). Does no
 * I/O.
 */
import { metersBetween } from '../../power/judge/in-order/geodesy.js';
import type { Position } from '../../wire/ping.js';
import type { WorldCause } from './duty.js';

/** A position may differ from the truth by its uncertainty and this. */
const TOLERANCE_METERS = 100;
/** Between two fixes a moving lock is at most this fast (m/s): 180 km/h. */
const MAX_SPEED = 50;
/** How many fixes are remembered, to compare uplinks that come late. */
const MAX_FIXES = 4096;

interface TrueFix {
  readonly atMs: number;
  readonly position: Omit<Position, 'uncertaintyMeters'>;
  readonly cause: WorldCause;
  /** When the lock first moved at or after the fix; Infinity if it has not. */
  leftMs: number;
}

/** A reported position that is too far from the true one. */
export interface WrongPlace {
  /** The `world` event that has the true position. */
  readonly cause: WorldCause;
  /** The distance between the two. */
  readonly meters: number;
  /** The distance that would be allowed. */
  readonly allowedMeters: number;
}

/** See the top of this file. */
export class Whereabouts {
  #fixes: TrueFix[] = [];
  #isMoving = false;

  /** The lock started or stopped moving. */
  moved(atMs: number, isMoving: boolean): void {
    this.#isMoving = isMoving;
    const last = this.#fixes.at(-1);
    if (isMoving && last !== undefined) last.leftMs = Math.min(last.leftMs, atMs);
  }

  /** A `world` event has the lock's true position. */
  fix(atMs: number, position: TrueFix['position'], cause: WorldCause): void {
    const leftMs = this.#isMoving ? atMs : Number.POSITIVE_INFINITY;
    this.#fixes.push({ atMs, position, cause, leftMs });
    // Half of them at once, so that the list is seldom copied.
    if (this.#fixes.length > MAX_FIXES) this.#fixes = this.#fixes.slice(MAX_FIXES / 2);
  }

  /** Forgets fixes from before `madeMs`, because every uplink made earlier has arrived. */
  forgetBefore(madeMs: number): void {
    const index = this.#indexAt(madeMs);
    if (index > 0) this.#fixes = this.#fixes.slice(index);
  }

  /** Compares a position measured at `madeMs`. Null if it can be true; undefined if no fix is known. */
  compare(madeMs: number, position: Position): WrongPlace | null | undefined {
    const index = this.#indexAt(madeMs);
    const before = this.#fixes[index];
    if (before === undefined) return undefined;
    const wrong = wrongPlace(before, madeMs - before.leftMs, position);
    const after = this.#fixes[index + 1];
    // While the lock stands still, the earlier fix decides; once it has moved, the next fix limits where it can be.
    if (wrong !== null || after === undefined || before.leftMs > madeMs) return wrong;
    return wrongPlace(after, after.atMs - madeMs, position);
  }

  /** The index of the last fix at or before a moment; −1 if there is none. */
  #indexAt(atMs: number): number {
    return this.#fixes.findLastIndex((fix) => fix.atMs <= atMs);
  }
}

/**
 * Compares a reported position with a fix. Null if it can be true.
 *
 * @param movedFor how long the lock may have moved between the two, in ms; negative if it can't have moved
 */
function wrongPlace({ position, cause }: TrueFix, movedFor: number, reported: Position): WrongPlace | null {
  const reachMeters = movedFor > 0 ? (movedFor / 1000) * MAX_SPEED : 0;
  const allowedMeters = reported.uncertaintyMeters + TOLERANCE_METERS + reachMeters;
  const meters = metersBetween(position, reported);
  return meters > allowedMeters ? { cause, meters, allowedMeters } : null;
}

/**
 * Where a lock truly was: the `fix` events of the world, and whether it moved between them. Says whether a GPS position
 * can be true (protocol.md §3).
 */
import { metersBetween } from '../../power/judge/in-order/geodesy.js';
import type { Position } from '../../wire/ping.js';
import type { WorldCause } from './duty.js';

/** A position may differ from the truth by its uncertainty and this. */
const TOLERANCE_METERS = 100;
/** Between two fixes a moving lock is at most this fast (m/s): 180 km/h. */
const MAX_SPEED = 50;
/** How many fixes are kept for uplinks that come late. */
const MAX_FIXES = 4096;

interface TrueFix {
  readonly atMs: number;
  readonly position: Omit<Position, 'uncertaintyMeters'>;
  readonly cause: WorldCause;
  /** When the lock first moved at or after the fix; Infinity if it has not. */
  leftMs: number;
}

/** A position that is further from the true one than it may be. */
export interface WrongPlace {
  readonly cause: WorldCause;
  /** How far from the true position of the event. */
  readonly meters: number;
  /** How far it may be. */
  readonly allowedMeters: number;
}

export class Whereabouts {
  #fixes: TrueFix[] = [];
  #isMoving = false;

  moved(atMs: number, isMoving: boolean): void {
    this.#isMoving = isMoving;
    const last = this.#fixes.at(-1);
    if (isMoving && last !== undefined) last.leftMs = Math.min(last.leftMs, atMs);
  }

  fix(atMs: number, position: TrueFix['position'], cause: WorldCause): void {
    const leftMs = this.#isMoving ? atMs : Number.POSITIVE_INFINITY;
    this.#fixes.push({ atMs, position, cause, leftMs });
    if (this.#fixes.length > MAX_FIXES) this.#fixes = this.#fixes.slice(MAX_FIXES / 2);
  }

  /** Every uplink made before this has arrived, so older fixes are no longer needed. */
  forgetBefore(madeMs: number): void {
    const index = this.#indexAt(madeMs);
    if (index > 0) this.#fixes = this.#fixes.slice(index);
  }

  /** Compares a position measured at `madeMs`. Null if it can be true; undefined if the truth is not known. */
  compare(madeMs: number, position: Position): WrongPlace | null | undefined {
    const index = this.#indexAt(madeMs);
    const before = this.#fixes[index];
    if (before === undefined) return undefined;
    const wrong = wrongPlace(before, madeMs - before.leftMs, position);
    const after = this.#fixes[index + 1];
    if (wrong !== null || after === undefined || before.leftMs > madeMs) return wrong;
    return wrongPlace(after, after.atMs - madeMs, position);
  }

  /** The index of the last fix at or before a moment; −1 if there is none. */
  #indexAt(atMs: number): number {
    return this.#fixes.findLastIndex((fix) => fix.atMs <= atMs);
  }
}

/** @param movedFor how long the lock may have moved between the fix and the position, in ms; negative for not at all */
function wrongPlace({ position, cause }: TrueFix, movedFor: number, told: Position): WrongPlace | null {
  const reachMeters = movedFor > 0 ? (movedFor / 1000) * MAX_SPEED : 0;
  const allowedMeters = told.uncertaintyMeters + TOLERANCE_METERS + reachMeters;
  const meters = metersBetween(position, told);
  return meters > allowedMeters ? { cause, meters, allowedMeters } : null;
}

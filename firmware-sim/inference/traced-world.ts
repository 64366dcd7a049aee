/** The world of a lock that is made from a trace: what happened is a list, and where the lock was is a path. */

import type { GpsFix } from '../../proto/power/step/io.js';
import type { Position } from '../../proto/wire/ping.js';
import { AMSTERDAM } from '../world/routes/city.js';
import { CELL_UNCERTAINTY_METERS, ScriptedWorld, type WorldBeginning, type WorldEvent } from '../world/world.js';

/** Where the lock was at a moment. */
export interface PathPoint {
  /** Ms since the epoch. */
  readonly atMs: number;
  readonly fix: GpsFix;
  /** Where it truly was, if that is known and GPS read another place. */
  readonly truth?: GpsFix;
}

/** A place, where a trace tells none: there must be one. */
const NOWHERE: GpsFix = {
  position: {
    latitudeDegrees: AMSTERDAM.latitudeDegrees,
    longitudeDegrees: AMSTERDAM.longitudeDegrees,
    uncertaintyMeters: 10,
  },
  speedMetersPerSecond: 0,
  directionDegrees: 0,
};

/** What happened, and a way through the places that the trace tells of. */
export class TracedWorld extends ScriptedWorld {
  readonly #path: readonly PathPoint[];
  /** The first point that is later than the moment last asked for, which never goes back. */
  #next = 0;
  readonly #cells: readonly { readonly atMs: number; readonly position: Position }[];

  /**
   * @param path in order of time; between two points the lock goes straight on
   * @param cells what the network took its place to be, in order of time
   */
  constructor(
    beginning: WorldBeginning,
    events: readonly WorldEvent[],
    path: readonly PathPoint[],
    cells: readonly { readonly atMs: number; readonly position: Position }[],
  ) {
    super(beginning, events, NOWHERE);
    this.#path = path;
    this.#cells = cells;
  }

  override fixAt(atMs: number): GpsFix {
    const before = this.#lastBy(atMs);
    const after = this.#path[this.#next];
    if (before === undefined || after === undefined || before.atMs === atMs) return (before ?? after)?.fix ?? NOWHERE;
    return between(before, after, (atMs - before.atMs) / (after.atMs - before.atMs));
  }

  /** What GPS told is all that is known, but at the moments of which the trace tells the truth. */
  override truthAt(atMs: number): GpsFix {
    const last = this.#lastBy(atMs);
    return last?.atMs === atMs && last.truth !== undefined ? last.truth : this.fixAt(atMs);
  }

  #lastBy(atMs: number): PathPoint | undefined {
    while (this.#next < this.#path.length && (this.#path[this.#next] as PathPoint).atMs <= atMs) this.#next += 1;
    return this.#path[this.#next - 1];
  }

  override cellPositionAt(atMs: number): Position {
    const cell = this.#cells.findLast((one) => one.atMs <= atMs) ?? this.#cells[0];
    return cell?.position ?? { ...this.fixAt(atMs).position, uncertaintyMeters: CELL_UNCERTAINTY_METERS };
  }
}

function between({ fix: one }: PathPoint, { fix: other }: PathPoint, share: number): GpsFix {
  const go = (from: number, to: number): number => toE7(from + (to - from) * share);
  // The shorter way round, over the antimeridian where that is it.
  const turn = other.position.longitudeDegrees - one.position.longitudeDegrees;
  const other360 = turn > 180 ? -360 : turn < -180 ? 360 : 0;
  const longitude = go(one.position.longitudeDegrees, other.position.longitudeDegrees + other360);
  return {
    position: {
      latitudeDegrees: go(one.position.latitudeDegrees, other.position.latitudeDegrees),
      longitudeDegrees: longitude > 180 ? longitude - 360 : longitude < -180 ? longitude + 360 : longitude,
      uncertaintyMeters: Math.max(one.position.uncertaintyMeters, other.position.uncertaintyMeters),
    },
    speedMetersPerSecond: one.speedMetersPerSecond,
    directionDegrees: one.directionDegrees,
  };
}

/** What the wire carries. */
function toE7(degrees: number): number {
  return Math.round(degrees * 1e7) / 1e7;
}

/** The world of a lock that is made from a trace: a list of events, and a path through the places in the trace. */

import type { GpsFix } from '../../proto/power/step/io.js';
import type { Position } from '../../proto/wire/ping.js';
import { AMSTERDAM } from '../world/routes/city.js';
import { CELL_UNCERTAINTY_METERS, type InitialState, ScriptedWorld, type WorldEvent } from '../world/world.js';

/** The lock's place at a moment. */
export interface PathPoint {
  /** Ms since the epoch. */
  readonly atMs: number;
  readonly fix: GpsFix;
  /** Where it truly was, if that is known and GPS read another place. */
  readonly trueFix?: GpsFix;
}

/** Used where a trace has no place: the lock must be somewhere. */
const NOWHERE: GpsFix = {
  position: {
    latitudeDegrees: AMSTERDAM.latitudeDegrees,
    longitudeDegrees: AMSTERDAM.longitudeDegrees,
    uncertaintyMeters: 10,
  },
  speedMetersPerSecond: 0,
  directionDegrees: 0,
};

/** Events, and a path that is interpolated between the places in the trace. */
export class TracedWorld extends ScriptedWorld {
  readonly #path: readonly PathPoint[];
  /** The first point after the moment last asked for, which never goes back. */
  #next = 0;
  readonly #cells: readonly { readonly atMs: number; readonly position: Position }[];

  /**
   * @param path in order of time; between two points the lock moves in a straight line
   * @param cells positions by the network, in order of time
   */
  constructor(
    initialState: InitialState,
    events: readonly WorldEvent[],
    path: readonly PathPoint[],
    cells: readonly { readonly atMs: number; readonly position: Position }[],
  ) {
    super(initialState, events, NOWHERE);
    this.#path = path;
    this.#cells = cells;
  }

  override fixAt(atMs: number): GpsFix {
    const before = this.#lastBy(atMs);
    const after = this.#path[this.#next];
    if (before === undefined || after === undefined || before.atMs === atMs) return (before ?? after)?.fix ?? NOWHERE;
    return between(before, after, (atMs - before.atMs) / (after.atMs - before.atMs));
  }

  /** The GPS reading is all that is known, except at the moments of ground truth. */
  override trueFixAt(atMs: number): GpsFix {
    const last = this.#lastBy(atMs);
    return last?.atMs === atMs && last.trueFix !== undefined ? last.trueFix : this.fixAt(atMs);
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
  // The shorter way round, across the antimeridian if need be.
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

/** The resolution of the wire. */
function toE7(degrees: number): number {
  return Math.round(degrees * 1e7) / 1e7;
}

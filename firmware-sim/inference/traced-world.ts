/**
 * The world (what happens to a lock, and what its sensors read) of a lock that is made from a trace: a list of events,
 * and a path through the positions in the trace. The world only replays both and infers nothing. Does no I/O.
 */

import type { GpsFix } from '../../proto/power/step/io.js';
import type { Position } from '../../proto/wire/ping.js';
import { AMSTERDAM } from '../world/routes/city.js';
import { CELL_UNCERTAINTY_METERS, type InitialState, ScriptedWorld, type WorldEvent } from '../world/world.js';

/** A point of the lock's path: its position at a moment. */
export interface PathPoint {
  /** Ms since the epoch. */
  readonly atMs: number;
  readonly fix: GpsFix;
  /** The true position, if it is known and differs from the GPS reading. */
  readonly trueFix?: GpsFix;
}

/** The position of a lock whose trace has no positions. */
const DEFAULT_FIX: GpsFix = {
  position: {
    latitudeDegrees: AMSTERDAM.latitudeDegrees,
    longitudeDegrees: AMSTERDAM.longitudeDegrees,
    uncertaintyMeters: 10,
  },
  speedMetersPerSecond: 0,
  directionDegrees: 0,
};

/** Replays events, and interpolates the path between the positions in the trace. */
export class TracedWorld extends ScriptedWorld {
  readonly #path: readonly PathPoint[];
  /** The index of the first point after the last moment that was asked for. Callers never go back in time. */
  #next = 0;
  readonly #cells: readonly { readonly atMs: number; readonly position: Position }[];

  /**
   * @param path in order of time; between two points the lock moves in a straight line
   * @param cells positions by the cellular network, in order of time
   */
  constructor(
    initialState: InitialState,
    events: readonly WorldEvent[],
    path: readonly PathPoint[],
    cells: readonly { readonly atMs: number; readonly position: Position }[],
  ) {
    super(initialState, events, DEFAULT_FIX);
    this.#path = path;
    this.#cells = cells;
  }

  override fixAt(atMs: number): GpsFix {
    const before = this.#lastPointBy(atMs);
    const after = this.#path[this.#next];
    if (before === undefined || after === undefined || before.atMs === atMs)
      return (before ?? after)?.fix ?? DEFAULT_FIX;
    return interpolateFix(before, after, (atMs - before.atMs) / (after.atMs - before.atMs));
  }

  /** The true position at moments that have ground truth, otherwise the GPS reading. */
  override trueFixAt(atMs: number): GpsFix {
    const last = this.#lastPointBy(atMs);
    return last?.atMs === atMs && last.trueFix !== undefined ? last.trueFix : this.fixAt(atMs);
  }

  /** The last point of the path at or before a moment. */
  #lastPointBy(atMs: number): PathPoint | undefined {
    while (this.#next < this.#path.length && (this.#path[this.#next] as PathPoint).atMs <= atMs) this.#next += 1;
    return this.#path[this.#next - 1];
  }

  override cellPositionAt(atMs: number): Position {
    const cell = this.#cells.findLast((position) => position.atMs <= atMs) ?? this.#cells[0];
    return cell?.position ?? { ...this.fixAt(atMs).position, uncertaintyMeters: CELL_UNCERTAINTY_METERS };
  }
}

/** The fix at a fraction (0 to 1) of the way from one point to the next. */
function interpolateFix({ fix: from }: PathPoint, { fix: to }: PathPoint, fraction: number): GpsFix {
  const interpolate = (start: number, end: number): number => toE7(start + (end - start) * fraction);
  // The shorter way around the Earth, across the antimeridian if necessary.
  const longitudeChange = to.position.longitudeDegrees - from.position.longitudeDegrees;
  const fullTurn = longitudeChange > 180 ? -360 : longitudeChange < -180 ? 360 : 0;
  const longitude = interpolate(from.position.longitudeDegrees, to.position.longitudeDegrees + fullTurn);
  return {
    position: {
      latitudeDegrees: interpolate(from.position.latitudeDegrees, to.position.latitudeDegrees),
      longitudeDegrees: longitude > 180 ? longitude - 360 : longitude < -180 ? longitude + 360 : longitude,
      uncertaintyMeters: Math.max(from.position.uncertaintyMeters, to.position.uncertaintyMeters),
    },
    speedMetersPerSecond: from.speedMetersPerSecond,
    directionDegrees: from.directionDegrees,
  };
}

/** Rounds to the resolution of the wire format. */
function toE7(degrees: number): number {
  return Math.round(degrees * 1e7) / 1e7;
}

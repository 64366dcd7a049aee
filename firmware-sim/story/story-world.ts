/**
 * The world of a story. A story is a short, fixed sequence of events around one lock (story.ts); its world gives the
 * simulated lock these events and the position of the bicycle. While the bicycle moves, it rides along city blocks at
 * one speed. Nothing is random.
 */
import { type Milliseconds, Seconds } from '../../proto/clock.js';
import type { GpsFix } from '../../proto/power/step/io.js';
import type { Position } from '../../proto/wire/ping.js';
import { type City, type Place, placeAlong, positionOf } from '../world/routes/city.js';
import { CELL_UNCERTAINTY_METERS, type InitialState, ScriptedWorld, type WorldEvent } from '../world/world.js';

/** The speed of a bicycle in town. */
const SPEED_METERS_PER_SECOND = 4.2;
/** The distance between corners. The bicycle turns right and left alternately. */
const BLOCK_METERS = 120;
/** The direction of the street in which the bicycle starts, clockwise from north. */
const HEADING_DEGREES = 24;
/** The uncertainty that each GPS fix states. */
const FIX_UNCERTAINTY_METERS = 8;

/** A span of time in which the bicycle moves, ms since the epoch. */
interface TimeSpan {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** See the top of this file. */
export class StoryWorld extends ScriptedWorld {
  readonly #start: City;
  readonly #ridingSpans: readonly TimeSpan[];

  /**
   * @param events in order of time
   * @param start a map whose middle is where the bicycle stands at the start
   */
  constructor(initialState: InitialState, events: readonly WorldEvent[], start: City) {
    super(initialState, events, fixAfter(start, 0, false));
    this.#start = start;
    this.#ridingSpans = ridingSpansOf(events);
  }

  override fixAt(atMs: number): GpsFix {
    const meters = (SPEED_METERS_PER_SECOND * this.#movedUntil(atMs)) / Seconds(1);
    const isMoving = this.#ridingSpans.some(({ fromMs, untilMs }) => fromMs <= atMs && atMs < untilMs);
    return fixAfter(this.#start, meters, isMoving);
  }

  /** GPS has no error here. */
  override trueFixAt(atMs: number): GpsFix {
    return this.fixAt(atMs);
  }

  override cellPositionAt(atMs: number): Position {
    return { ...this.fixAt(atMs).position, uncertaintyMeters: CELL_UNCERTAINTY_METERS };
  }

  /** For how long the bicycle has moved before `atMs`. */
  #movedUntil(atMs: number): Milliseconds {
    return this.#ridingSpans.reduce(
      (sum, { fromMs, untilMs }) => sum + Math.max(0, Math.min(atMs, untilMs) - fromMs),
      0,
    );
  }
}

/** The GPS fix of a bicycle that has ridden this far from the start. */
function fixAfter(start: City, meters: number, isMoving: boolean): GpsFix {
  return {
    position: positionOf(start, placeAfter(meters), FIX_UNCERTAINTY_METERS),
    speedMetersPerSecond: isMoving ? SPEED_METERS_PER_SECOND : 0,
    directionDegrees: HEADING_DEGREES + (Math.floor(meters / BLOCK_METERS) % 2) * 90,
  };
}

/** The spans between the start of a movement and the next change of motion. */
function ridingSpansOf(events: readonly WorldEvent[]): TimeSpan[] {
  const motionChanges = events.flatMap(({ atMs, change }) => (change.type === 'motion' ? [{ atMs, ...change }] : []));
  return motionChanges.flatMap(({ atMs, moving }, index) => {
    return moving ? [{ fromMs: atMs, untilMs: motionChanges[index + 1]?.atMs ?? Number.POSITIVE_INFINITY }] : [];
  });
}

/**
 * The place after a ride of this length: one block along the first street, one block to the right, and so on.
 * `aheadMeters` and `rightMeters` are the distances in these two directions.
 */
function placeAfter(meters: number): Place {
  const blocks = Math.floor(meters / BLOCK_METERS);
  const metersInBlock = meters - blocks * BLOCK_METERS;
  const isAhead = blocks % 2 === 0;
  const aheadMeters = Math.ceil(blocks / 2) * BLOCK_METERS + (isAhead ? metersInBlock : 0);
  const rightMeters = Math.floor(blocks / 2) * BLOCK_METERS + (isAhead ? 0 : metersInBlock);
  const start = { eastMeters: 0, northMeters: 0 };
  return placeAlong(placeAlong(start, HEADING_DEGREES, aheadMeters), HEADING_DEGREES + 90, rightMeters);
}

/**
 * The world of a story: a fixed list of events, and a bicycle that rides around blocks while it moves. No randomness.
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
const HEADING_DEGREES = 24;
const FIX_UNCERTAINTY_METERS = 8;

interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

export class StoryWorld extends ScriptedWorld {
  readonly #middle: City;
  readonly #ridingSpans: readonly Span[];

  /**
   * @param events in order of time
   * @param middle where the bicycle stands at the start
   */
  constructor(initialState: InitialState, events: readonly WorldEvent[], middle: City) {
    super(initialState, events, fixAfter(middle, 0, false));
    this.#middle = middle;
    this.#ridingSpans = ridingSpansOf(events);
  }

  override fixAt(atMs: number): GpsFix {
    const meters = (SPEED_METERS_PER_SECOND * this.#movedFor(atMs)) / Seconds(1);
    const isMoving = this.#ridingSpans.some(({ fromMs, untilMs }) => fromMs <= atMs && atMs < untilMs);
    return fixAfter(this.#middle, meters, isMoving);
  }

  /** GPS has no error here. */
  override trueFixAt(atMs: number): GpsFix {
    return this.fixAt(atMs);
  }

  override cellPositionAt(atMs: number): Position {
    return { ...this.fixAt(atMs).position, uncertaintyMeters: CELL_UNCERTAINTY_METERS };
  }

  #movedFor(atMs: number): Milliseconds {
    return this.#ridingSpans.reduce(
      (sum, { fromMs, untilMs }) => sum + Math.max(0, Math.min(atMs, untilMs) - fromMs),
      0,
    );
  }
}

function fixAfter(middle: City, meters: number, isMoving: boolean): GpsFix {
  return {
    position: positionOf(middle, placeAfter(meters), FIX_UNCERTAINTY_METERS),
    speedMetersPerSecond: isMoving ? SPEED_METERS_PER_SECOND : 0,
    directionDegrees: HEADING_DEGREES + (Math.floor(meters / BLOCK_METERS) % 2) * 90,
  };
}

function ridingSpansOf(events: readonly WorldEvent[]): Span[] {
  const turns = events.flatMap(({ atMs, change }) => (change.type === 'motion' ? [{ atMs, ...change }] : []));
  return turns.flatMap(({ atMs, moving }, index) => {
    return moving ? [{ fromMs: atMs, untilMs: turns[index + 1]?.atMs ?? Number.POSITIVE_INFINITY }] : [];
  });
}

/** The place on a staircase of blocks: one block to the north, one to the east, and so on. */
function placeAfter(meters: number): Place {
  const blocks = Math.floor(meters / BLOCK_METERS);
  const metersInBlock = meters - blocks * BLOCK_METERS;
  const isNorthward = blocks % 2 === 0;
  const north = Math.ceil(blocks / 2) * BLOCK_METERS + (isNorthward ? metersInBlock : 0);
  const east = Math.floor(blocks / 2) * BLOCK_METERS + (isNorthward ? 0 : metersInBlock);
  const start = { eastMeters: 0, northMeters: 0 };
  return placeAlong(placeAlong(start, HEADING_DEGREES, north), HEADING_DEGREES + 90, east);
}

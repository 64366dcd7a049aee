/** The world of a story: what is on its list happens, and while the bicycle moves it goes around blocks. */
import { type Milliseconds, Seconds } from '../../proto/clock.js';
import type { GpsFix } from '../../proto/power/step/io.js';
import type { Position } from '../../proto/wire/ping.js';
import { type City, type Place, placeAlong, positionOf } from './routes/city.js';
import { CELL_UNCERTAINTY_METERS, ScriptedWorld, type WorldBeginning, type WorldEvent } from './world.js';

/** As fast as a bicycle in town. */
const SPEED_METERS_PER_SECOND = 4.2;
/** From one corner to the next, where it turns right and then left again. */
const BLOCK_METERS = 120;
const HEADING_DEGREES = 24;
const FIX_UNCERTAINTY_METERS = 8;

interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

export class StoryWorld extends ScriptedWorld {
  readonly #middle: City;
  readonly #moving: readonly Span[];

  /** @param events in order of time; `middle` is where the bicycle stands at first */
  constructor(beginning: WorldBeginning, events: readonly WorldEvent[], middle: City) {
    super(beginning, events, fixAfter(middle, 0, false));
    this.#middle = middle;
    this.#moving = spansOfMotion(events);
  }

  override fixAt(atMs: number): GpsFix {
    const meters = (SPEED_METERS_PER_SECOND * this.#movedFor(atMs)) / Seconds(1);
    const isMoving = this.#moving.some(({ fromMs, untilMs }) => fromMs <= atMs && atMs < untilMs);
    return fixAfter(this.#middle, meters, isMoving);
  }

  /** What GPS reads has no error here. */
  override truthAt(atMs: number): GpsFix {
    return this.fixAt(atMs);
  }

  override cellPositionAt(atMs: number): Position {
    return { ...this.fixAt(atMs).position, uncertaintyMeters: CELL_UNCERTAINTY_METERS };
  }

  #movedFor(atMs: number): Milliseconds {
    return this.#moving.reduce((sum, { fromMs, untilMs }) => sum + Math.max(0, Math.min(atMs, untilMs) - fromMs), 0);
  }
}

function fixAfter(middle: City, meters: number, isMoving: boolean): GpsFix {
  return {
    position: positionOf(middle, placeAfter(meters), FIX_UNCERTAINTY_METERS),
    speedMetersPerSecond: isMoving ? SPEED_METERS_PER_SECOND : 0,
    directionDegrees: HEADING_DEGREES + (Math.floor(meters / BLOCK_METERS) % 2) * 90,
  };
}

function spansOfMotion(events: readonly WorldEvent[]): Span[] {
  const turns = events.flatMap(({ atMs, change }) => (change.type === 'motion' ? [{ atMs, ...change }] : []));
  return turns.flatMap(({ atMs, moving }, index) => {
    return moving ? [{ fromMs: atMs, untilMs: turns[index + 1]?.atMs ?? Number.POSITIVE_INFINITY }] : [];
  });
}

/** Up the stairs that blocks make: one to the north, one to the east. */
function placeAfter(meters: number): Place {
  const blocks = Math.floor(meters / BLOCK_METERS);
  const rest = meters - blocks * BLOCK_METERS;
  const isNorthward = blocks % 2 === 0;
  const north = Math.ceil(blocks / 2) * BLOCK_METERS + (isNorthward ? rest : 0);
  const east = Math.floor(blocks / 2) * BLOCK_METERS + (isNorthward ? 0 : rest);
  const start = { eastMeters: 0, northMeters: 0 };
  return placeAlong(placeAlong(start, HEADING_DEGREES, north), HEADING_DEGREES + 90, east);
}

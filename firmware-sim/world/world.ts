/** What surrounds a lock: the events that happen to it, and what its sensors would read. */

import type { GpsFix, StepInput } from '../../proto/power/step/io.js';
import type { StepState } from '../../proto/power/step/state.js';
import type { LockState, Position, PowerSettings, TetherState } from '../../proto/wire/ping.js';
import type { LockBattery } from './battery/battery.js';
import { type City, type Place, positionOf } from './routes/city.js';

/** A change that the world can make to a lock: the subset of the inputs of `step` that are not its own. */
export type WorldChange = Extract<
  StepInput,
  {
    type:
      | 'boot'
      | 'motion'
      | 'lock-state'
      | 'coverage'
      | 'sky'
      | 'battery'
      | 'ebike'
      | 'tether'
      | 'settings'
      | 'modem-reset';
  }
>;

export interface WorldEvent {
  /** Ms since the epoch; never before the previous event. */
  readonly atMs: number;
  readonly change: WorldChange;
}

/**
 * Sorts events by time, stably. By insertion: the lists are short and nearly sorted, for which the built-in sort takes
 * several times as long.
 */
export function sortByTime(events: WorldEvent[]): void {
  for (let index = 1; index < events.length; index++) {
    const event = events[index] as WorldEvent;
    let place = index;
    for (; place > 0; place--) {
      const before = events[place - 1] as WorldEvent;
      if (before.atMs <= event.atMs) break;
      events[place] = before;
    }
    if (place !== index) events[place] = event;
  }
}

/**
 * The state of a lock when it is first switched on. Its high window is the model's default: only a set-power that it
 * has acknowledged changes it (protocol.md §2).
 */
export interface InitialState {
  readonly lockState: Exclude<LockState, 'unknown'>;
  readonly batteryPercent: number;
  readonly power: PowerSettings;
  readonly ebikeVolts: number | null;
  readonly tetherState: TetherState;
  readonly covered: boolean;
  readonly skyOpen: boolean;
}

export interface World {
  readonly initialState: InitialState;
  /** When the next event is; Infinity where there is none. */
  nextAtMs(): number;
  /** Takes the next event; undefined where the lock does not notice it, or there is none. */
  take(): WorldEvent | undefined;
  /** What GPS reads at this moment under an open sky, with its error. Successive calls never go back in time. */
  fixAt(atMs: number): GpsFix;
  /** Where the lock truly is at this moment. For observers; may be called at any time, in any order. */
  trueFixAt(atMs: number): GpsFix;
  /** The position of the lock by the cellular network; null where the network can't tell. */
  cellPositionAt(atMs: number): Position | null;
  /** Called once, when the lock is switched on. For worlds that depend on the state of their lock. */
  attach?(lock: AttachedLock): void;
  /** The battery that the lock drains, and which it notifies of its effects. Without one the events set the charge. */
  readonly battery?: LockBattery;
}

/** What a world sees of its lock. */
export interface AttachedLock {
  /** The lock's state, mutated in place. */
  readonly state: Pick<StepState, 'lockState'>;
  /** Makes the lock check its world again: the next event may now be earlier. */
  checkWorld(): void;
}

/** A world with a fixed list of events: for tests, and for locks made from a trace. */
export class ScriptedWorld implements World {
  readonly initialState: InitialState;
  readonly #events: readonly WorldEvent[];
  readonly #fix: GpsFix;
  #next = 0;

  /** `events` in order of time. The lock stays at `fix`. */
  constructor(initialState: InitialState, events: readonly WorldEvent[], fix: GpsFix) {
    this.initialState = initialState;
    this.#events = events;
    this.#fix = fix;
  }

  nextAtMs(): number {
    return this.#events[this.#next]?.atMs ?? Number.POSITIVE_INFINITY;
  }

  take(): WorldEvent | undefined {
    return this.#events[this.#next++];
  }

  fixAt(_atMs: number): GpsFix {
    return this.#fix;
  }

  trueFixAt(_atMs: number): GpsFix {
    return this.#fix;
  }

  cellPositionAt(_atMs: number): Position | null {
    return { ...this.#fix.position, uncertaintyMeters: CELL_UNCERTAINTY_METERS };
  }
}

/** A position from the network is accurate to about one cell. */
export const CELL_UNCERTAINTY_METERS = 900;

/** What the network reports of a lock at this place: the nearest mast, one every {@link CELL_UNCERTAINTY_METERS}. */
export function mastPositionOf(city: City, { eastMeters, northMeters }: Place): Position {
  const ofMast = (meters: number): number => Math.round(meters / CELL_UNCERTAINTY_METERS) * CELL_UNCERTAINTY_METERS;
  const mast = { eastMeters: ofMast(eastMeters), northMeters: ofMast(northMeters) };
  return positionOf(city, mast, CELL_UNCERTAINTY_METERS);
}

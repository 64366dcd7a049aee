/**
 * The interface of a world: the events that happen to a simulated lock, and what its sensors read. Also a simple world
 * that follows a list of events. A world never calls `step`, the lock's logic (proto/power/step/); the lock asks the
 * world for its next event and passes that to `step`.
 */

import type { GpsFix, StepInput } from '../../proto/power/step/io.js';
import type { StepState } from '../../proto/power/step/state.js';
import type { LockState, Position, PowerSettings, TetherState } from '../../proto/wire/ping.js';
import type { LockBattery } from './battery/battery.js';
import { type City, type Place, positionOf } from './routes/city.js';

/** A change that the world can make to a lock: the inputs of `step` that come neither from its link nor its timers. */
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

/** A change, and when it happens. */
export interface WorldEvent {
  /** Ms since the epoch; never before the previous event. */
  readonly atMs: number;
  readonly change: WorldChange;
}

/**
 * Sorts events by time, stably. Uses insertion sort: the lists are short and nearly sorted, and the built-in sort would
 * take several times as long.
 */
export function sortByTime(events: WorldEvent[]): void {
  for (let index = 1; index < events.length; index++) {
    const event = events[index] as WorldEvent;
    let target = index;
    for (; target > 0; target--) {
      const previous = events[target - 1] as WorldEvent;
      if (previous.atMs <= event.atMs) break;
      events[target] = previous;
    }
    if (target !== index) events[target] = event;
  }
}

/**
 * The state of a lock when it is first switched on. Its high window, the hours in which a lock in mode HIGH stays
 * connected, is the model's default: only a set-power command that the lock has acknowledged changes it (protocol.md
 * §2).
 */
export interface InitialState {
  readonly lockState: Exclude<LockState, 'unknown'>;
  readonly batteryPercent: number;
  readonly power: PowerSettings;
  /** Null without an e-bike. */
  readonly ebikeVolts: number | null;
  readonly tetherState: TetherState;
  /** Whether the cellular network covers the lock. */
  readonly covered: boolean;
  /** Whether GPS can be received. */
  readonly skyOpen: boolean;
}

/** See the top of this file. */
export interface World {
  readonly initialState: InitialState;
  /** When the next event is due, ms since the epoch; Infinity if there is none. */
  nextAtMs(): number;
  /** Removes and returns the next event; undefined if there is none or the lock does not notice it. */
  takeEvent(): WorldEvent | undefined;
  /** What GPS reads at this moment under an open sky, with the GPS error. Callers must not go back in time. */
  fixAt(atMs: number): GpsFix;
  /** The lock's true position at this moment, for observers. May be called for any moment, in any order. */
  trueFixAt(atMs: number): GpsFix;
  /** The position of the lock by the cellular network; null if the network does not know it. */
  cellPositionAt(atMs: number): Position | null;
  /** Called once, when the lock is switched on. For worlds that depend on the state of their lock. */
  attach?(lock: AttachedLock): void;
  /** The battery that the lock drains by its effects. Without a battery, events set the charge. */
  readonly battery?: LockBattery;
}

/** The part of a lock that its world may use. */
export interface AttachedLock {
  /** The lock's state, mutated in place. */
  readonly state: Pick<StepState, 'lockState'>;
  /** Makes the lock ask for the next event again, which may now be earlier. */
  checkWorld(): void;
}

/** A world with a fixed list of events and a lock that stays in place: for tests, and for locks made from a trace. */
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

  takeEvent(): WorldEvent | undefined {
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

/** The uncertainty of a position from the cellular network: about one cell. */
export const CELL_UNCERTAINTY_METERS = 900;

/**
 * The network's position of a lock at this place: the nearest mast. Masts are {@link CELL_UNCERTAINTY_METERS} apart.
 */
export function mastPositionOf(city: City, { eastMeters, northMeters }: Place): Position {
  const nearest = (meters: number): number => Math.round(meters / CELL_UNCERTAINTY_METERS) * CELL_UNCERTAINTY_METERS;
  const mast = { eastMeters: nearest(eastMeters), northMeters: nearest(northMeters) };
  return positionOf(city, mast, CELL_UNCERTAINTY_METERS);
}

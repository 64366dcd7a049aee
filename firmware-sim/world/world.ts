/** What surrounds a lock: what happens to it, and what it would read if it looked. */

import type { GpsFix, StepInput } from '../../proto/power/step/io.js';
import type { StepState } from '../../proto/power/step/state.js';
import type { LockState, Position, PowerSettings, TetherState } from '../../proto/wire/ping.js';
import type { LockBattery } from './battery/battery.js';

/** What the world can do to a lock. */
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
  /** Ms since the epoch; never before that of the event before. */
  readonly atMs: number;
  readonly change: WorldChange;
}

/**
 * Puts events in order of time, those of one moment as they stood. By insertion: what comes here is short and nearly in
 * order already, for which the language's own sort takes several times as long.
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
 * How a lock is found when it first gets power. Its high window is the model's: only a set-power that it has
 * acknowledged changes it (protocol.md §2).
 */
export interface WorldBeginning {
  readonly lockState: Exclude<LockState, 'unknown'>;
  readonly batteryPercent: number;
  readonly power: PowerSettings;
  readonly ebikeVolts: number | null;
  readonly tetherState: TetherState;
  readonly covered: boolean;
  readonly skyOpen: boolean;
}

export interface World {
  readonly beginning: WorldBeginning;
  /** When something happens next; Infinity where nothing more does. */
  nextAtMs(): number;
  /** Takes what happens next; undefined where the lock notices nothing of it, or nothing more happens. */
  take(): WorldEvent | undefined;
  /** What GPS reads at this moment, under an open sky: with its error. Moments asked for never go back. */
  fixAt(atMs: number): GpsFix;
  /** Where the lock truly is at this moment: for those who look on, as often as they like. */
  truthAt(atMs: number): GpsFix;
  /** Where the cellular network takes the lock to be; null where it can't tell. */
  cellPositionAt(atMs: number): Position | null;
  /** Told once, when the lock gets power, by worlds that want to know whom they surround. */
  surround?(lock: Surrounded): void;
  /** What the lock draws its power from, and tells of what it does; none where the battery is as the events say. */
  readonly battery?: LockBattery;
}

/** What a world gets to know of its lock. */
export interface Surrounded {
  /** What the lock knows; it changes in place. */
  readonly state: Pick<StepState, 'lockState'>;
  /** Has the lock look at its world again: something may come earlier than it was told. */
  look(): void;
}

/** A world that follows a list: for tests, and for locks made from a trace. */
export class ScriptedWorld implements World {
  readonly beginning: WorldBeginning;
  readonly #events: readonly WorldEvent[];
  readonly #fix: GpsFix;
  #next = 0;

  /** `events` in order of time. The lock stays where `fix` says. */
  constructor(beginning: WorldBeginning, events: readonly WorldEvent[], fix: GpsFix) {
    this.beginning = beginning;
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

  truthAt(_atMs: number): GpsFix {
    return this.#fix;
  }

  cellPositionAt(_atMs: number): Position | null {
    return { ...this.#fix.position, uncertaintyMeters: CELL_UNCERTAINTY_METERS };
  }
}

/** A position from the network is good to about a cell. */
export const CELL_UNCERTAINTY_METERS = 900;

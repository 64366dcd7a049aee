/**
 * The world of a lock in a what-if: a replay of a recorded trace, but with other settings of the lock and with a
 * battery that the simulated lock drains. A world is what happens to a lock: motion, coverage, charging.
 *
 * The battery events of the trace show what the lock used under the settings of the trace. So small falls are ignored,
 * and rises, which are charging, are applied. An owner whose lock drains its battery faster than in the trace also
 * charges more often than in the trace.
 */
import { Hours } from '../../proto/clock.js';
import type { GpsFix } from '../../proto/power/step/io.js';
import type { Position } from '../../proto/wire/ping.js';
import { LockBattery } from '../world/battery/battery.js';
import type { InitialState, World, WorldChange, WorldEvent } from '../world/world.js';

/** If the battery of the trace falls by more at once, a test bench set it: a lock does not drain it so fast. */
const MAX_DRAINED_PERCENT = 5;

/** The time between the battery's fall below the owner's level and the connection of the charger. */
const CHARGED_AFTER_MS = Hours(8);
/** How long the charger is connected: long enough to fill the battery. */
const CHARGED_FOR_MS = Hours(4);

/** How the world of a trace is changed. */
export interface BatteryWorldOptions {
  readonly initialState: InitialState;
  readonly startMs: number;
  /** Changes an event of the trace; null omits the event. */
  readonly filter: (change: WorldChange) => WorldChange | null;
  /** The percentage below which the owner charges a battery that is lower than in the trace; 0 for never. */
  readonly chargesBelowPercent: number;
}

/** See the top of this file. */
export class BatteryWorld implements World {
  readonly initialState: InitialState;
  readonly battery: LockBattery;
  readonly #world: World;
  readonly #filter: (change: WorldChange) => WorldChange | null;
  readonly #chargesBelowPercent: number;
  #chargedUntilMs = Number.NEGATIVE_INFINITY;
  /** The charge of the battery in the trace. */
  #tracedPercent: number;

  /** @param world the world of the trace; only this world may take its events */
  constructor(world: World, { initialState, startMs, filter, chargesBelowPercent }: BatteryWorldOptions) {
    this.#world = world;
    this.#filter = filter;
    this.#chargesBelowPercent = chargesBelowPercent;
    this.initialState = initialState;
    this.#tracedPercent = initialState.batteryPercent;
    this.battery = new LockBattery({ startMs, percent: initialState.batteryPercent });
  }

  nextAtMs(): number {
    return Math.min(this.#world.nextAtMs(), this.battery.nextAtMs);
  }

  takeEvent(): WorldEvent | undefined {
    const atMs = this.#world.nextAtMs();
    if (this.battery.nextAtMs < atMs) {
      const drainedMs = this.battery.nextAtMs;
      const percent = this.battery.take();
      this.#chargeIfLow(drainedMs, percent);
      return { atMs: drainedMs, change: { type: 'battery', percent } };
    }
    const event = this.#world.takeEvent();
    if (event === undefined) return undefined;
    const { change } = event;
    if (change.type === 'battery') return this.#applyTracedPercent(event.atMs, change.percent);
    if (change.type === 'lock-state') this.battery.motorRan(event.atMs);
    const filtered = this.#filter(change);
    return filtered === null ? undefined : { atMs: event.atMs, change: filtered };
  }

  /** Schedules the owner's charging if the battery is lower than the owner accepts and lower than in the trace. */
  #chargeIfLow(atMs: number, percent: number): void {
    if (percent >= Math.min(this.#chargesBelowPercent, this.#tracedPercent) || atMs < this.#chargedUntilMs) return;
    this.#chargedUntilMs = atMs + CHARGED_AFTER_MS + CHARGED_FOR_MS;
    this.battery.chargeBetween(atMs + CHARGED_AFTER_MS, this.#chargedUntilMs);
  }

  /**
   * Applies a battery event of the trace. A charged battery has at least the percentage of the trace. Returns undefined
   * if the lock's battery does not change, for example since the event is a fall by the lock's consumption.
   */
  #applyTracedPercent(atMs: number, percent: number): WorldEvent | undefined {
    const previousPercent = this.#tracedPercent;
    this.#tracedPercent = percent;
    const isCharged = percent > previousPercent;
    if (!isCharged && previousPercent - percent <= MAX_DRAINED_PERCENT) return undefined;
    const newPercent = isCharged ? Math.max(percent, this.battery.percent) : percent;
    if (newPercent === this.battery.percent) return undefined;
    this.battery.set(newPercent, atMs);
    return { atMs, change: { type: 'battery', percent: newPercent } };
  }

  fixAt(atMs: number): GpsFix {
    return this.#world.fixAt(atMs);
  }

  trueFixAt(atMs: number): GpsFix {
    return this.#world.trueFixAt(atMs);
  }

  cellPositionAt(atMs: number): Position | null {
    return this.#world.cellPositionAt(atMs);
  }
}

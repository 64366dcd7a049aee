/**
 * The world of a traced lock with a battery that the lock drains. The trace's own battery events show what the lock
 * used under the settings of the trace, so falls of single percents are ignored. Rises, which are charging, are
 * applied. An owner whose lock now drains its battery faster than in the trace charges more often than in the trace.
 */
import { Hours } from '../../proto/clock.js';
import type { GpsFix } from '../../proto/power/step/io.js';
import type { Position } from '../../proto/wire/ping.js';
import { LockBattery } from '../world/battery/battery.js';
import type { InitialState, World, WorldChange, WorldEvent } from '../world/world.js';

/** A fall of more percent at once was not the lock's doing: a test bench set the battery. */
const MAX_DRAINED_PERCENT = 5;

/**
 * The owner connects the charger so long after the battery fell below the owner's level, for long enough to fill it.
 */
const CHARGED_AFTER_MS = Hours(8);
const CHARGED_FOR_MS = Hours(4);

/** How the world of a trace is changed. */
export interface BatteryWorldOptions {
  readonly initialState: InitialState;
  readonly startMs: number;
  /** Changes an event of the trace; null leaves the event out. */
  readonly filter: (change: WorldChange) => WorldChange | null;
  /** The percentage below which the owner charges a battery that is lower than in the trace; 0 for never. */
  readonly chargesBelowPercent: number;
}

export class BatteryWorld implements World {
  readonly initialState: InitialState;
  readonly battery: LockBattery;
  readonly #world: World;
  readonly #filter: (change: WorldChange) => WorldChange | null;
  readonly #chargesBelowPercent: number;
  #chargedUntilMs = Number.NEGATIVE_INFINITY;
  /** The battery in the trace. */
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

  take(): WorldEvent | undefined {
    const atMs = this.#world.nextAtMs();
    if (this.battery.nextAtMs < atMs) {
      const drainedMs = this.battery.nextAtMs;
      const percent = this.battery.take();
      this.#chargeIfLow(drainedMs, percent);
      return { atMs: drainedMs, change: { type: 'battery', percent } };
    }
    const event = this.#world.take();
    if (event === undefined) return undefined;
    const { change } = event;
    if (change.type === 'battery') return this.#charge(event.atMs, change.percent);
    if (change.type === 'lock-state') this.battery.motorRan(event.atMs);
    const left = this.#filter(change);
    return left === null ? undefined : { atMs: event.atMs, change: left };
  }

  #chargeIfLow(atMs: number, percent: number): void {
    if (percent >= Math.min(this.#chargesBelowPercent, this.#tracedPercent) || atMs < this.#chargedUntilMs) return;
    this.#chargedUntilMs = atMs + CHARGED_AFTER_MS + CHARGED_FOR_MS;
    this.battery.chargeBetween(atMs + CHARGED_AFTER_MS, this.#chargedUntilMs);
  }

  /** A charged battery has at least the percentage of the trace. Undefined where the trace's battery was drained. */
  #charge(atMs: number, percent: number): WorldEvent | undefined {
    const before = this.#tracedPercent;
    this.#tracedPercent = percent;
    const isCharged = percent > before;
    if (!isCharged && before - percent <= MAX_DRAINED_PERCENT) return undefined;
    const now = isCharged ? Math.max(percent, this.battery.percent) : percent;
    if (now === this.battery.percent) return undefined;
    this.battery.set(now, atMs);
    return { atMs, change: { type: 'battery', percent: now } };
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

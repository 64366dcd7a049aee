/**
 * One simulated lock: the power model's `step`, between a world that happens to it and a link to the other side, on a
 * clock that may be real, fast or turned by hand.
 *
 * What time makes due is done at the time at which it was due, however late the machine is: with the same seed a lock
 * does the same at the same moments. What comes over the link happens when it comes.
 */
import type { Clock, Timer } from '../../proto/clock.js';
import { POWER_MODEL, type PowerModel } from '../../proto/power/model.js';
import type { StepEffect, StepInput } from '../../proto/power/step/io.js';
import {
  type Draft,
  flashDiffers,
  flashOf,
  type LockFlash,
  newLock,
  type StepState,
} from '../../proto/power/step/state.js';
import { needsCellPosition, needsFix, stepInPlace } from '../../proto/power/step/step.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Downlink, Uplink } from '../../proto/wire/ping.js';
import type { Link, LinkEvents, OpenLink } from '../link/link.js';
import type { LockBattery } from '../world/battery/battery.js';
import type { World } from '../world/world.js';
import type { Diary, DiaryEntry } from './diary.js';
import type { Flash } from './flash.js';

export interface LockOptions {
  readonly mac: Mac;
  readonly firmwareVersion: string;
  readonly clock: Clock;
  readonly world: World;
  readonly openLink: OpenLink;
  /** What it keeps without power; gone with the process where it is left out. */
  readonly flash?: Flash;
  /** A seed for the spread of retries, any uint32. */
  readonly chance: number;
  readonly diary?: Diary;
  /** Another model than the protocol's, for tests. */
  readonly model?: PowerModel;
  /** What it does at each step: the power model's `step`, or one with a bug in it (bugs.ts). */
  readonly act?: Act;
  /** How often it booted before. What stands in its flash, if it has one, counts instead. */
  readonly bootsBefore?: number;
  /** The minute of the UTC day of its Period Ping, 0…1439; by its MAC where it is left out. */
  readonly periodMinute?: number;
}

/** How a lock acts on one input. */
export type Act = typeof stepInPlace;

/** How often a lock may have something to do at one moment: far beyond what it has, and short of for ever. */
const MOST_WAKES_AT_ONCE = 1000;

/** A simulated lock. Make it, start it, stop it; it can't be started again, but another one can with its flash. */
export class Lock {
  readonly mac: Mac;
  readonly #options: LockOptions;
  readonly #model: PowerModel;
  readonly #act: Act;
  readonly #link: Link;
  readonly #battery: LockBattery | undefined;
  readonly #inputs: StepInput[] = [];
  /** What the step at hand does: one list for all steps, emptied by taking out, which leaves it its room. */
  readonly #effects: StepEffect[] = [];
  readonly #state: Draft;
  /** What was last written to the flash. */
  #saved: LockFlash;
  // A number from the beginning: a field that was once undefined gets a new number object with each time that it holds.
  #nowMs = 0;
  #wakeAtMs = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;
  #armedMs = Number.POSITIVE_INFINITY;
  #phase: 'new' | 'running' | 'stepping' | 'stopped' = 'new';

  /** @throws LockgateError `bad-flash` where the flash can't be read. */
  constructor(options: LockOptions) {
    const { mac, world, firmwareVersion, chance, periodMinute } = options;
    this.mac = mac;
    this.#options = options;
    this.#battery = world.battery;
    this.#model = options.model ?? POWER_MODEL;
    this.#act = options.act ?? stepInPlace;
    this.#link = options.openLink(mac, this.#linkEvents());
    this.#nowMs = options.clock.now();
    const flash = options.flash?.load(mac);
    const minute = periodMinute === undefined ? {} : { periodMinute };
    const lock = { mac, firmwareVersion, chance, ...minute, ...world.beginning };
    this.#state = newLock(this.#model, flash === undefined ? lock : { ...lock, flash });
    if (flash === undefined) this.#state.boot = options.bootsBefore ?? 0;
    this.#saved = flashOf(this.#state);
  }

  /** What the lock knows. For checkers; it changes in place with the next thing that happens. */
  get state(): StepState {
    return this.#state;
  }

  /** The battery that it drains; undefined where its world has none of its own. For checkers. */
  get battery(): LockBattery | undefined {
    return this.#battery;
  }

  /** Whether it was given power, and has it still. */
  get hasPower(): boolean {
    return this.#phase === 'running' || this.#phase === 'stepping';
  }

  /** Gives the lock power. */
  start(): void {
    if (this.#phase !== 'new') throw new Error('a simulated lock is started once');
    this.#phase = 'running';
    this.#nowMs = this.#options.clock.now();
    this.#give({ type: 'boot' });
    // Somebody may have moved the shackle while the lock had no power.
    this.#give({ type: 'lock-state', lockState: this.#options.world.beginning.lockState });
    this.#options.world.surround?.(this);
    this.#arm();
  }

  /** Does what is due, and waits for what its world has next. For worlds that are told something as it goes. */
  look(): void {
    if (this.#phase !== 'running') return;
    this.#catchUp();
    this.#arm();
  }

  /** Takes the power away. The flash has all that it must; the connection ends in good order, within a second. */
  async stop(): Promise<void> {
    if (this.#phase === 'stopped') return;
    this.#phase = 'stopped';
    this.#timer?.cancel();
    this.#note({ type: 'stopped' });
    await this.#link.close();
  }

  /** Does all that is due by now, each at its own time. */
  #catchUp(): void {
    const { world, clock } = this.#options;
    const untilMs = clock.now();
    let atOnce = 0;
    while (this.#phase === 'running') {
      const worldMs = world.nextAtMs();
      const dueMs = Math.min(worldMs, this.#wakeAtMs);
      if (dueMs > untilMs) break;
      atOnce = dueMs > this.#nowMs ? 0 : atOnce + 1;
      if (atOnce > MOST_WAKES_AT_ONCE) throw new Error(`the lock ${this.mac} wakes itself for ever`);
      this.#nowMs = Math.max(this.#nowMs, dueMs);
      // At one moment the lock's own time comes first, as `step` asks of its host.
      if (this.#wakeAtMs <= worldMs) this.#tick();
      else this.#takeFromWorld();
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  #tick(): void {
    const { world } = this.#options;
    const state = this.#state;
    const fix = needsFix(state) && state.skyOpen ? world.fixAt(this.#nowMs) : null;
    const cellPosition = needsCellPosition(state) ? world.cellPositionAt(this.#nowMs) : null;
    this.#give(fix === null && cellPosition === null ? BARE_TICK : { type: 'tick', fix, cellPosition });
  }

  #takeFromWorld(): void {
    const event = this.#options.world.take();
    if (event === undefined) return;
    const { diary, world } = this.#options;
    if (diary !== undefined) {
      this.#note({ type: 'world', change: event.change });
      if (event.change.type === 'motion') this.#note({ type: 'whereabouts', fix: world.truthAt(this.#nowMs) });
    }
    this.#give(event.change);
  }

  /** Takes an input in now. One that comes while another is being worked on waits for its turn. */
  #give(input: StepInput): void {
    if (this.#phase !== 'running') {
      this.#inputs.push(input);
      return;
    }
    this.#phase = 'stepping';
    this.#step(input);
    while (this.#inputs.length > 0) this.#step(this.#inputs.shift() as StepInput);
    if (this.#phase === 'stepping') this.#phase = 'running';
  }

  #step(input: StepInput): void {
    const effects = this.#effects;
    const state = this.#state;
    this.#wakeAtMs = this.#act(this.#model, state, input, this.#nowMs, effects);
    // The flash is written before anything is sent: a boot's number must never be used twice.
    const { flash } = this.#options;
    if (flash !== undefined && flashDiffers(this.#saved, state)) {
      this.#saved = flashOf(state);
      flash.save(this.mac, this.#saved);
    }
    if (input.type === 'boot') this.#battery?.boots(this.#nowMs);
    if (input.type === 'boot') this.#note({ type: 'booted', boot: state.boot });
    if (effects.length === 0) return;
    // What an effect brings about waits for its turn in `#inputs`: nothing is added here meanwhile.
    for (const effect of effects) this.#perform(effect);
    while (effects.length > 0) effects.pop();
  }

  #perform(effect: StepEffect): void {
    if (this.#phase === 'stopped') return;
    if (this.#options.diary !== undefined) this.#note({ type: 'did', effect });
    this.#battery?.did(effect, this.#nowMs);
    if (effect.type === 'connect') this.#link.connect();
    else if (effect.type === 'publish') this.#link.publish(effect.uplink);
    else if (effect.type === 'disconnect') this.#link.disconnect();
    else if (effect.type === 'drop') this.#link.drop();
  }

  #linkEvents(): LinkEvents {
    // Where nobody reads a diary, nothing is written: a fleet without one has millions of entries.
    const isRead = this.#options.diary !== undefined;
    return {
      connected: () => this.#fromLink(CONNECTED, isRead ? { type: 'connected' } : undefined),
      failed: (trouble) => this.#fromLink(CONNECT_FAILED, { type: 'refused', trouble }),
      ended: (trouble) =>
        this.#fromLink(DISCONNECTED, trouble === null ? { type: 'closed' } : { type: 'lost', trouble }),
      acknowledged: (uplink: Uplink) => {
        const { boot, sequence } = uplink;
        this.#fromLink({ type: 'acknowledged', boot, sequence }, isRead ? { type: 'acknowledged', uplink } : undefined);
      },
      command: (downlink: Downlink) => this.#fromLink({ type: 'command', downlink }, { type: 'received', downlink }),
      unreadable: (message) => this.#note({ type: 'unreadable', message }),
    };
  }

  /** What the link reports is worked on after what was due before it. */
  #fromLink(input: StepInput, entry: DiaryEntry | undefined): void {
    if (this.#phase === 'stopped') return;
    // Within a step the link has answered at once: the answer waits for its turn, at the same moment.
    if (this.#phase === 'running') this.#catchUp();
    if (entry !== undefined) this.#note(entry);
    if (input === CONNECT_FAILED || input === DISCONNECTED) this.#battery?.offline(this.#nowMs);
    this.#give(input);
    if (this.#phase === 'running') this.#arm();
  }

  #note(entry: DiaryEntry): void {
    this.#options.diary?.(this.mac, this.#nowMs, entry);
  }

  /**
   * Sets the alarm for what is due next. One that rings before stays: most of what is due moves back all the time, and
   * an alarm at which nothing is due costs less than setting it anew with each move.
   */
  #arm(): void {
    const dueMs = Math.min(this.#wakeAtMs, this.#options.world.nextAtMs());
    if (this.#timer !== undefined) {
      if (this.#armedMs <= dueMs && this.#phase === 'running') return;
      this.#timer.cancel();
      this.#timer = undefined;
    }
    this.#armedMs = dueMs;
    if (this.#phase !== 'running' || dueMs === Number.POSITIVE_INFINITY) return;
    const { clock } = this.#options;
    this.#timer = clock.after(dueMs - clock.now(), this.#ring);
  }

  readonly #ring = (): void => {
    this.#timer = undefined;
    this.#catchUp();
    this.#arm();
  };
}

const BARE_TICK: StepInput = Object.freeze({ type: 'tick', fix: null, cellPosition: null });
const CONNECTED: StepInput = Object.freeze({ type: 'connected' });
const CONNECT_FAILED: StepInput = Object.freeze({ type: 'connect-failed' });
const DISCONNECTED: StepInput = Object.freeze({ type: 'disconnected' });

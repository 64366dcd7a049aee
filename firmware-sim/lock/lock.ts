/**
 * One simulated lock. It passes the events of its *world* (what happens around it) and its *link* (its connection) to
 * the power model's `step` function, and carries out the resulting effects. The clock may be real, accelerated or
 * virtual.
 *
 * The lock processes each timer and each event of its world as at the time when it was due, even if the machine runs it
 * later. So a lock with the same seed does the same at the same times. The lock processes events of the link when they
 * arrive. It records what it does in a *diary*, a callback for tests and traces. Its *flash* is the memory that
 * survives a restart.
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
import {
  answerInPlace,
  type LinkAnswer,
  needsCellPosition,
  needsFix,
  noteInPlace,
  stepInPlace,
} from '../../proto/power/step/step.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Downlink, Uplink } from '../../proto/wire/ping.js';
import type { Link, LinkEvents, OpenLink } from '../link/link.js';
import type { LockBattery } from '../world/battery/battery.js';
import type { World } from '../world/world.js';
import type { Diary, DiaryEntry } from './diary.js';
import type { Flash } from './flash.js';

/** How a lock is made, and what it is connected to. */
export interface LockOptions {
  readonly mac: Mac;
  readonly firmwareVersion: string;
  readonly clock: Clock;
  readonly world: World;
  readonly openLink: OpenLink;
  /** The lock's persistent memory. By default its content is lost with the process. */
  readonly flash?: Flash | undefined;
  /** Seed for the random jitter of retries, any uint32. */
  readonly jitterSeed: number;
  /** Called with what happens to the lock and what the lock does. */
  readonly diary?: Diary | undefined;
  /** A model other than the protocol's, for tests. */
  readonly model?: PowerModel;
  /** What the lock does at each step: the power model's `step`, or a version with a bug (faults/bugs.ts). */
  readonly stepFunction?: StepFunction;
  /** How often the lock has booted before. Ignored if its flash has a boot counter. */
  readonly bootsBefore?: number | undefined;
  /** The minute of the UTC day of the lock's Period Ping (its daily ping), 0…1439. By default derived from the MAC. */
  readonly periodMinute?: number;
}

/** Processes one input of a lock. */
export type StepFunction = typeof stepInPlace;

/** Stops an endless loop; a correct model needs far fewer wake-ups at one moment. */
const MAX_WAKE_UPS_PER_MOMENT = 1000;

/**
 * A simulated lock. It can be started and stopped once. A new instance with the same flash continues with the next
 * boot.
 */
export class Lock {
  readonly mac: Mac;
  readonly #clock: Clock;
  readonly #world: World;
  readonly #flash: Flash | undefined;
  readonly #diary: Diary | undefined;
  readonly #model: PowerModel;
  readonly #stepFunction: StepFunction;
  /** Whether the step function is the power model's own, whose steps may be shortened. */
  readonly #isHealthy: boolean;
  readonly #link: Link;
  /** How often the lock has started or dropped a connection, so that it can tell events of an earlier one. */
  #linkChanges = 0;
  readonly #battery: LockBattery | undefined;
  /** Inputs that arrived while another input was being processed. */
  readonly #queuedInputs: StepInput[] = [];
  /** The effects of the current step. One list serves all steps; it is emptied by popping, which keeps its capacity. */
  readonly #effects: StepEffect[] = [];
  readonly #state: Draft;
  /** What was last written to the flash. */
  #savedFlash: LockFlash;
  /** The time of the input that is being processed. It may be before the clock's time. */
  // Initialised for speed: if a field was once undefined, V8 allocates a new number object at each assignment.
  #nowMs = 0;
  /** The time of the last step; −1 before the first. */
  #steppedAtMs = -1;
  /** When the lock must next be woken, as the last step returned. */
  #wakeAtMs = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;
  /** When the timer is due. */
  #timerDueMs = Number.POSITIVE_INFINITY;
  #phase: 'new' | 'running' | 'stepping' | 'stopped' = 'new';

  /** @throws LockgateError `bad-flash` if the flash can't be read */
  constructor(options: LockOptions) {
    const { mac, world, firmwareVersion, jitterSeed, periodMinute } = options;
    this.mac = mac;
    this.#clock = options.clock;
    this.#world = world;
    this.#flash = options.flash;
    this.#diary = options.diary;
    this.#battery = world.battery;
    this.#model = options.model ?? POWER_MODEL;
    this.#stepFunction = options.stepFunction ?? stepInPlace;
    this.#isHealthy = this.#stepFunction === stepInPlace;
    this.#link = options.openLink(mac, this.#linkEvents());
    this.#nowMs = options.clock.now();
    const flash = options.flash?.load(mac);
    const { lockState, batteryPercent, power, ebikeVolts, tetherState, covered, skyOpen } = world.initialState;
    this.#state = newLock(this.#model, {
      mac,
      firmwareVersion,
      jitterSeed,
      periodMinute,
      flash,
      lockState,
      batteryPercent,
      power,
      ebikeVolts,
      tetherState,
      covered,
      skyOpen,
    });
    if (flash === undefined) this.#state.boot = options.bootsBefore ?? 0;
    this.#savedFlash = flashOf(this.#state);
  }

  /** The lock's own state, for tests to check. Each step changes it in place. */
  get state(): StepState {
    return this.#state;
  }

  /** The battery that the lock drains, for tests to check; undefined in a world without batteries. */
  get battery(): LockBattery | undefined {
    return this.#battery;
  }

  /** Whether the lock has been started and not yet stopped. */
  get hasPower(): boolean {
    return this.#phase === 'running' || this.#phase === 'stepping';
  }

  /** Switches the lock on. */
  start(): void {
    if (this.#phase !== 'new') throw new Error('a simulated lock can be started only once');
    this.#phase = 'running';
    this.#nowMs = this.#clock.now();
    this.#process({ type: 'boot' });
    // The shackle may have moved while the lock was off.
    this.#process({ type: 'lock-state', lockState: this.#world.initialState.lockState });
    // A world that gets new events during the run calls `checkWorld` then.
    this.#world.attach?.(this);
    this.#setTimer();
  }

  /**
   * Processes what is due and sets the timer for the world's next event. A world calls this when an event is added
   * during a run.
   */
  checkWorld(): void {
    if (this.#phase !== 'running') return;
    this.#catchUp();
    this.#setTimer();
  }

  /** Switches the lock off and closes its connection properly, within a second. The flash is preserved. */
  async stop(): Promise<void> {
    if (this.#phase === 'stopped') return;
    this.#phase = 'stopped';
    this.#timer?.cancel();
    this.#log({ type: 'stopped' });
    await this.#link.close();
  }

  /** Processes all timers and events of the world that are due by now, each at its due time. */
  #catchUp(): void {
    const world = this.#world;
    const untilMs = this.#clock.now();
    let wakeUps = 0;
    while (this.#phase === 'running') {
      const worldMs = world.nextAtMs();
      const dueMs = Math.min(worldMs, this.#wakeAtMs);
      if (dueMs > untilMs) break;
      wakeUps = dueMs > this.#nowMs ? 0 : wakeUps + 1;
      if (wakeUps > MAX_WAKE_UPS_PER_MOMENT) throw new Error(`the lock ${this.mac} wakes up endlessly at one moment`);
      this.#nowMs = Math.max(this.#nowMs, dueMs);
      // At the same moment the lock's own timers come first, as `step` requires.
      if (this.#wakeAtMs <= worldMs) this.#tick();
      else this.#processWorldEvent();
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  /** Wakes the lock without another input. */
  #tick(): void {
    const world = this.#world;
    const state = this.#state;
    const fix = needsFix(state) && state.skyOpen ? world.fixAt(this.#nowMs) : null;
    const cellPosition = needsCellPosition(state) ? world.cellPositionAt(this.#nowMs) : null;
    this.#process(fix === null && cellPosition === null ? TICK_WITHOUT_POSITION : { type: 'tick', fix, cellPosition });
  }

  /** Processes the next event of the world. */
  #processWorldEvent(): void {
    const event = this.#world.takeEvent();
    if (event === undefined) return;
    if (this.#diary !== undefined) {
      this.#log({ type: 'world', change: event.change });
      if (event.change.type === 'motion') this.#logTruePosition();
    }
    this.#process(event.change);
  }

  /** Processes an input now, or queues the input while another one is being processed. */
  #process(input: StepInput): void {
    if (this.#phase !== 'running') {
      this.#queuedInputs.push(input);
      return;
    }
    this.#phase = 'stepping';
    this.#step(input);
    const queued = this.#queuedInputs;
    // Nearly always one input waits, the link's answer. Then `pop` is much cheaper than `shift`.
    while (queued.length > 0) this.#step((queued.length === 1 ? queued.pop() : queued.shift()) as StepInput);
    if (this.#phase === 'stepping') this.#phase = 'running';
  }

  /** Processes one input: computes the new state, saves the flash if it changed, and carries out the effects. */
  #step(input: StepInput): void {
    const effects = this.#effects;
    const state = this.#state;
    const nowMs = this.#nowMs;
    // Two shortcuts of the healthy step function: an input that the lock only notes causes no step, and an answer of
    // the link at the moment of the last step concerns only the connection.
    if (this.#isHealthy && nowMs < this.#wakeAtMs && noteInPlace(this.#model, state, input, nowMs)) return;
    if (this.#isHealthy && nowMs === this.#steppedAtMs && isLinkAnswer(input))
      this.#wakeAtMs = answerInPlace(this.#model, state, input, nowMs, effects);
    else this.#wakeAtMs = this.#stepFunction(this.#model, state, input, nowMs, effects);
    this.#steppedAtMs = nowMs;
    // The flash is written before anything is sent: a boot number must never be used twice.
    const flash = this.#flash;
    if (flash !== undefined && flashDiffers(this.#savedFlash, state)) {
      this.#savedFlash = flashOf(state);
      flash.save(this.mac, this.#savedFlash);
    }
    if (input.type === 'boot') this.#battery?.booted(this.#nowMs);
    if (input.type === 'boot') this.#logBoot();
    if (effects.length === 0) return;
    // Inputs that an effect causes go to `#queuedInputs`, so no effect is added during this loop.
    for (const effect of effects) this.#perform(effect);
    while (effects.length > 0) effects.pop();
  }

  /** Carries out an effect, and records it. */
  #perform(effect: StepEffect): void {
    if (this.#phase === 'stopped') return;
    if (this.#diary !== undefined) {
      if (effect.type === 'made' && effect.uplink.body.kind === 'gps') this.#logTruePosition();
      this.#log({ type: 'did', effect });
    }
    if (effect.type !== 'made') this.#battery?.apply(effect, this.#nowMs);
    if (effect.type === 'connect' || effect.type === 'drop') this.#linkChanges++;
    if (effect.type === 'connect') this.#link.connect();
    else if (effect.type === 'publish') this.#link.publish(effect.uplink);
    else if (effect.type === 'disconnect') this.#link.disconnect();
    else if (effect.type === 'drop') this.#link.drop();
  }

  /** Converts the events of the link to inputs of the lock. */
  #linkEvents(): LinkEvents {
    // Without a diary, no entries are made for frequent events: a fleet would make millions of them.
    const isLogged = this.#diary !== undefined;
    return {
      connected: () => this.#handleLinkEvent(CONNECTED, isLogged ? { type: 'connected' } : undefined),
      failed: (trouble) => this.#handleLinkEvent(CONNECT_FAILED, { type: 'refused', trouble }),
      disconnected: (trouble) =>
        this.#handleLinkEvent(DISCONNECTED, trouble === null ? { type: 'closed' } : { type: 'lost', trouble }),
      acknowledged: (uplink: Uplink) => {
        const { boot, sequence } = uplink;
        this.#handleLinkEvent(
          { type: 'acknowledged', boot, sequence },
          isLogged ? { type: 'acknowledged', uplink } : undefined,
        );
      },
      command: (downlink: Downlink) =>
        this.#handleLinkEvent({ type: 'command', downlink }, { type: 'received', downlink }),
      unreadable: (message) => this.#log({ type: 'unreadable', message }),
    };
  }

  /**
   * Processes an input from the link, after everything that was due before it. On a machine that is late, that may have
   * ended the connection of the event: then the event came too late, and is lost as on a connection that has broken.
   */
  #handleLinkEvent(input: StepInput, entry: DiaryEntry | undefined): void {
    if (this.#phase === 'stopped') return;
    // A link may answer during a step. The answer is then queued and processed at the same moment.
    if (this.#phase === 'running') {
      const linkChanges = this.#linkChanges;
      this.#catchUp();
      if (linkChanges !== this.#linkChanges) {
        this.#setTimer();
        return;
      }
    }
    if (entry !== undefined) this.#log(entry);
    if (input === CONNECT_FAILED || input === DISCONNECTED) this.#battery?.disconnected(this.#nowMs);
    this.#process(input);
    if (this.#phase === 'running') this.#setTimer();
  }

  #logBoot(): void {
    if (this.#diary === undefined) return;
    const { boot, covered, skyOpen, batteryPercent } = this.#state;
    this.#log({ type: 'booted', boot, covered, skyOpen, batteryPercent });
    this.#logTruePosition();
  }

  /** Records where the lock truly is, which a lock itself does not know. */
  #logTruePosition(): void {
    this.#log({ type: 'whereabouts', fix: this.#world.trueFixAt(this.#nowMs) });
  }

  #log(entry: DiaryEntry): void {
    this.#diary?.(this.mac, this.#nowMs, entry);
  }

  /**
   * Sets the timer for the next due time. A timer that is set for an earlier time is not replaced: due times are
   * postponed constantly, and a timer that fires with nothing to do costs less than a new timer at each change.
   */
  #setTimer(): void {
    const dueMs = Math.min(this.#wakeAtMs, this.#world.nextAtMs());
    if (this.#timer !== undefined) {
      if (this.#timerDueMs <= dueMs && this.#phase === 'running') return;
      this.#timer.cancel();
      this.#timer = undefined;
    }
    this.#timerDueMs = dueMs;
    if (this.#phase !== 'running' || dueMs === Number.POSITIVE_INFINITY) return;
    this.#timer = this.#clock.after(dueMs - this.#clock.now(), this.#onTimer);
  }

  readonly #onTimer = (): void => {
    this.#timer = undefined;
    this.#catchUp();
    this.#setTimer();
  };
}

function isLinkAnswer(input: StepInput): input is LinkAnswer {
  const { type } = input;
  return type === 'acknowledged' || type === 'connected' || type === 'disconnected' || type === 'connect-failed';
}

/** Only the passing of time, without any position. */
const TICK_WITHOUT_POSITION: StepInput = Object.freeze({ type: 'tick', fix: null, cellPosition: null });
const CONNECTED: StepInput = Object.freeze({ type: 'connected' });
const CONNECT_FAILED: StepInput = Object.freeze({ type: 'connect-failed' });
const DISCONNECTED: StepInput = Object.freeze({ type: 'disconnected' });

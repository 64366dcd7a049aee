/**
 * Which pings a lock must make during a theft or a ride (protocol.md §2): a cellular ping at the start and every 5 min,
 * and GPS pings while the lock moves and receives GPS (its *sky* is open). A *duty* (duty.ts) is an uplink that must be
 * made by some time. Does no I/O; what happens to overdue duties is decided in lock-duties.ts.
 */
import type { Milliseconds } from '../../clock.js';
import type { PowerModel } from '../../power/model.js';
import type { Uplink } from '../../wire/ping.js';
import { type Duty, FIX_SLACK, MIN_RIDE, MISSED_GPS_PINGS, SLACK, type WorldCause } from './duty.js';
import { Run, type RunPlan } from './run.js';

type TrackedTrigger = 'theft' | 'ride';

/** What holds from `atMs` on, and the `world` event that made it so. */
export interface TrackingInput {
  readonly atMs: number;
  /** Whether lock state and effective state allow the trigger. */
  readonly isPossible: boolean;
  readonly isMoving: boolean;
  /** Whether the trigger makes GPS pings now; a ride does so only with ride tracking on. */
  readonly hasGpsPings: boolean;
  readonly isSkyOpen: boolean;
  readonly cause: WorldCause;
}

/** See the top of this file. */
export class Tracking {
  readonly #model: PowerModel;
  readonly #trigger: TrackedTrigger;
  readonly #cellular: Run;
  readonly #gps: Run;
  /** Whether the lock moves in a state and lock state that allow the trigger. */
  #isOn = false;
  /** Whether the lock only paused, so that the theft or ride has continued since before the pause. */
  #isContinued = false;
  /** When the theft or ride starts: a theft after 6 s of motion. */
  #startsMs = 0;
  /** Since when lock state and effective state allow the trigger, ms since the epoch; null while they do not. */
  #possibleSinceMs: number | null = null;
  #isMoving = false;
  /** The end of the last motion in which the trigger was not known to be possible, ms since the epoch. */
  #unknownMotionEndsMs = Number.NEGATIVE_INFINITY;
  /** Until when the theft or ride continues although the lock stands still. */
  #lastsUntilMs = Number.NEGATIVE_INFINITY;
  /** Whether the GPS receiver may have given up its search. It then starts again with the next cellular ping. */
  #mayHaveGivenUp = false;

  constructor(model: PowerModel, trigger: TrackedTrigger, owe: (duty: Duty) => void) {
    this.#model = model;
    this.#trigger = trigger;
    this.#cellular = new Run(planOf(model, trigger, 'cellular'), owe);
    this.#gps = new Run(planOf(model, trigger, 'gps'), owe);
  }

  /** Time passed. */
  advance(nowMs: number): void {
    this.#cellular.advance(nowMs);
    this.#gps.advance(nowMs);
  }

  /** An uplink arrived. */
  see(uplink: Uplink): void {
    this.#cellular.see(uplink);
    this.#gps.see(uplink);
  }

  /** The lock booted and forgot the theft or ride. The next {@link update} starts it again if the lock still moves. */
  reset(atMs: number): void {
    this.#stop(atMs);
  }

  /** To be called after each change, with what holds from then on. */
  update(input: TrackingInput): void {
    const { atMs, isPossible, isMoving, hasGpsPings, isSkyOpen } = input;
    if (this.#isMoving && !isMoving && !this.#isOn) this.#unknownMotionEndsMs = atMs;
    this.#isMoving = isMoving;
    if (!isPossible) {
      this.#possibleSinceMs = null;
      this.#stop(atMs);
      return;
    }
    this.#possibleSinceMs ??= atMs;
    if (isMoving && !this.#isOn) this.#start(input);
    else if (!isMoving && this.#isOn) this.#halt(atMs);
    const isTracked = this.#isOn || atMs < this.#lastsUntilMs;
    if (isTracked && !isSkyOpen) this.#mayHaveGivenUp = true;
    if (!hasGpsPings || !isSkyOpen) this.#gps.end(atMs);
    else if (this.#isOn && !this.#gps.isOpen) this.#beginGps(input);
  }

  #start({ atMs, cause }: TrackingInput): void {
    const { theftAfterMotion, refreshEvery } = this.#model.timings;
    const isContinued = atMs <= this.#lastsUntilMs || this.#mayGoOn(atMs);
    if (!isContinued) this.#mayHaveGivenUp = false;
    this.#isOn = true;
    this.#isContinued = isContinued;
    this.#gps.resume(atMs);
    this.#startsMs = isContinued || this.#trigger === 'ride' ? atMs : atMs + theftAfterMotion;
    // The motion must last longer than this for a ping to be due, hence the additional millisecond.
    const maturesMs = atMs + (this.#trigger === 'theft' ? theftAfterMotion : MIN_RIDE) + 1;
    // In a theft or ride that continues, a cellular ping from before the pause may still be recent enough.
    const fromMs = isContinued ? atMs - refreshEvery - SLACK : atMs;
    this.#cellular.begin({ fromMs, byMs: maturesMs + SLACK, maturesMs, cause, isOwedInPause: false });
  }

  /**
   * Whether the theft or ride may have started in an earlier motion, although the lock state seemed to exclude it then.
   * A command may have moved the shackle, which late uplinks show only after that motion.
   */
  #mayGoOn(atMs: number): boolean {
    const endsMs = this.#unknownMotionEndsMs;
    return this.#possibleSinceMs !== null && endsMs > this.#possibleSinceMs && atMs <= endsMs + this.#goesOnFor;
  }

  /** How long the trigger goes on while the lock stands still. */
  get #goesOnFor(): Milliseconds {
    const { theftEndsAfterStill, rideEndsAfterStill } = this.#model.timings;
    return this.#trigger === 'theft' ? theftEndsAfterStill : rideEndsAfterStill;
  }

  /** The lock stopped moving. The theft or ride continues for 2 min, if it has started at all. */
  #halt(atMs: number): void {
    const hasStarted = atMs > this.#startsMs;
    this.#isOn = false;
    this.#lastsUntilMs = hasStarted ? atMs + this.#goesOnFor : Number.NEGATIVE_INFINITY;
    this.#cellular.end(atMs);
    this.#gps.pause(hasStarted ? this.#lastsUntilMs : Number.NEGATIVE_INFINITY);
  }

  #stop(atMs: number): void {
    this.#cellular.end(atMs);
    this.#gps.end(atMs);
    this.#isOn = false;
    this.#lastsUntilMs = Number.NEGATIVE_INFINITY;
  }

  #beginGps({ atMs, cause }: TrackingInput): void {
    const { coldFixTakes, refreshEvery, theftGpsEvery, rideGpsEvery } = this.#model.timings;
    const fromMs = Math.max(atMs, this.#startsMs);
    const searchTakes = coldFixTakes + FIX_SLACK + (this.#mayHaveGivenUp ? refreshEvery : 0);
    const every = this.#trigger === 'theft' ? theftGpsEvery : rideGpsEvery;
    const times = { fromMs, byMs: fromMs + searchTakes + every + SLACK, maturesMs: fromMs + searchTakes };
    // Standing still, a lock makes only the very first GPS ping of a theft or ride (power/step/triggers.ts).
    this.#gps.begin({ ...times, cause, isOwedInPause: !this.#isContinued });
  }
}

/** The run of cellular or of GPS pings. A GPS ping counts as missing only if several in a row are. */
function planOf({ timings, triggers }: PowerModel, trigger: TrackedTrigger, kind: 'cellular' | 'gps'): RunPlan {
  const triggerRow = triggers.find((each) => each.trigger === trigger);
  // The power model gives theft and ride both reasons, which the types do not say.
  const reason = (kind === 'gps' ? triggerRow?.gpsReason : triggerRow?.cellularReason) ?? '';
  const gpsEvery = trigger === 'theft' ? timings.theftGpsEvery : timings.rideGpsEvery;
  const every: Milliseconds = kind === 'gps' ? MISSED_GPS_PINGS * gpsEvery : timings.refreshEvery + SLACK;
  return { trigger, kind, reasons: [reason], every, isReportedEachTime: false };
}

/**
 * What a theft or a ride owes (protocol.md §2): a cellular ping at its start and every 5 min, and GPS pings while the
 * lock moves under an open sky. Knows nothing of other triggers, nor of what becomes of a duty.
 */
import type { Milliseconds } from '../../clock.js';
import type { PowerModel } from '../../power/model.js';
import type { Uplink } from '../../wire/ping.js';
import { type Duty, FIX_SLACK, MIN_RIDE, MISSED_GPS_PINGS, SLACK, type WorldCause } from './duty.js';
import { Run, type RunPlan } from './run.js';

type Tracked = 'theft' | 'ride';

/** What holds at a moment, and the event of the world that made it so. */
export interface TrackingInput {
  readonly atMs: number;
  /** Whether lock state and effective state allow the trigger. */
  readonly isPossible: boolean;
  readonly isMoving: boolean;
  /** Whether GPS pings are sent, apart from the sky. */
  readonly hasGps: boolean;
  readonly isSkyOpen: boolean;
  readonly cause: WorldCause;
}

export class Tracking {
  readonly #model: PowerModel;
  readonly #trigger: Tracked;
  readonly #cellular: Run;
  readonly #gps: Run;
  #isOn = false;
  /** Whether the lock stood still for a while before. */
  #isContinued = false;
  #startsMs = 0;
  /** The trigger goes on until then though the lock stands still. */
  #lastsUntilMs = Number.NEGATIVE_INFINITY;
  /** The receiver may have given up its search, and starts again with the next cellular ping. */
  #mayHaveGivenUp = false;

  constructor(model: PowerModel, trigger: Tracked, owe: (duty: Duty) => void) {
    this.#model = model;
    this.#trigger = trigger;
    this.#cellular = new Run(planOf(model, trigger, 'cellular'), owe);
    this.#gps = new Run(planOf(model, trigger, 'gps'), owe);
  }

  advance(nowMs: number): void {
    this.#cellular.advance(nowMs);
    this.#gps.advance(nowMs);
  }

  see(uplink: Uplink): void {
    this.#cellular.see(uplink);
    this.#gps.see(uplink);
  }

  /** The lock booted: it forgets the trigger, and begins it again if it still moves. */
  reset(atMs: number): void {
    this.#stop(atMs);
  }

  /** Something changed. Called after each change, with what holds from then on. */
  update(input: TrackingInput): void {
    const { atMs, isPossible, isMoving, hasGps, isSkyOpen } = input;
    if (!isPossible) {
      this.#stop(atMs);
      return;
    }
    if (isMoving && !this.#isOn) this.#start(input);
    else if (!isMoving && this.#isOn) this.#halt(atMs);
    const isTracked = this.#isOn || atMs < this.#lastsUntilMs;
    if (isTracked && !isSkyOpen) this.#mayHaveGivenUp = true;
    if (!hasGps || !isSkyOpen) this.#gps.end(atMs);
    else if (this.#isOn && !this.#gps.isOpen) this.#beginGps(input);
  }

  #start({ atMs, cause }: TrackingInput): void {
    const { theftAfterMotion, refreshEvery } = this.#model.timings;
    const isContinued = atMs <= this.#lastsUntilMs;
    if (!isContinued) this.#mayHaveGivenUp = false;
    this.#isOn = true;
    this.#isContinued = isContinued;
    this.#gps.resume(atMs);
    this.#startsMs = isContinued || this.#trigger === 'ride' ? atMs : atMs + theftAfterMotion;
    const maturesMs = atMs + (this.#trigger === 'theft' ? theftAfterMotion : MIN_RIDE) + 1;
    const fromMs = isContinued ? atMs - refreshEvery - SLACK : atMs;
    this.#cellular.begin({ fromMs, byMs: maturesMs + SLACK, maturesMs, cause, isOwedInPause: false });
  }

  #halt(atMs: number): void {
    const { theftEndsAfterStill, rideEndsAfterStill } = this.#model.timings;
    const isTheft = this.#trigger === 'theft';
    const hasBegun = atMs > this.#startsMs;
    this.#isOn = false;
    this.#lastsUntilMs = hasBegun
      ? atMs + (isTheft ? theftEndsAfterStill : rideEndsAfterStill)
      : Number.NEGATIVE_INFINITY;
    this.#cellular.end(atMs);
    this.#gps.pause(hasBegun ? this.#lastsUntilMs : Number.NEGATIVE_INFINITY);
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
    const search = coldFixTakes + FIX_SLACK + (this.#mayHaveGivenUp ? refreshEvery : 0);
    const every = this.#trigger === 'theft' ? theftGpsEvery : rideGpsEvery;
    const times = { fromMs, byMs: fromMs + search + every + SLACK, maturesMs: fromMs + search };
    this.#gps.begin({ ...times, cause, isOwedInPause: !this.#isContinued });
  }
}

function planOf({ timings, triggers }: PowerModel, trigger: Tracked, kind: 'cellular' | 'gps'): RunPlan {
  const row = triggers.find((each) => each.trigger === trigger);
  const reason = (kind === 'gps' ? row?.gpsReason : row?.cellularReason) ?? '';
  const gpsEvery = trigger === 'theft' ? timings.theftGpsEvery : timings.rideGpsEvery;
  const every: Milliseconds = kind === 'gps' ? MISSED_GPS_PINGS * gpsEvery : timings.refreshEvery + SLACK;
  return { trigger, kind, reasons: [reason], every, isReportedEachTime: false };
}

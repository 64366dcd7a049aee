/**
 * A run: pings that a lock must make again and again while something lasts, such as those of a theft, of a ride, and
 * the daily ping. Each next ping is a *duty* (duty.ts) with a time by which it must be made. When a duty is fulfilled
 * or missed, the next one starts. Does no I/O.
 */
import type { Milliseconds } from '../../clock.js';
import type { TriggerName } from '../../power/model.js';
import type { Uplink } from '../../wire/ping.js';
import { type Duty, fulfils, type WorldCause } from './duty.js';

/** Which pings a run consists of. */
export interface RunPlan {
  readonly trigger: TriggerName;
  readonly kind: 'cellular' | 'gps';
  readonly reasons: readonly string[];
  /** The time after a ping within which the next one must be made. */
  readonly every: Milliseconds;
  /** Whether each missed ping becomes a finding. Otherwise only the first of a run does. */
  readonly isReportedEachTime: boolean;
}

/** The first duty of a run. Times are ms since the epoch. */
export interface RunStart {
  /** Between these two times the first ping must be made. */
  readonly fromMs: number;
  readonly byMs: number;
  /** If the cause of the run ends before this, the first ping need not be made. */
  readonly maturesMs: number;
  readonly cause: WorldCause;
  /** Whether the first ping must be made even if the lock stops moving before `byMs`. */
  readonly isOwedInPause: boolean;
}

/** See the top of this file. */
export class Run {
  readonly #plan: RunPlan;
  readonly #owe: (duty: Duty) => void;
  /** The duty that is open; null while no ping is due. */
  #duty: Duty | null = null;
  #isOwedInPause = false;
  /** Whether the lock stands still, and when it last moved again. */
  #isPaused = false;
  #resumedMs = Number.NEGATIVE_INFINITY;
  /** When the newest ping of the run was made, by the lock's clock. */
  #lastMadeMs = Number.NEGATIVE_INFINITY;

  /** @param owe is called with each duty for which no uplink came in time; the uplink may still arrive */
  constructor(plan: RunPlan, owe: (duty: Duty) => void) {
    this.#plan = plan;
    this.#owe = owe;
  }

  get isOpen(): boolean {
    return this.#duty !== null;
  }

  /** Starts the run with its first duty. */
  begin({ fromMs, byMs, maturesMs, cause, isOwedInPause }: RunStart): void {
    const { trigger, kind, reasons } = this.#plan;
    const group = { isReported: false };
    this.#duty = { trigger, kind, reasons, lockState: null, fromMs, byMs, maturesMs, cause, group };
    this.#isOwedInPause = isOwedInPause;
    this.#isPaused = false;
    // A ping that has come already is the first one.
    if (this.#lastMadeMs >= fromMs) this.#continueFrom(this.#duty, this.#lastMadeMs);
  }

  /** Reports the duties that are overdue at `nowMs`. */
  advance(nowMs: number): void {
    for (let duty = this.#duty; duty !== null && nowMs > duty.byMs; duty = this.#duty) {
      this.#owe(duty);
      this.#continueFrom(duty, duty.byMs);
    }
  }

  /** An uplink arrived. If it fulfils the duty, the next one starts. */
  see(uplink: Uplink): void {
    const { body, timeMs } = uplink;
    if (body.kind !== this.#plan.kind || !this.#plan.reasons.includes(body.reason)) return;
    this.#lastMadeMs = Math.max(this.#lastMadeMs, timeMs);
    if (this.#duty !== null && fulfils(uplink, this.#duty)) this.#continueFrom(this.#duty, timeMs);
  }

  /** The cause of the run ended. A ping that was not due yet need not be made. */
  end(atMs: number): void {
    const duty = this.#duty;
    this.#duty = null;
    if (duty !== null && atMs >= duty.maturesMs) this.#owe(duty);
  }

  /** The lock stopped moving, at least until `untilMs`. Only a first ping that is due by then must still be made. */
  pause(untilMs: number): void {
    this.#isPaused = true;
    if (this.#duty !== null && !(this.#isOwedInPause && this.#duty.byMs <= untilMs)) this.#duty = null;
  }

  /** The lock moves again. The next duty counts from now at the earliest, also after a late ping from before. */
  resume(atMs: number): void {
    this.#isPaused = false;
    this.#resumedMs = atMs;
  }

  /** Starts the next duty at `fromMs`. */
  #continueFrom(duty: Duty, fromMs: number): void {
    if (this.#isPaused) {
      this.#duty = null;
      return;
    }
    const from = Math.max(fromMs, duty.fromMs, this.#resumedMs);
    const byMs = from + this.#plan.every;
    const group = this.#plan.isReportedEachTime ? { isReported: false } : duty.group;
    this.#duty = { ...duty, fromMs: from, byMs, maturesMs: byMs, group };
    this.#isOwedInPause = false;
  }
}

/**
 * Pings that a lock owes again and again while something lasts: those of a theft, of a ride, and the daily ping. Each
 * duty of a run begins where the one before was fulfilled or missed.
 */
import type { Milliseconds } from '../../clock.js';
import type { TriggerName } from '../../power/model.js';
import type { Uplink } from '../../wire/ping.js';
import { type Duty, fulfils, type WorldCause } from './duty.js';

export interface RunPlan {
  readonly trigger: TriggerName;
  readonly kind: 'cellular' | 'gps';
  readonly reasons: readonly string[];
  /** After each ping the next is due within this. */
  readonly every: Milliseconds;
  /** Whether each missed ping becomes a finding of its own. */
  readonly isReportedEachTime: boolean;
}

/** The first duty of a run. Times are ms since the epoch. */
export interface RunStart {
  readonly fromMs: number;
  readonly byMs: number;
  readonly maturesMs: number;
  readonly cause: WorldCause;
  /** Whether the first ping is owed even if the lock stands still meanwhile. */
  readonly isOwedInPause: boolean;
}

export class Run {
  readonly #plan: RunPlan;
  readonly #owe: (duty: Duty) => void;
  #duty: Duty | null = null;
  #isOwedInPause = false;
  #isPaused = false;
  #resumedMs = Number.NEGATIVE_INFINITY;
  #lastMadeMs = Number.NEGATIVE_INFINITY;

  /** @param owe takes each duty that was not fulfilled in time; its uplink may still arrive */
  constructor(plan: RunPlan, owe: (duty: Duty) => void) {
    this.#plan = plan;
    this.#owe = owe;
  }

  get isOpen(): boolean {
    return this.#duty !== null;
  }

  begin({ fromMs, byMs, maturesMs, cause, isOwedInPause }: RunStart): void {
    const { trigger, kind, reasons } = this.#plan;
    const group = { isReported: false };
    this.#duty = { trigger, kind, reasons, lockState: null, fromMs, byMs, maturesMs, cause, group };
    this.#isOwedInPause = isOwedInPause;
    this.#isPaused = false;
    if (this.#lastMadeMs >= fromMs) this.#continueFrom(this.#duty, this.#lastMadeMs);
  }

  /** Time passed. */
  advance(nowMs: number): void {
    for (let duty = this.#duty; duty !== null && nowMs > duty.byMs; duty = this.#duty) {
      this.#owe(duty);
      this.#continueFrom(duty, duty.byMs);
    }
  }

  /** An uplink arrived. */
  see(uplink: Uplink): void {
    const { body, timeMs } = uplink;
    if (body.kind !== this.#plan.kind || !this.#plan.reasons.includes(body.reason)) return;
    this.#lastMadeMs = Math.max(this.#lastMadeMs, timeMs);
    if (this.#duty !== null && fulfils(uplink, this.#duty)) this.#continueFrom(this.#duty, timeMs);
  }

  /** What the run rests on ended: what was not due yet is no longer owed. */
  end(atMs: number): void {
    const duty = this.#duty;
    this.#duty = null;
    if (duty !== null && atMs >= duty.maturesMs) this.#owe(duty);
  }

  /** The lock stands still for a while: only a first ping that is due by `untilMs` is still owed. */
  pause(untilMs: number): void {
    this.#isPaused = true;
    if (this.#duty !== null && !(this.#isOwedInPause && this.#duty.byMs <= untilMs)) this.#duty = null;
  }

  /** The lock moves again. A ping from before, which may still arrive, says nothing of the time since. */
  resume(atMs: number): void {
    this.#isPaused = false;
    this.#resumedMs = atMs;
  }

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

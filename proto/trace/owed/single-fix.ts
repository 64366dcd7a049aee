/**
 * The one GPS ping that follows a change of the lock state, or the daily ping (protocol.md §2): owed if the sky is open
 * long enough before the search ends.
 */
import type { PowerModel } from '../../power/model.js';
import type { Uplink } from '../../wire/ping.js';
import { type Duty, FIX_SLACK, fulfils, SLACK, type WorldCause } from './duty.js';

export class SingleFix {
  readonly #model: PowerModel;
  readonly #trigger: 'state-change' | 'period';
  readonly #reasons: readonly string[];
  readonly #owe: (duty: Duty) => void;
  #sinceMs: number | null = null;
  #cause: WorldCause | null = null;
  #duty: Duty | null = null;

  /** @param reasons its own, and those of the triggers that outrank it */
  constructor(
    model: PowerModel,
    trigger: 'state-change' | 'period',
    reasons: readonly string[],
    owe: (duty: Duty) => void,
  ) {
    this.#model = model;
    this.#trigger = trigger;
    this.#reasons = reasons;
    this.#owe = owe;
  }

  /** The cellular ping is due: the search begins. */
  begin(atMs: number, isSkyOpen: boolean, cause: WorldCause): void {
    this.cancel(atMs);
    this.#sinceMs = atMs;
    this.#cause = cause;
    this.sky(atMs, isSkyOpen);
  }

  /** The sky opened or closed. */
  sky(atMs: number, isOpen: boolean): void {
    this.advance(atMs);
    this.#duty = null;
    const { coldFixTakes, fixSearchEnds } = this.#model.timings;
    if (!isOpen || this.#sinceMs === null || this.#cause === null) return;
    const maturesMs = atMs + coldFixTakes + FIX_SLACK;
    const endsMs = this.#sinceMs + fixSearchEnds;
    if (maturesMs > endsMs) return;
    this.#duty = {
      ...{ trigger: this.#trigger, kind: 'gps', reasons: this.#reasons, lockState: null, cause: this.#cause },
      ...{ fromMs: this.#sinceMs, byMs: endsMs + SLACK, maturesMs, group: { isReported: false } },
    };
  }

  advance(nowMs: number): void {
    if (this.#duty === null || nowMs < this.#duty.maturesMs) return;
    this.#owe(this.#duty);
    this.#duty = null;
    this.#sinceMs = null;
  }

  see(uplink: Uplink): void {
    if (this.#duty !== null && fulfils(uplink, this.#duty)) this.#sinceMs = this.#duty = null;
  }

  /** The lock no longer owes it: it booted, entered another state, or changed its lock state again. */
  cancel(atMs: number): void {
    this.advance(atMs);
    this.#sinceMs = this.#duty = null;
  }
}

/**
 * The single GPS ping that must follow the cellular ping of a lock state change or of the day (protocol.md §2). It is
 * due only if GPS can be received (the *sky* is open) for long enough before the lock's search for a fix ends. A *duty*
 * (duty.ts) is an uplink that must be made by some time. Does no I/O.
 */
import type { PowerModel } from '../../power/model.js';
import type { Uplink } from '../../wire/ping.js';
import { type Duty, FIX_SLACK, fulfils, isNoChange, type ShackleChange, SLACK, type WorldCause } from './duty.js';

/** See the top of this file. */
export class SingleFix {
  readonly #model: PowerModel;
  readonly #trigger: 'state-change' | 'period';
  readonly #reasons: readonly string[];
  readonly #owe: (duty: Duty) => void;
  /** When the search started; null while no GPS ping is due. */
  #sinceMs: number | null = null;
  #cause: WorldCause | null = null;
  #change: ShackleChange | undefined;
  #duty: Duty | null = null;

  /**
   * @param reasons the reasons that the GPS ping may have: the trigger's, and those of the triggers that outrank it
   * @param owe is called with the duty when it is certain that the ping must be made; the uplink may still arrive
   */
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

  /** The cellular ping is due, so the search starts. @param change the change of the lock state that it reports */
  begin(atMs: number, isSkyOpen: boolean, cause: WorldCause, change?: ShackleChange): void {
    this.cancel(atMs);
    this.#sinceMs = atMs;
    this.#cause = cause;
    this.#change = change;
    this.sky(atMs, isSkyOpen);
  }

  /** GPS reception started or ended. */
  sky(atMs: number, isOpen: boolean): void {
    this.advance(atMs);
    this.#duty = null;
    const { coldFixTakes, fixSearchEnds } = this.#model.timings;
    if (!isOpen || this.#sinceMs === null || this.#cause === null) return;
    const maturesMs = atMs + coldFixTakes + FIX_SLACK;
    const endsMs = this.#sinceMs + fixSearchEnds;
    if (maturesMs > endsMs) return;
    const ping = { trigger: this.#trigger, kind: 'gps', reasons: this.#reasons, lockState: null } as const;
    const times = { fromMs: this.#sinceMs, byMs: endsMs + SLACK, maturesMs };
    const change = this.#change && { change: this.#change };
    this.#duty = { ...ping, ...times, ...change, cause: this.#cause, group: { isReported: false } };
  }

  /** Time passed: reports the duty once GPS was received for long enough. */
  advance(nowMs: number): void {
    if (this.#duty === null || nowMs < this.#duty.maturesMs) return;
    this.#owe(this.#duty);
    this.#duty = null;
    this.#sinceMs = null;
  }

  /** An uplink arrived, which may fulfil the duty. */
  see(uplink: Uplink): void {
    if (this.#duty === null) return;
    if (fulfils(uplink, this.#duty) || isNoChange(uplink, this.#duty)) this.#sinceMs = this.#duty = null;
  }

  /** The ping is no longer due: the lock booted, entered another state, or changed its lock state again. */
  cancel(atMs: number): void {
    this.advance(atMs);
    this.#sinceMs = this.#duty = null;
  }
}

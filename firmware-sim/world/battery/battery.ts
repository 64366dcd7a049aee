/**
 * The lock's battery: it is drained by what the lock does, at the rates of power-draw.ts, and charged by its person.
 *
 * Nothing is reckoned but when something changes: then what has flowed since is taken off, and the time at which the
 * next whole percent is reached is foretold. The gauge tells whole percents and does not flicker: on the way down it
 * tells 9 when 9 % are left, on the way up 10 when 10 % are there again.
 */
import { Days, Hours, type Milliseconds } from '../../../proto/clock.js';
import type { StepEffect } from '../../../proto/power/step/io.js';
import { POWER_DRAW } from './power-draw.js';

/** What takes charge out of it. */
export type PowerCause = 'idle' | 'selfDischarge' | 'modem' | 'connect' | 'send' | 'gps' | 'motor' | 'tone' | 'siren';

export interface LockBatteryOptions {
  readonly startMs: number;
  /** How full it is at the beginning. */
  readonly percent: number;
  /** How many times faster than in life it is drained and charged: 1 is life, more is for those who watch. */
  readonly times?: number;
}

const PERCENT_MAH = POWER_DRAW.capacity.value / 100;
const MONTH: Milliseconds = Days(365.25 / 12);
const SELF_DISCHARGE_MA = (PERCENT_MAH * POWER_DRAW.selfDischarge.value) / (MONTH / Hours(1));
const ALWAYS_MA = POWER_DRAW.idle.value + SELF_DISCHARGE_MA;
/** At which its own protection keeps the cell from harm. The lock lives on: nobody in this world lets it die. */
const LEAST_PERCENT = 1;

export class LockBattery {
  readonly #times: number;
  #chargeMah: number;
  #percent: number;
  /** Until when all is reckoned. */
  #atMs: number;
  /** When it last did something: nothing is foretold for a time before that. */
  #didMs = Number.NEGATIVE_INFINITY;
  #nextAtMs = Number.POSITIVE_INFINITY;
  #nextPercent = 0;
  #isModemOn = false;
  #isGpsOn = false;
  #pluggedFromMs = Number.POSITIVE_INFINITY;
  #pluggedUntilMs = Number.POSITIVE_INFINITY;
  readonly #usedMah: Record<PowerCause, number> = {
    ...{ idle: 0, selfDischarge: 0, modem: 0, connect: 0, send: 0, gps: 0, motor: 0, tone: 0, siren: 0 },
  };

  constructor({ startMs, percent, times = 1 }: LockBatteryOptions) {
    this.#times = times;
    this.#atMs = startMs;
    this.#percent = percent;
    this.#chargeMah = percent * PERCENT_MAH;
    this.#foretell();
  }

  /** What the gauge tells: a whole percentage. */
  get percent(): number {
    return this.#percent;
  }

  /** What is in it as of the last time that something changed, mAh. */
  get chargeMah(): number {
    return this.#chargeMah;
  }

  /** When the gauge next tells another percentage, if nothing changes; Infinity where it never does. */
  get nextAtMs(): number {
    return this.#nextAtMs;
  }

  /** What was used since the beginning, by what, as of `atMs`: in mAh of life, however many times faster it goes. */
  used(atMs: number): Readonly<Record<PowerCause, number>> {
    this.#settle(atMs);
    return { ...this.#usedMah };
  }

  /** Goes on to {@link nextAtMs}, and returns the percentage that the gauge tells then. */
  take(): number {
    this.#settle(this.#nextAtMs);
    this.#percent = this.#nextPercent;
    this.#foretell();
    return this.#percent;
  }

  /** The lock does something. Most of what it does takes nothing. */
  did(effect: StepEffect, atMs: number): void {
    switch (effect.type) {
      case 'connect':
        this.#takes('connect', POWER_DRAW.connect.value, atMs);
        this.#switch('modem', true, atMs);
        break;
      case 'drop':
        this.#switch('modem', false, atMs);
        break;
      case 'gps-on':
      case 'gps-off':
        this.#switch('gps', effect.type === 'gps-on', atMs);
        break;
      case 'publish':
        this.#takes('send', POWER_DRAW.send.value, atMs);
        break;
      case 'unlock':
      case 'lock':
        this.turns(atMs);
        break;
      case 'tone':
      case 'siren':
        this.#takes(effect.type, (POWER_DRAW[effect.type].value * effect.durationMs) / Hours(1), atMs);
        break;
    }
  }

  /** The connection has ended, or could not be made. */
  offline(atMs: number): void {
    this.#switch('modem', false, atMs);
  }

  /** The lock boots: nothing is on that was. */
  boots(atMs: number): void {
    this.#switch('modem', false, atMs);
    this.#switch('gps', false, atMs);
  }

  /** The motor opens or closes the shackle. */
  turns(atMs: number): void {
    this.#takes('motor', POWER_DRAW.motor.value, atMs);
  }

  /** It is put on a charger for a while that has not begun. A time before that is forgotten. */
  plug(fromMs: number, untilMs: number): void {
    this.#pluggedFromMs = fromMs;
    this.#pluggedUntilMs = untilMs;
    this.#foretell();
  }

  /** Another battery is put in, as full as this: what a scene asks for. */
  set(percent: number, atMs: number): void {
    this.#settle(atMs);
    this.#percent = percent;
    this.#chargeMah = percent * PERCENT_MAH;
    this.#foretell();
  }

  #switch(which: 'modem' | 'gps', isOn: boolean, atMs: number): void {
    if (isOn === (which === 'modem' ? this.#isModemOn : this.#isGpsOn)) return;
    this.#settle(atMs);
    if (which === 'modem') this.#isModemOn = isOn;
    else this.#isGpsOn = isOn;
    this.#foretell();
  }

  /** What flows all the time is not reckoned for it: the order in which charge is taken makes no difference. */
  #takes(cause: PowerCause, mah: number, atMs: number): void {
    this.#usedMah[cause] += mah;
    this.#flow(-mah * this.#times);
    this.#didMs = atMs;
    this.#foretell();
  }

  /** Takes off what has flowed until `atMs`. */
  #settle(atMs: number): void {
    if (atMs <= this.#atMs) return;
    const hours = (atMs - this.#atMs) / Hours(1);
    this.#usedMah.idle += POWER_DRAW.idle.value * hours;
    this.#usedMah.selfDischarge += SELF_DISCHARGE_MA * hours;
    if (this.#isModemOn) this.#usedMah.modem += POWER_DRAW.modem.value * hours;
    if (this.#isGpsOn) this.#usedMah.gps += POWER_DRAW.gps.value * hours;
    while (this.#atMs < atMs) {
      const untilMs = Math.min(atMs, this.#steadyUntilMs(this.#atMs));
      this.#flow((this.#flowMah(this.#atMs) * (untilMs - this.#atMs)) / Hours(1));
      this.#atMs = untilMs;
    }
  }

  #flow(mah: number): void {
    this.#chargeMah = kept(this.#chargeMah, mah);
  }

  /** What flows in each hour from a moment on; negative where it flows out. */
  #flowMah(atMs: number): number {
    const modem = this.#isModemOn ? POWER_DRAW.modem.value : 0;
    const gps = this.#isGpsOn ? POWER_DRAW.gps.value : 0;
    const isPlugged = atMs >= this.#pluggedFromMs && atMs < this.#pluggedUntilMs;
    return ((isPlugged ? POWER_DRAW.charger.value : 0) - ALWAYS_MA - modem - gps) * this.#times;
  }

  /** Until when, after `atMs`, the charger is neither plugged in nor out. */
  #steadyUntilMs(atMs: number): number {
    if (atMs < this.#pluggedFromMs) return this.#pluggedFromMs;
    return atMs < this.#pluggedUntilMs ? this.#pluggedUntilMs : Number.POSITIVE_INFINITY;
  }

  #foretell(): void {
    let atMs = this.#atMs;
    let charge = this.#chargeMah;
    for (;;) {
      const flow = this.#flowMah(atMs);
      const untilMs = this.#steadyUntilMs(atMs);
      const next = this.#percent + (flow > 0 ? 1 : -1);
      const leftMs = Math.max(0, ((next * PERCENT_MAH - charge) / flow) * Hours(1));
      const isTold = next >= LEAST_PERCENT && next <= 100;
      if (isTold && atMs + leftMs <= untilMs) {
        this.#nextAtMs = Math.max(Math.ceil(atMs + leftMs), this.#didMs);
        this.#nextPercent = next;
        return;
      }
      if (untilMs === Number.POSITIVE_INFINITY) break;
      charge = kept(charge, (flow * (untilMs - atMs)) / Hours(1));
      atMs = untilMs;
    }
    this.#nextAtMs = Number.POSITIVE_INFINITY;
  }
}

/** What is in the cell when so much has flowed in or, negative, out: it is never over full, nor drained to harm. */
function kept(chargeMah: number, flowedMah: number): number {
  const after = Math.min(chargeMah + flowedMah, POWER_DRAW.capacity.value);
  return Math.max(after, Math.min(chargeMah, LEAST_PERCENT * PERCENT_MAH));
}

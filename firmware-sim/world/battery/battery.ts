/**
 * The battery of a simulated lock. The lock's activities drain it, at the rates of power-draw.ts; its owner charges it.
 *
 * The charge is computed only when something changes: then the continuous flow since the last change is applied, and
 * the time of the next whole percent is predicted. The gauge shows whole percents and does not flicker: while
 * discharging it changes to 9 when 9 % are left, while charging it changes to 10 when 10 % are reached.
 */
import { Days, Hours, type Milliseconds } from '../../../proto/clock.js';
import type { StepEffect } from '../../../proto/power/step/io.js';
import { POWER_DRAW } from './power-draw.js';

/** The activities that consume charge. */
export type PowerCause = 'idle' | 'selfDischarge' | 'modem' | 'connect' | 'send' | 'gps' | 'motor' | 'tone' | 'siren';

/** The battery at the start. */
export interface LockBatteryOptions {
  readonly startMs: number;
  /** The charge at the start, in percent. */
  readonly percent: number;
  /** How many times faster than in reality the battery is drained and charged, for demos; 1 by default. */
  readonly speedup?: number;
}

const PERCENT_MAH = POWER_DRAW.capacity.value / 100;
const MONTH_MS: Milliseconds = Days(365.25 / 12);
const SELF_DISCHARGE_MA = (PERCENT_MAH * POWER_DRAW.selfDischarge.value) / (MONTH_MS / Hours(1));
const IDLE_AND_SELF_DISCHARGE_MA = POWER_DRAW.idle.value + SELF_DISCHARGE_MA;
/**
 * Below this charge the cell's protection would switch off. The simulated lock goes on working at this charge.
 */
const MIN_PERCENT = 1;

/** See the top of this file. */
export class LockBattery {
  readonly #speedup: number;
  #chargeMah: number;
  #percent: number;
  /** The charge is computed up to this time. */
  #atMs: number;
  /** The time of the lock's last effect. The next percent is not predicted for an earlier time. */
  #lastEffectMs = Number.NEGATIVE_INFINITY;
  /** When the gauge next changes, and what it then shows; predicted only when asked, as effects come in groups. */
  #nextAtMs = Number.POSITIVE_INFINITY;
  #nextPercent = 0;
  #isPredicted = false;
  #isModemOn = false;
  #isGpsOn = false;
  /** The period in which a charger is connected. */
  #pluggedFromMs = Number.POSITIVE_INFINITY;
  #pluggedUntilMs = Number.POSITIVE_INFINITY;
  readonly #usedMah: Record<PowerCause, number> = {
    idle: 0,
    selfDischarge: 0,
    modem: 0,
    connect: 0,
    send: 0,
    gps: 0,
    motor: 0,
    tone: 0,
    siren: 0,
  };

  constructor({ startMs, percent, speedup = 1 }: LockBatteryOptions) {
    this.#speedup = speedup;
    this.#atMs = startMs;
    this.#percent = percent;
    this.#chargeMah = percent * PERCENT_MAH;
    this.#isPredicted = false;
  }

  /** The whole percentage that the gauge shows. */
  get percent(): number {
    return this.#percent;
  }

  /** The charge at the last change, mAh. */
  get chargeMah(): number {
    return this.#chargeMah;
  }

  /** When the gauge next changes if nothing else happens, ms since the epoch; Infinity for never. */
  get nextAtMs(): number {
    if (!this.#isPredicted) this.#predictNext();
    return this.#nextAtMs;
  }

  /** Consumption by cause from the start to `atMs`, in mAh of real time, whatever the speed-up. */
  usedMah(atMs: number): Readonly<Record<PowerCause, number>> {
    // The next change of the gauge is predicted before the charge is computed up to `atMs`: predicted from there, it
    // could be rounded to another millisecond, and asking for the consumption would change the run.
    if (!this.#isPredicted) this.#predictNext();
    this.#advanceTo(atMs);
    return { ...this.#usedMah };
  }

  /** Advances to {@link nextAtMs}, and returns the percentage that the gauge then shows. */
  take(): number {
    this.#advanceTo(this.nextAtMs);
    this.#percent = this.#nextPercent;
    this.#isPredicted = false;
    return this.#percent;
  }

  /** Applies an effect of the lock. Most effects consume nothing. */
  apply(effect: StepEffect, atMs: number): void {
    switch (effect.type) {
      case 'connect':
        this.#usedMah.connect += POWER_DRAW.connect.value;
        this.#draw(POWER_DRAW.connect.value, atMs);
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
        this.#usedMah.send += POWER_DRAW.send.value;
        this.#draw(POWER_DRAW.send.value, atMs);
        break;
      case 'unlock':
      case 'lock':
        this.motorRan(atMs);
        break;
      case 'tone':
      case 'siren': {
        const mah = (POWER_DRAW[effect.type].value * effect.durationMs) / Hours(1);
        this.#usedMah[effect.type] += mah;
        this.#draw(mah, atMs);
        break;
      }
    }
  }

  /** The connection was closed, or an attempt to connect failed. */
  disconnected(atMs: number): void {
    this.#switch('modem', false, atMs);
  }

  /** The lock has booted: modem and GPS are off. */
  booted(atMs: number): void {
    this.#switch('modem', false, atMs);
    this.#switch('gps', false, atMs);
  }

  /** The motor has opened or closed the shackle. */
  motorRan(atMs: number): void {
    this.#usedMah.motor += POWER_DRAW.motor.value;
    this.#draw(POWER_DRAW.motor.value, atMs);
  }

  /** Connects a charger for a period in the future. An earlier period is replaced. */
  chargeBetween(fromMs: number, untilMs: number): void {
    this.#pluggedFromMs = fromMs;
    this.#pluggedUntilMs = untilMs;
    this.#isPredicted = false;
  }

  /** Sets the charge to the percentage of a device event. */
  set(percent: number, atMs: number): void {
    this.#advanceTo(atMs);
    this.#percent = percent;
    this.#chargeMah = percent * PERCENT_MAH;
    this.#isPredicted = false;
  }

  #switch(which: 'modem' | 'gps', isOn: boolean, atMs: number): void {
    if (isOn === (which === 'modem' ? this.#isModemOn : this.#isGpsOn)) return;
    this.#advanceTo(atMs);
    if (which === 'modem') this.#isModemOn = isOn;
    else this.#isGpsOn = isOn;
    this.#isPredicted = false;
  }

  /** Takes a single amount of charge. The continuous flow need not be computed first: the order makes no difference. */
  #draw(mah: number, atMs: number): void {
    this.#flow(-mah * this.#speedup);
    this.#lastEffectMs = atMs;
    this.#isPredicted = false;
  }

  /** Applies the continuous flow up to `atMs`. */
  #advanceTo(atMs: number): void {
    if (atMs <= this.#atMs) return;
    const hours = (atMs - this.#atMs) / Hours(1);
    this.#usedMah.idle += POWER_DRAW.idle.value * hours;
    this.#usedMah.selfDischarge += SELF_DISCHARGE_MA * hours;
    if (this.#isModemOn) this.#usedMah.modem += POWER_DRAW.modem.value * hours;
    if (this.#isGpsOn) this.#usedMah.gps += POWER_DRAW.gps.value * hours;
    while (this.#atMs < atMs) {
      const untilMs = Math.min(atMs, this.#nextChargerChangeMs(this.#atMs));
      this.#flow((this.#flowMa(this.#atMs) * (untilMs - this.#atMs)) / Hours(1));
      this.#atMs = untilMs;
    }
  }

  /** Changes the charge by an amount, negative while discharging. */
  #flow(mah: number): void {
    this.#chargeMah = clampedCharge(this.#chargeMah, mah);
  }

  /** The continuous flow from this moment on, mA; negative while discharging. */
  #flowMa(atMs: number): number {
    const modem = this.#isModemOn ? POWER_DRAW.modem.value : 0;
    const gps = this.#isGpsOn ? POWER_DRAW.gps.value : 0;
    const isPlugged = atMs >= this.#pluggedFromMs && atMs < this.#pluggedUntilMs;
    return ((isPlugged ? POWER_DRAW.charger.value : 0) - IDLE_AND_SELF_DISCHARGE_MA - modem - gps) * this.#speedup;
  }

  /** The next time after `atMs` at which the charger is connected or disconnected. */
  #nextChargerChangeMs(atMs: number): number {
    if (atMs < this.#pluggedFromMs) return this.#pluggedFromMs;
    return atMs < this.#pluggedUntilMs ? this.#pluggedUntilMs : Number.POSITIVE_INFINITY;
  }

  /** Predicts the next change of the gauge, across the times at which the charger is connected or disconnected. */
  #predictNext(): void {
    this.#isPredicted = true;
    let atMs = this.#atMs;
    let charge = this.#chargeMah;
    for (;;) {
      const flow = this.#flowMa(atMs);
      const untilMs = this.#nextChargerChangeMs(atMs);
      const nextPercent = this.#percent + (flow > 0 ? 1 : -1);
      const untilChange = Math.max(0, ((nextPercent * PERCENT_MAH - charge) / flow) * Hours(1));
      const isInRange = nextPercent >= MIN_PERCENT && nextPercent <= 100;
      if (isInRange && atMs + untilChange <= untilMs) {
        this.#nextAtMs = Math.max(Math.ceil(atMs + untilChange), this.#lastEffectMs);
        this.#nextPercent = nextPercent;
        return;
      }
      if (untilMs === Number.POSITIVE_INFINITY) break;
      charge = clampedCharge(charge, (flow * (untilMs - atMs)) / Hours(1));
      atMs = untilMs;
    }
    this.#nextAtMs = Number.POSITIVE_INFINITY;
  }
}

/** The charge after a flow (negative while discharging), limited to the cell's capacity and its protection. */
function clampedCharge(chargeMah: number, flowedMah: number): number {
  const after = Math.min(chargeMah + flowedMah, POWER_DRAW.capacity.value);
  return Math.max(after, Math.min(chargeMah, MIN_PERCENT * PERCENT_MAH));
}

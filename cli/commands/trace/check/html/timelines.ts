/**
 * Collects from a trace what the HTML report draws for each lock: its power states and its pings over time. Memory is
 * bounded: of many pings only every second, fourth and so on is stored, and of a large fleet only some locks. Pure.
 */

import { stateRow } from '../../../../../proto/power/judge/state.js';
import type { PowerModel, StateRow } from '../../../../../proto/power/model.js';
import { type TraceEvent, type TraceHeader, UNNAMED_LOCK } from '../../../../../proto/trace/trace.js';
import { formatMac, type Mac } from '../../../../../proto/wire/mac.js';
import type { Uplink } from '../../../../../proto/wire/ping.js';
import type { TraceObserver } from '../observer.js';

/** The maximum number of locks with a timeline. */
const MAX_LOCKS = 2000;
/** The maximum number of pings stored per lock. */
const MAX_PINGS = 400;
/** The maximum number of changes of state stored per lock. */
const MAX_STATES = 200;
/** Assumed for a lock that has not reported its battery: not low, since a low battery is a state. */
const UNKNOWN_BATTERY_PERCENT = 100;

/** A state that a lock entered. */
export interface EnteredState {
  /** By the gateway's clock, ms since the epoch. */
  readonly atMs: number;
  readonly row: StateRow;
}

/** A ping of a lock. */
export interface DrawnPing {
  /** When it was received, ms since the epoch. */
  readonly atMs: number;
  readonly reason: string;
}

/** One lock's part of the report. */
export class LockTimeline {
  readonly mac: string;
  readonly states: EnteredState[] = [];
  /** Every {@link stride}th ping. */
  pings: DrawnPing[] = [];
  /** Doubled whenever {@link pings} is full. */
  stride = 1;
  pingCount = 0;
  /** Whether changes of state beyond the maximum were dropped. */
  hasMoreStates = false;
  #batteryPercent = UNKNOWN_BATTERY_PERCENT;

  constructor(mac: string) {
    this.mac = mac;
  }

  noteUplink(model: PowerModel, atMs: number, { power, body }: Uplink): void {
    if (body.kind !== 'ack') this.#batteryPercent = body.batteryPercent;
    this.enter(atMs, stateRow(model, power, this.#batteryPercent));
    if (body.kind !== 'ack') this.#notePing({ atMs, reason: body.reason });
  }

  enter(atMs: number, row: StateRow): void {
    if (this.states.at(-1)?.row.state === row.state) return;
    if (this.states.length < MAX_STATES) this.states.push({ atMs, row });
    else this.hasMoreStates = true;
  }

  #notePing(ping: DrawnPing): void {
    this.pingCount += 1;
    if (this.pingCount % this.stride !== 0) return;
    this.pings.push(ping);
    if (this.pings.length <= MAX_PINGS) return;
    this.pings = this.pings.filter((_, index) => index % 2 === 1);
    this.stride *= 2;
  }
}

/** Collects the timelines of a trace's locks while the trace is checked. */
export class Timelines implements TraceObserver {
  /** The times of the trace's first and last event, ms since the epoch. */
  fromMs = Number.NaN;
  toMs = Number.NaN;
  readonly #model: PowerModel;
  readonly #locks = new Map<Mac, LockTimeline>();
  /** The locks of the trace's header, with their settings before the first event. */
  #headerLocks: TraceHeader['locks'] = new Map();

  constructor(model: PowerModel) {
    this.#model = model;
  }

  get locks(): readonly LockTimeline[] {
    return [...this.#locks.values()];
  }

  header({ locks }: TraceHeader): void {
    this.#headerLocks = locks;
  }

  event(event: TraceEvent): void {
    if (Number.isNaN(this.fromMs)) this.#start(event.atMs);
    this.toMs = event.atMs;
    if ((event.event !== 'ping' && event.event !== 'ack') || event.source !== 'lock') return;
    this.#lockOf(event.mac)?.noteUplink(this.#model, event.atMs, event.uplink);
  }

  #start(atMs: number): void {
    this.fromMs = atMs;
    for (const mac of this.#headerLocks.keys()) this.#lockOf(mac);
  }

  #lockOf(mac: Mac): LockTimeline | undefined {
    const known = this.#locks.get(mac);
    if (known !== undefined || this.#locks.size >= MAX_LOCKS) return known;
    const added = new LockTimeline(formatMac(mac));
    const { power } = this.#headerLocks.get(mac) ?? UNNAMED_LOCK;
    added.enter(this.fromMs, stateRow(this.#model, power, UNKNOWN_BATTERY_PERCENT));
    this.#locks.set(mac, added);
    return added;
  }
}

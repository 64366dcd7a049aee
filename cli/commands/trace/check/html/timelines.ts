/**
 * Follows a trace and remembers for each lock what the HTML report draws: its states and its pings over time. Bounded:
 * of a long trace it remembers fewer pings, evenly, and of a large fleet only some locks. Pure.
 */

import { stateRow } from '../../../../../proto/power/judge/state.js';
import type { PowerModel, StateRow } from '../../../../../proto/power/model.js';
import { type TraceEvent, type TraceHeader, UNNAMED_LOCK } from '../../../../../proto/trace/trace.js';
import { formatMac, type Mac } from '../../../../../proto/wire/mac.js';
import type { Uplink } from '../../../../../proto/wire/ping.js';
import type { TraceObserver } from '../observer.js';

/** Locks that are followed; the others have no timeline. */
const MAX_LOCKS = 2000;
/** Pings that are remembered for each lock. */
const MAX_PINGS = 400;
/** Changes of state that are remembered for each lock. */
const MAX_STATES = 200;
/** The battery of a lock that has not reported it yet: not low. */
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
  /** One of each {@link stride} pings. */
  pings: DrawnPing[] = [];
  stride = 1;
  pingCount = 0;
  /** Whether there were more changes of state than are remembered. */
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

/** See the head of this file. */
export class Timelines implements TraceObserver {
  /** When the trace begins and ends, ms since the epoch. */
  fromMs = Number.NaN;
  toMs = Number.NaN;
  readonly #model: PowerModel;
  readonly #locks = new Map<Mac, LockTimeline>();
  #header: TraceHeader['locks'] = new Map();

  constructor(model: PowerModel) {
    this.#model = model;
  }

  get locks(): readonly LockTimeline[] {
    return [...this.#locks.values()];
  }

  header({ locks }: TraceHeader): void {
    this.#header = locks;
  }

  event(event: TraceEvent): void {
    if (Number.isNaN(this.fromMs)) this.#begin(event.atMs);
    this.toMs = event.atMs;
    if ((event.event !== 'ping' && event.event !== 'ack') || event.source !== 'lock') return;
    this.#lockOf(event.mac)?.noteUplink(this.#model, event.atMs, event.uplink);
  }

  #begin(atMs: number): void {
    this.fromMs = atMs;
    for (const mac of this.#header.keys()) this.#lockOf(mac);
  }

  #lockOf(mac: Mac): LockTimeline | undefined {
    const known = this.#locks.get(mac);
    if (known !== undefined || this.#locks.size >= MAX_LOCKS) return known;
    const added = new LockTimeline(formatMac(mac));
    const { power } = this.#header.get(mac) ?? UNNAMED_LOCK;
    added.enter(this.fromMs, stateRow(this.#model, power, UNKNOWN_BATTERY_PERCENT));
    this.#locks.set(mac, added);
    return added;
  }
}

/**
 * Measures the load of a fleet by hour of the UTC day: open connections, connects and uplinks. A simulated lock may
 * represent several locks of the fleet; its weight is their number, and each of its events counts that many times.
 */
import { Days, Hours, Minutes } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { VirtualSink } from '../fleet/virtual-sink.js';

export const HOURS_OF_DAY = 24;
const MINUTES_OF_HOUR = 60;

/** What is measured. */
export interface LoadProfileOptions {
  /** How many locks of the fleet each simulated lock represents. */
  readonly weights: ReadonlyMap<Mac, number>;
  /** The measured period: whole days from midnight, ms since the epoch. Connections opened earlier count too. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** The connection of one simulated lock. */
interface LockPresence {
  readonly weight: number;
  /** When the current connection started; null without a connection. */
  sinceMs: number | null;
  /** How long the lock was connected in each hour of the day, ms. */
  readonly connectedMs: Float64Array;
}

/** Receives the events of a virtual run (a simulation without a gateway), in the order of time, and counts them. */
export class LoadProfile implements VirtualSink {
  /** The number of connects in each measured minute. */
  readonly connects: Float64Array;
  /** The number of uplinks in each measured minute. */
  readonly uplinks: Float64Array;
  /** The maximum number of open connections, by hour of the day. */
  readonly peakConnected = new Float64Array(HOURS_OF_DAY);
  readonly #locks = new Map<Mac, LockPresence>();
  readonly #fromMs: number;
  readonly #toMs: number;
  #connectedNow = 0;
  /** Until when peakConnected is up to date, ms since the epoch. */
  #countedUntilMs: number;

  constructor({ weights, fromMs, toMs }: LoadProfileOptions) {
    this.#fromMs = fromMs;
    this.#toMs = toMs;
    // Just before the start, so that the first hour includes connections that are already open.
    this.#countedUntilMs = fromMs - 1;
    const minutes = Math.ceil((toMs - fromMs) / Minutes(1));
    this.connects = new Float64Array(minutes);
    this.uplinks = new Float64Array(minutes);
    for (const [mac, weight] of weights)
      this.#locks.set(mac, { weight, sinceMs: null, connectedMs: new Float64Array(HOURS_OF_DAY) });
  }

  connect(mac: Mac, atMs: number): void {
    const lock = this.#presenceOf(mac);
    if (lock.sinceMs !== null) return;
    this.#advanceTo(atMs);
    lock.sinceMs = atMs;
    this.#connectedNow += lock.weight;
    this.#updatePeak(atMs);
    this.#countIn(this.connects, lock, atMs);
  }

  uplink(mac: Mac, atMs: number): void {
    this.#countIn(this.uplinks, this.#presenceOf(mac), atMs);
  }

  disconnect(mac: Mac, atMs: number): void {
    const lock = this.#presenceOf(mac);
    if (lock.sinceMs === null) return;
    this.#advanceTo(atMs);
    this.#addSpan(lock, lock.sinceMs, atMs);
    lock.sinceMs = null;
    this.#connectedNow -= lock.weight;
  }

  /** Counts the connections that are still open. To be called at the end of the run. */
  finish(): void {
    this.#advanceTo(this.#toMs);
    for (const lock of this.#locks.values()) {
      if (lock.sinceMs === null) continue;
      this.#addSpan(lock, lock.sinceMs, this.#toMs);
      lock.sinceMs = this.#toMs;
    }
  }

  /** For each hour of the day, the share of the hour in which the lock was connected, 0…1. */
  connectedShares(mac: Mac): number[] {
    // Each hour of the day occurs once a day.
    const hourMs = Hours(1) * ((this.#toMs - this.#fromMs) / Days(1));
    return Array.from(this.#presenceOf(mac).connectedMs, (span) => span / hourMs);
  }

  #presenceOf(mac: Mac): LockPresence {
    const lock = this.#locks.get(mac);
    if (lock === undefined) throw new Error(`${mac} has no weight`);
    return lock;
  }

  /** Counts the open connections in each hour that has started since the last change. */
  #advanceTo(atMs: number): void {
    const hourAfterMs = Math.floor(this.#countedUntilMs / Hours(1)) * Hours(1) + Hours(1);
    for (let ms = hourAfterMs; ms <= Math.min(atMs, this.#toMs - 1); ms += Hours(1)) this.#updatePeak(ms);
    this.#countedUntilMs = Math.max(this.#countedUntilMs, atMs);
  }

  #updatePeak(atMs: number): void {
    if (atMs < this.#fromMs || atMs >= this.#toMs) return;
    const hour = hourOf(atMs);
    this.peakConnected[hour] = Math.max(this.peakConnected[hour] ?? 0, this.#connectedNow);
  }

  /** Adds a lock's event to its minute. */
  #countIn(minutes: Float64Array, { weight }: LockPresence, atMs: number): void {
    if (atMs < this.#fromMs || atMs >= this.#toMs) return;
    const minute = Math.floor((atMs - this.#fromMs) / Minutes(1));
    minutes[minute] = (minutes[minute] ?? 0) + weight;
  }

  /** Adds the time of a connection to the hours of the day, within the measured period. */
  #addSpan({ connectedMs }: LockPresence, sinceMs: number, untilMs: number): void {
    const endMs = Math.min(untilMs, this.#toMs);
    for (let ms = Math.max(sinceMs, this.#fromMs); ms < endMs; ) {
      const nextMs = Math.min(Math.floor(ms / Hours(1)) * Hours(1) + Hours(1), endMs);
      connectedMs[hourOf(ms)] = (connectedMs[hourOf(ms)] ?? 0) + nextMs - ms;
      ms = nextMs;
    }
  }
}

/** The hour of the UTC day. */
export function hourOf(atMs: number): number {
  return Math.floor(atMs / Hours(1)) % HOURS_OF_DAY;
}

/** The mean count of each minute of the day over all days. `minutes` starts at midnight. */
export function byMinuteOfDay(minutes: Float64Array): Float64Array {
  const minutesOfDay = HOURS_OF_DAY * MINUTES_OF_HOUR;
  const days = minutes.length / minutesOfDay;
  const means = new Float64Array(minutesOfDay);
  for (const [index, count] of minutes.entries())
    means[index % minutesOfDay] = (means[index % minutesOfDay] ?? 0) + count / days;
  return means;
}

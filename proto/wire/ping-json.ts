/**
 * Pings as JSON: the member names that webhooks, traces and the CLI share (interfaces.md §3, protocol.md §4). A member
 * that a ping type doesn't carry is absent; `ebike_voltage` is null if no e-bike is connected. This file writes JSON;
 * ping-from-json.ts reads it.
 */
import { Days } from '../clock.js';
import { pingToJson } from '../gen/ping-json.js';
import type { PingJson } from '../gen/ping-types.js';
import type { CommandAck, HighWindow, PingUplink, PowerSettings, Uplink } from './ping.js';

export type { CellularPingJson, CloseConnectionPingJson, GpsPingJson, PingJson } from '../gen/ping-types.js';
export { pingToJson };

export interface PowerJson {
  mode: string;
  ride_tracking: boolean;
  airplane: boolean;
  recovery: boolean;
}

export interface HighWindowJson {
  /** `HH:MM` */
  from: string;
  to: string;
  utc_offset_minutes: number;
}

/** The power settings in JSON. */
export function powerToJson(power: PowerSettings): PowerJson {
  return {
    mode: power.mode,
    ride_tracking: power.rideTracking,
    airplane: power.airplane,
    recovery: power.recovery,
  };
}

/** The high window in JSON. */
export function highWindowToJson(window: HighWindow): HighWindowJson {
  return {
    from: minuteOfDay(window.fromMinute),
    to: minuteOfDay(window.toMinute),
    utc_offset_minutes: window.utcOffsetMinutes,
  };
}

function minuteOfDay(minute: number): string {
  return `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`;
}

const FIRST_DATE_MS = 0;
const LAST_DATE_MS = Date.UTC(9999, 11, 31) + Days(1) - 1;

/** Whether a lock's time can be written as a date: the years 1970–9999 (protocol.md §1). */
export function isDatable(timeMs: number): boolean {
  return timeMs >= FIRST_DATE_MS && timeMs <= LAST_DATE_MS;
}

/** A time as an RFC 3339 date in UTC with milliseconds. `timeMs` must be datable (see {@link isDatable}). */
export function formatDate(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

/* ------------------------------------------------------------------------------------ uplinks with their envelopes */

/** The envelope of an uplink: the members in addition to those of its ping or acknowledgement. */
export interface EnvelopeJson {
  boot: number;
  sequence: number;
  /** When the lock made the uplink, RFC 3339. */
  date?: string;
  /** Instead of `date` if the time is outside the years 1970–9999: ms since the epoch. */
  time_ms?: number;
  power: PowerJson;
  /** How many uplinks made earlier still wait in the lock; absent for 0. */
  kept?: number;
  /** How many uplinks the lock has discarded since boot; absent for 0. */
  dropped?: number;
}

export interface AckJson {
  id: number;
  result: string;
  /** Absent if empty. */
  detail?: string;
  high_window?: HighWindowJson;
}

/** A ping with its envelope, as in a trace and in the output of `ping decode`. */
export function pingUplinkToJson(uplink: PingUplink): PingJson & EnvelopeJson {
  return { ...pingToJson(uplink.body), ...envelopeToJson(uplink) };
}

/** A command's acknowledgement with its envelope. */
export function ackUplinkToJson(uplink: Uplink<CommandAck>): AckJson & EnvelopeJson {
  const { commandId, result, detail, highWindow } = uplink.body;
  const json: AckJson = { id: commandId, result };
  if (detail !== '') json.detail = detail;
  if (highWindow !== null) json.high_window = highWindowToJson(highWindow);
  return { ...json, ...envelopeToJson(uplink) };
}

function envelopeToJson(uplink: Uplink): EnvelopeJson {
  const { boot, sequence, timeMs, power, kept, dropped } = uplink;
  const time = isDatable(timeMs) ? { date: formatDate(timeMs) } : { time_ms: timeMs };
  const json: EnvelopeJson = { boot, sequence, ...time, power: powerToJson(power) };
  if (kept !== 0) json.kept = kept;
  if (dropped !== 0) json.dropped = dropped;
  return json;
}

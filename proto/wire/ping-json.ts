/**
 * Pings as JSON: the member names that webhooks, traces and the CLI share (interfaces.md §3, protocol.md §4).
 * A member that a ping type doesn't carry is absent; `ebike_voltage` is null where no e-bike is connected. This is the
 * writing; ping-from-json.ts reads.
 */
import { Days } from '../clock.js';
import type {
  CommandAck,
  HighWindow,
  LockState,
  Ping,
  PingUplink,
  Position,
  PowerSettings,
  TetherState,
  Uplink,
} from './ping.js';
import type { Reason } from './reasons.js';

/** What every ping carries. */
interface AnyPingJson {
  lock_state: LockState;
  /** Percent. */
  battery_percent: number;
}

/** The members of a cellular ping, in the order of the documentation. */
export interface CellularPingJson extends AnyPingJson {
  ping_type: 'cellular';
  reason: Reason;
  firmware_version: string;
  /** Volts; null where no e-bike is connected. */
  ebike_voltage: number | null;
  tether_state: TetherState;
  /** Degrees. Together with `longitude` and `uncertainty`, where the ping has a position. */
  latitude?: number;
  longitude?: number;
  /** Metres. */
  uncertainty?: number;
}

/** The members of a GPS ping. */
export interface GpsPingJson extends AnyPingJson {
  ping_type: 'gps';
  reason: Reason;
  /** Volts; null where no e-bike is connected. */
  ebike_voltage: number | null;
  tether_state: TetherState;
  /** Degrees. */
  latitude: number;
  longitude: number;
  /** Metres per second. */
  speed: number;
  /** Degrees clockwise from north. */
  direction: number;
  /** Metres. */
  uncertainty: number;
}

/** The members of a close-connection ping. */
export interface CloseConnectionPingJson extends AnyPingJson {
  ping_type: 'close_connection';
  reason: 'REASON_CLOSE_CONNECTION';
}

/** The members of a ping itself, by its type. */
export type PingJson = CellularPingJson | GpsPingJson | CloseConnectionPingJson;

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

/** The ping's own members. */
export function pingToJson(ping: Ping): PingJson {
  const { lockState: lock_state, batteryPercent: battery_percent } = ping;
  if (ping.kind === 'close_connection')
    return { ping_type: ping.kind, reason: ping.reason, lock_state, battery_percent };
  const { ebikeVolts: ebike_voltage, tetherState: tether_state } = ping;
  const any = { reason: ping.reason, lock_state, battery_percent };
  if (ping.kind === 'cellular') {
    const { firmwareVersion: firmware_version } = ping;
    const json: CellularPingJson = { ping_type: ping.kind, ...any, firmware_version, ebike_voltage, tether_state };
    return ping.position === null ? json : Object.assign(json, positionToJson(ping.position));
  }
  const { latitude, longitude, uncertainty } = positionToJson(ping.position);
  const { speedMetersPerSecond: speed, directionDegrees: direction } = ping;
  const where = { latitude, longitude, speed, direction, uncertainty };
  return { ping_type: ping.kind, ...any, ebike_voltage, tether_state, ...where };
}

function positionToJson({ latitudeDegrees, longitudeDegrees, uncertaintyMeters }: Position) {
  return { latitude: latitudeDegrees, longitude: longitudeDegrees, uncertainty: uncertaintyMeters };
}

/** The power settings, as a trace has them. */
export function powerToJson(power: PowerSettings): PowerJson {
  return {
    mode: power.mode,
    ride_tracking: power.rideTracking,
    airplane: power.airplane,
    recovery: power.recovery,
  };
}

/** The high window, as a trace has it. */
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

/** RFC 3339 in UTC with milliseconds. `timeMs` must be datable. */
export function toDate(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

/* --------------------------------------------------------------------------------------------------- whole uplinks */

/** The envelope of an uplink, beside its ping's or acknowledgement's members. */
export interface EnvelopeJson {
  boot: number;
  sequence: number;
  /** When the lock made it, RFC 3339. */
  date?: string;
  /** Instead of `date` where the time is outside the years 1970–9999: ms since the epoch. */
  time_ms?: number;
  power: PowerJson;
  /** Absent for 0. */
  kept?: number;
  dropped?: number;
}

export interface AckJson {
  id: number;
  result: string;
  /** Absent where empty. */
  detail?: string;
  high_window?: HighWindowJson;
}

/** A ping with its envelope, as a trace and `ping decode` show it. */
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
  const time = isDatable(timeMs) ? { date: toDate(timeMs) } : { time_ms: timeMs };
  const json: EnvelopeJson = { boot, sequence, ...time, power: powerToJson(power) };
  if (kept !== 0) json.kept = kept;
  if (dropped !== 0) json.dropped = dropped;
  return json;
}

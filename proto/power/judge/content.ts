/**
 * The rules that need nothing but the uplink itself (protocol.md §3): what it says against what it may say. Rules about
 * state use the uplink's own power, lock state and battery.
 */
import type { CommandAck, GpsPing, Ping, Position, Source, Uplink } from '../../wire/ping.js';
import { isDatable } from '../../wire/ping-json.js';
import { isKnownReason } from '../../wire/reasons.js';
import { FIRST_LIFE } from '../../wire/uplink-life.js';
import type { PowerModel } from '../model.js';
import type { RuleName } from '../rules.js';
import type { Belief } from './belief.js';
import { finding, type UplinkEvent, type UplinkKey, uplinkKey, type Verdict } from './event.js';
import { lowBatteryBelow } from './state.js';
import { describeSpan, describeTime } from './words.js';

/** The name of an event's uplink. */
export function nameOf(event: UplinkEvent): UplinkKey {
  return uplinkKey(event.credential, event.life ?? FIRST_LIFE, event.uplink.boot, event.uplink.sequence);
}

/** The rules that a phone's uplink meets too. */
export function judgeAnySource(mac: string, event: UplinkEvent, out: Verdict): void {
  const { uplink, source } = event;
  const { body } = uplink;
  const wrongSource = wrongSourceMessage(body, source);
  if (wrongSource !== null) add(out, mac, event, 'wrong-source', wrongSource);
  if (body.kind !== 'ack' && !isKnownReason(body.reason)) {
    const number = body.reason.replace('REASON_UNRECOGNIZED_', '');
    add(out, mac, event, 'unknown-reason', `The reason ${number} is not in the table.`);
  }
  if (!isInRange(uplink)) add(out, mac, event, 'out-of-range', outOfRangeMessage(uplink));
  if (event.copy === 'conflict') {
    const message = `Boot ${uplink.boot}, sequence ${uplink.sequence} was used before with other content.`;
    add(out, mac, event, 'sequence-conflict', message);
  }
}

function add(out: Verdict, mac: string, event: UplinkEvent, rule: RuleName, message: string): void {
  out.findings.push(finding(rule, mac, nameOf(event), event.atMs, message));
}

function wrongSourceMessage(body: Ping | CommandAck, source: Source): string | null {
  if (source === 'lock') {
    return body.kind !== 'ack' && body.reason === 'PHONE' ? 'PHONE came from the lock, not from a phone.' : null;
  }
  if (body.kind === 'ack') return `An acknowledgement of command ${body.commandId} came from a phone.`;
  return body.reason === 'PHONE' ? null : `${body.reason} came from a phone, which may send PHONE only.`;
}

/** Written so that what is no number is not in range. */
function isInRange(uplink: Uplink): boolean {
  const { body } = uplink;
  if (!isDatable(uplink.timeMs)) return false;
  if (body.kind === 'ack') return true;
  if (!(body.batteryPercent >= 0 && body.batteryPercent <= 100)) return false;
  if (body.kind === 'close_connection') return true;
  if (body.position !== null && !isOnEarth(body.position)) return false;
  return body.kind === 'cellular' || (body.speedMetersPerSecond >= 0 && isDirection(body.directionDegrees));
}

/** Whether the position can be one: on the globe, its uncertainty not negative. */
export function isOnEarth(position: Position): boolean {
  const { latitudeDegrees, longitudeDegrees, uncertaintyMeters } = position;
  return (
    latitudeDegrees >= -90 &&
    latitudeDegrees <= 90 &&
    longitudeDegrees >= -180 &&
    longitudeDegrees <= 180 &&
    uncertaintyMeters >= 0
  );
}

function isDirection(degrees: number): boolean {
  return degrees >= 0 && degrees < 360;
}

function outOfRangeMessage(uplink: Uplink): string {
  const wrong: string[] = [];
  const { body } = uplink;
  if (!isDatable(uplink.timeMs)) wrong.push(`time ${uplink.timeMs} ms outside the years 1970–9999`);
  if (body.kind !== 'ack') {
    if (!(body.batteryPercent >= 0 && body.batteryPercent <= 100)) wrong.push(`battery ${body.batteryPercent} %`);
    if (body.kind !== 'close_connection' && body.position !== null) wrong.push(...wrongInPosition(body.position));
    if (body.kind === 'gps') wrong.push(...wrongInMotion(body));
  }
  return `Out of range: ${wrong.join(', ')}.`;
}

function wrongInPosition(position: Position): string[] {
  const { latitudeDegrees, longitudeDegrees, uncertaintyMeters } = position;
  const wrong: string[] = [];
  if (!(latitudeDegrees >= -90 && latitudeDegrees <= 90)) wrong.push(`latitude ${latitudeDegrees}°`);
  if (!(longitudeDegrees >= -180 && longitudeDegrees <= 180)) wrong.push(`longitude ${longitudeDegrees}°`);
  if (!(uncertaintyMeters >= 0)) wrong.push(`uncertainty ${uncertaintyMeters} m`);
  return wrong;
}

function wrongInMotion(ping: GpsPing): string[] {
  const wrong: string[] = [];
  if (!(ping.speedMetersPerSecond >= 0)) wrong.push(`speed ${ping.speedMetersPerSecond} m/s`);
  if (!isDirection(ping.directionDegrees)) wrong.push(`direction ${ping.directionDegrees}°`);
  return wrong;
}

/** The rules that a lock's uplink must keep, whatever came before and comes after it. */
export function judgeOwnContent(model: PowerModel, belief: Belief, event: UplinkEvent, out: Verdict): void {
  const { uplink } = event;
  const { body } = uplink;
  const { mac } = belief;
  if (uplink.timeMs - event.atMs > model.bounds.clockAheadOver)
    add(out, mac, event, 'clock-ahead', clockAheadMessage(event));
  if (uplink.power.airplane) judgeAirplane(belief, event, out);
  if (body.kind === 'ack') return;
  const { reason, batteryPercent } = body;
  const lowBelow = lowBatteryBelow(model);
  if (batteryPercent < lowBelow && reason !== 'REASON_THEFT' && reason !== 'REASON_CLOSE_CONNECTION') {
    const message = `${reason} was sent with the battery at ${batteryPercent} %, below ${lowBelow} %.`;
    add(out, mac, event, 'low-battery-theft-only', message);
  }
  judgeReason(mac, event, body, out);
}

/** All but the first close-connection ping, which rests on those before it (airplane.ts). */
function judgeAirplane(belief: Belief, event: UplinkEvent, out: Verdict): void {
  const { body } = event.uplink;
  if (body.kind === 'close_connection') return;
  if (body.kind === 'ack') {
    if (belief.airplaneSwitches.some((command) => command.id === body.commandId)) return;
    const message = `With airplane on, command ${body.commandId} was acknowledged, which did not switch it on.`;
    add(out, belief.mac, event, 'airplane-silence', message);
  } else add(out, belief.mac, event, 'airplane-silence', `${body.reason} was sent with airplane on.`);
}

function judgeReason(mac: string, event: UplinkEvent, ping: Ping, out: Verdict): void {
  const { reason, lockState } = ping;
  switch (reason) {
    case 'REASON_THEFT':
      if (lockState === 'unlocked')
        add(out, mac, event, 'theft-while-unlocked', 'REASON_THEFT was sent while the lock was unlocked.');
      break;
    case 'REASON_UNLOCKED_PING':
      if (!event.uplink.power.rideTracking)
        add(out, mac, event, 'ride-tracking-off', 'REASON_UNLOCKED_PING was sent while ride tracking was off.');
      judgeRideLockState(mac, event, ping, out);
      break;
    case 'REASON_UNLOCKED_MOVEMENT':
      judgeRideLockState(mac, event, ping, out);
      break;
    case 'REASON_GPS_PING':
      if (ping.kind !== 'gps')
        add(out, mac, event, 'position-missing', `REASON_GPS_PING came as a ${ping.kind} ping, not as a GPS ping.`);
      break;
    case 'REASON_CELL_PING':
      if (ping.position === null) add(out, mac, event, 'position-missing', 'REASON_CELL_PING came without a position.');
      break;
  }
}

function judgeRideLockState(mac: string, event: UplinkEvent, ping: Ping, out: Verdict): void {
  if (ping.lockState === 'locked')
    add(out, mac, event, 'ride-while-locked', `${ping.reason} was sent while the lock was locked.`);
}

function clockAheadMessage(event: UplinkEvent): string {
  const { timeMs } = event.uplink;
  const ahead = describeSpan(timeMs - event.atMs);
  return `The lock’s time ${describeTime(timeMs)} is ${ahead} ahead of the receipt at ${describeTime(event.atMs)}.`;
}

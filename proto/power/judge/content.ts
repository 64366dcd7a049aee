/**
 * The rules that need only the uplink itself (protocol.md §3). Rules about the lock's state use the uplink's own power,
 * lock state and battery, not the belief (what the judge knows of the lock from other events). The one exception:
 * airplane-silence asks the belief which commands switched airplane mode on, since the lock may acknowledge those. No
 * I/O: adds findings to the verdict and changes nothing else.
 */
import { isPlausiblePing } from '../../gen/ping-content.js';
import { type CommandAck, fieldValue, type Ping, type Source, type Uplink } from '../../wire/ping.js';
import { inTypeOrder, PING_FIELD_ROWS, type PlausibleRange } from '../../wire/ping-fields.js';
import { isDatable } from '../../wire/ping-json.js';
import { isKnownReason, type Reason } from '../../wire/reasons.js';
import { FIRST_LIFE } from '../../wire/uplink-life.js';
import type { PowerModel } from '../model.js';
import type { RuleName } from '../rules.js';
import type { Belief } from './belief.js';
import { finding, type UplinkEvent, type UplinkKey, uplinkKey, type Verdict } from './event.js';
import { lowBatteryLimitPercent } from './state.js';
import { describeSpan, describeTime } from './words.js';

/** The key of an event's uplink. A reflash, which resets the boot counter, starts a new life of the lock. */
export function keyOf(event: UplinkEvent): UplinkKey {
  return uplinkKey(event.credential, event.life ?? FIRST_LIFE, event.uplink.boot, event.uplink.sequence);
}

/** Judges an uplink by the rules that apply to uplinks of locks and of phones. */
export function judgeAnySource(mac: string, event: UplinkEvent, verdict: Verdict): void {
  const { uplink, source } = event;
  const { body } = uplink;
  const wrongSource = wrongSourceMessage(body, source);
  if (wrongSource !== null) addFinding(verdict, mac, event, 'wrong-source', wrongSource);
  if (body.kind !== 'ack' && !isKnownReason(body.reason)) {
    // The decoder gives such a name to a number that is not in the table.
    const number = body.reason.replace('REASON_UNRECOGNIZED_', '');
    addFinding(verdict, mac, event, 'unknown-reason', `The reason ${number} is not in the table.`);
  }
  if (!isInRange(uplink)) addFinding(verdict, mac, event, 'out-of-range', outOfRangeMessage(uplink));
  if (event.novelty === 'conflict') {
    const message = `Boot ${uplink.boot}, sequence ${uplink.sequence} was used before with other content.`;
    addFinding(verdict, mac, event, 'sequence-conflict', message);
  }
}

function addFinding(verdict: Verdict, mac: string, event: UplinkEvent, rule: RuleName, message: string): void {
  verdict.findings.push(finding(rule, mac, keyOf(event), event.atMs, message));
}

function wrongSourceMessage(body: Ping | CommandAck, source: Source): string | null {
  if (source === 'lock') {
    return body.kind !== 'ack' && body.reason === 'PHONE' ? 'PHONE came from the lock, not from a phone.' : null;
  }
  if (body.kind === 'ack') return `An acknowledgement of command ${body.commandId} came from a phone.`;
  return body.reason === 'PHONE' ? null : `${body.reason} came from a phone, which may send PHONE only.`;
}

function isInRange({ timeMs, body }: Uplink): boolean {
  return isDatable(timeMs) && (body.kind === 'ack' || isPlausiblePing(body));
}

/** The fields that have a plausible range. */
const BOUNDED_FIELDS = inTypeOrder(PING_FIELD_ROWS).filter(([, { plausible }]) => plausible !== undefined);

function outOfRangeMessage({ timeMs, body }: Uplink): string {
  const problems = isDatable(timeMs) ? [] : [`time ${timeMs} ms outside the years 1970–9999`];
  if (body.kind !== 'ack') problems.push(...implausibleValues(body));
  return `Out of range: ${problems.join(', ')}.`;
}

/** Each value outside its range, with its name and unit. */
function implausibleValues(ping: Ping): string[] {
  return BOUNDED_FIELDS.flatMap(([property, { label, unit, plausible }]) => {
    const value = fieldValue(ping, property);
    return typeof value !== 'number' || isWithin(value, plausible) ? [] : [`${label} ${value}${unit}`];
  });
}

/** Whether a value is in a range, whose limits may each be left out; never for NaN. */
function isWithin(value: number, range: PlausibleRange | undefined): boolean {
  if (range === undefined) return true;
  const { min, max, exclusiveMax } = range;
  return value >= min && (max === undefined || value <= max) && (exclusiveMax === undefined || value < exclusiveMax);
}

/** Judges a lock's uplink by the rules that apply to locks only and do not depend on other uplinks. */
export function judgeLockContent(model: PowerModel, belief: Belief, event: UplinkEvent, verdict: Verdict): void {
  const { uplink } = event;
  const { body } = uplink;
  const { mac } = belief;
  if (uplink.timeMs - event.atMs > model.bounds.clockAheadOver)
    addFinding(verdict, mac, event, 'clock-ahead', clockAheadMessage(event));
  if (uplink.power.airplane) judgeAirplane(belief, event, verdict);
  if (body.kind === 'ack') return;
  const { reason, batteryPercent } = body;
  const lowBatteryLimit = lowBatteryLimitPercent(model);
  if (batteryPercent < lowBatteryLimit && reason !== 'REASON_THEFT' && reason !== 'REASON_CLOSE_CONNECTION') {
    const message = `${reason} was sent with the battery at ${batteryPercent} %, below ${lowBatteryLimit} %.`;
    addFinding(verdict, mac, event, 'low-battery-theft-only', message);
  }
  judgeReason(mac, event, body, verdict);
}

/** airplane-silence for all uplinks except close-connection pings, which airplane.ts judges. */
function judgeAirplane(belief: Belief, event: UplinkEvent, verdict: Verdict): void {
  const { body } = event.uplink;
  if (body.kind === 'close_connection') return;
  if (body.kind === 'ack') {
    if (belief.airplaneSwitches.some((command) => command.id === body.commandId)) return;
    const message = `With airplane on, the lock acknowledged command ${body.commandId}, which had not switched it on.`;
    addFinding(verdict, belief.mac, event, 'airplane-silence', message);
  } else addFinding(verdict, belief.mac, event, 'airplane-silence', `${body.reason} was sent with airplane on.`);
}

function judgeReason(mac: string, event: UplinkEvent, ping: Ping, verdict: Verdict): void {
  const { reason, lockState } = ping;
  judgeType(mac, event, ping, verdict);
  switch (reason) {
    case 'REASON_THEFT':
      if (lockState === 'unlocked')
        addFinding(verdict, mac, event, 'theft-while-unlocked', 'REASON_THEFT was sent while the lock was unlocked.');
      break;
    case 'REASON_UNLOCKED_PING':
      if (!event.uplink.power.rideTracking)
        addFinding(
          verdict,
          mac,
          event,
          'ride-tracking-off',
          'REASON_UNLOCKED_PING was sent while ride tracking was off.',
        );
      judgeRideLockState(mac, event, ping, verdict);
      break;
    case 'REASON_UNLOCKED_MOVEMENT':
      judgeRideLockState(mac, event, ping, verdict);
      break;
    case 'REASON_GPS_PING':
      if (ping.kind !== 'gps')
        addFinding(
          verdict,
          mac,
          event,
          'position-missing',
          `REASON_GPS_PING came as a ${ping.kind} ping, not as a GPS ping.`,
        );
      break;
    case 'REASON_CELL_PING':
      if (ping.position === null)
        addFinding(verdict, mac, event, 'position-missing', 'REASON_CELL_PING came without a position.');
      break;
  }
}

/**
 * The ping types that a reason can have; a missing reason can have any. REASON_GPS_PING is left to position-missing.
 */
const TYPES_BY_REASON: Readonly<Partial<Record<Reason, readonly Ping['kind'][]>>> = {
  REASON_THEFT: ['cellular', 'gps'],
  REASON_STATE_PING: ['cellular', 'gps'],
  REASON_PERIOD_TRACKING: ['cellular', 'gps'],
  REASON_UNLOCKED_MOVEMENT: ['cellular'],
  REASON_NETWORK_PING: ['cellular'],
  REASON_RESET: ['cellular'],
  REASON_CELL_PING: ['cellular'],
  REASON_UNLOCKED_PING: ['gps'],
  REASON_CLOSE_CONNECTION: ['close_connection'],
};

function judgeType(mac: string, event: UplinkEvent, { reason, kind }: Ping, verdict: Verdict): void {
  const types = TYPES_BY_REASON[reason];
  if (types === undefined || types.includes(kind)) return;
  addFinding(
    verdict,
    mac,
    event,
    'wrong-ping-type',
    `${reason} came as a ${kind} ping; it is for ${types.join(' or ')} pings.`,
  );
}

function judgeRideLockState(mac: string, event: UplinkEvent, ping: Ping, verdict: Verdict): void {
  if (ping.lockState === 'locked')
    addFinding(verdict, mac, event, 'ride-while-locked', `${ping.reason} was sent while the lock was locked.`);
}

function clockAheadMessage(event: UplinkEvent): string {
  const { timeMs } = event.uplink;
  const ahead = describeSpan(timeMs - event.atMs);
  return `The lock’s time ${describeTime(timeMs)} is ${ahead} ahead of the receipt at ${describeTime(event.atMs)}.`;
}

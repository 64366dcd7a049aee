/**
 * The part of the belief that is about the lock itself: power, battery, lock state, position, window, and so the state.
 *
 * It follows the order of uplink keys, not that of arrival (protocol.md §1, §3 "Late data"). Where two uplinks with the
 * same key contradict each other, the greater content counts: arbitrary, but independent of the order of arrival.
 */
import { isPlausiblePosition } from '../../gen/ping-content.js';
import type { HighWindow, LockState, Ping, Position, PowerSettings } from '../../wire/ping.js';
import { FIRST_LIFE } from '../../wire/uplink-life.js';
import type { PowerModel } from '../model.js';
import { type Belief, type BelievedPosition, type Newest, setKey } from './belief.js';
import type { UplinkEvent } from './event.js';
import { rowOf, stateRow } from './state.js';

/** Takes over what the uplink says about the lock. Returns whether that changed its state or its window. */
export function believe(model: PowerModel, belief: Belief, event: UplinkEvent): boolean {
  const { body } = event.uplink;
  const isPowerChanged = believePower(belief, event);
  if (body.kind === 'ack') {
    const isWindowChanged = body.highWindow !== null && believeWindow(belief, event, body.highWindow);
    return (isPowerChanged && enterState(model, belief, event.atMs)) || isWindowChanged;
  }
  const isBatteryChanged = believePing(belief, event, body);
  return (isPowerChanged || isBatteryChanged) && enterState(model, belief, event.atMs);
}

/** More than 0 where the event's uplink comes after `newest` in order, 0 where it has the same key. */
function orderAfter(newest: Newest, event: UplinkEvent): number {
  const { boot, sequence } = event.uplink;
  const life = event.life ?? FIRST_LIFE;
  return event.credential - newest.credential || life - newest.life || boot - newest.boot || sequence - newest.sequence;
}

function take(newest: Newest, event: UplinkEvent): void {
  setKey(newest, event.credential, event.life ?? FIRST_LIFE, event.uplink.boot, event.uplink.sequence);
}

function believePower(belief: Belief, event: UplinkEvent): boolean {
  const { power } = event.uplink;
  const order = orderAfter(belief.powerFrom, event);
  if (order < 0 || (order === 0 && powerRank(power) <= powerRank(belief.power))) return false;
  take(belief.powerFrom, event);
  const isChanged = powerRank(power) !== powerRank(belief.power);
  if (isChanged) belief.power = power;
  return isChanged;
}

function powerRank(power: PowerSettings): number {
  const switches = (power.airplane ? 1 : 0) + (power.recovery ? 2 : 0) + (power.rideTracking ? 4 : 0);
  return power.mode === 'HIGH' ? switches + 8 : switches;
}

/** Returns whether the battery changed. */
function believePing(belief: Belief, event: UplinkEvent, ping: Ping): boolean {
  const { batteryPercent, lockState } = ping;
  if (lockState !== 'unknown') believeLockState(belief, event, lockState);
  if (ping.kind !== 'close_connection' && ping.position !== null && isPlausiblePosition(ping.position))
    believePosition(belief, event, ping.position);
  const order = orderAfter(belief.batteryFrom, event);
  if (!(batteryPercent >= 0)) return false;
  if (order < 0 || (order === 0 && batteryPercent <= (belief.batteryPercent ?? -1))) return false;
  take(belief.batteryFrom, event);
  const isChanged = belief.batteryPercent !== batteryPercent;
  belief.batteryPercent = batteryPercent;
  return isChanged;
}

/** An uplink whose lock state is unknown changes nothing. */
function believeLockState(belief: Belief, event: UplinkEvent, lockState: LockState): void {
  const order = orderAfter(belief.lockStateFrom, event);
  if (order < 0 || (order === 0 && lockState <= belief.lockState)) return;
  take(belief.lockStateFrom, event);
  belief.lockState = lockState;
}

function believePosition(belief: Belief, event: UplinkEvent, position: Position): void {
  const order = orderAfter(belief.positionFrom, event);
  const { timeMs } = event.uplink;
  const known = belief.position;
  if (order < 0 || (order === 0 && known !== null && !isGreater(position, timeMs, known))) return;
  take(belief.positionFrom, event);
  const { latitudeDegrees, longitudeDegrees, uncertaintyMeters } = position;
  if (known === null) belief.position = { latitudeDegrees, longitudeDegrees, uncertaintyMeters, timeMs };
  else {
    // In place: an object for each ping would live just long enough to make the garbage collector's work dear.
    known.latitudeDegrees = latitudeDegrees;
    known.longitudeDegrees = longitudeDegrees;
    known.uncertaintyMeters = uncertaintyMeters;
    known.timeMs = timeMs;
  }
}

function isGreater(position: Position, timeMs: number, known: BelievedPosition): boolean {
  const difference =
    position.latitudeDegrees - known.latitudeDegrees ||
    position.longitudeDegrees - known.longitudeDegrees ||
    position.uncertaintyMeters - known.uncertaintyMeters ||
    timeMs - known.timeMs;
  return difference > 0;
}

/** Returns whether the window changed. */
function believeWindow(belief: Belief, event: UplinkEvent, window: HighWindow): boolean {
  const order = orderAfter(belief.windowFrom, event);
  const difference =
    window.fromMinute - belief.highWindow.fromMinute ||
    window.toMinute - belief.highWindow.toMinute ||
    window.utcOffsetMinutes - belief.highWindow.utcOffsetMinutes;
  if (order < 0 || (order === 0 && difference <= 0)) return false;
  take(belief.windowFrom, event);
  belief.highWindow = window;
  return difference !== 0;
}

/** Determines the state and, where it changed, since when it holds. Returns whether it changed. */
function enterState(model: PowerModel, belief: Belief, atMs: number): boolean {
  const row = stateRow(model, belief.power, belief.batteryPercent);
  if (row.state === belief.state) return false;
  if (row.period !== rowOf(model, belief.state).period) {
    belief.periodStateSinceMs = atMs;
    belief.isOverdueReported = false;
  }
  belief.state = row.state;
  belief.stateSinceMs = atMs;
  belief.isWindowReported = false;
  belief.isRecoveryReported = false;
  return true;
}

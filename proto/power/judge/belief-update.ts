/**
 * Updates the part of the belief (what the judge concludes about a lock) that is about the lock itself: power, battery,
 * lock state, position, high window, and the effective state that follows from them. No I/O: changes only the belief.
 *
 * The newest uplink by key (credential, life, boot, sequence) counts, not the last to arrive (protocol.md §1, §3 "Late
 * data"). If two uplinks with the same key contradict each other, the greater value counts: arbitrary, but independent
 * of the order of arrival. A *life* of a lock is the time between two wipes of its flash.
 */
import { isPlausiblePosition } from '../../gen/ping-content.js';
import type { HighWindow, LockState, Ping, Position, PowerSettings } from '../../wire/ping.js';
import { FIRST_LIFE } from '../../wire/uplink-life.js';
import type { PowerModel } from '../model.js';
import { BELIEF_LIMITS, type Belief, type BelievedPosition, type MutableKey, setKey } from './belief.js';
import type { UplinkEvent } from './event.js';
import { NEVER, rowOfState, stateRow } from './state.js';

/**
 * Updates the belief from an uplink. Returns whether the effective state or the high window changed, or whether it is
 * now known which of several high windows is in force.
 */
export function updateBelief(model: PowerModel, belief: Belief, event: UplinkEvent): boolean {
  const { body } = event.uplink;
  const isPowerChanged = updatePower(belief, event);
  noteDrops(belief, event);
  if (body.kind === 'ack') {
    const wasWindowDoubtful = body.highWindow !== null && forgetAskedWindows(belief, body.commandId);
    const isWindowChanged =
      (body.highWindow !== null && updateWindow(belief, event, body.highWindow)) || wasWindowDoubtful;
    return (isPowerChanged && enterState(model, belief, event.atMs)) || isWindowChanged;
  }
  const isBatteryChanged = updateFromPing(belief, event, body);
  return (isPowerChanged || isBatteryChanged) && enterState(model, belief, event.atMs);
}

/** More than 0 if the event's uplink comes after the uplink `newest` in order, 0 if it has the same key. */
function compareToKey(newest: MutableKey, event: UplinkEvent): number {
  const { boot, sequence } = event.uplink;
  const life = event.life ?? FIRST_LIFE;
  return event.credential - newest.credential || life - newest.life || boot - newest.boot || sequence - newest.sequence;
}

function setKeyFromEvent(newest: MutableKey, event: UplinkEvent): void {
  setKey(newest, event.credential, event.life ?? FIRST_LIFE, event.uplink.boot, event.uplink.sequence);
}

function updatePower(belief: Belief, event: UplinkEvent): boolean {
  const { power } = event.uplink;
  const order = compareToKey(belief.powerFrom, event);
  if (order < 0 || (order === 0 && powerRank(power) <= powerRank(belief.power))) return false;
  setKeyFromEvent(belief.powerFrom, event);
  const isChanged = powerRank(power) !== powerRank(belief.power);
  if (isChanged) belief.power = power;
  return isChanged;
}

/**
 * Notes whether the state is doubtful. An acknowledgement reports no battery level, so if the lock dropped pings before
 * it, the lock may have entered or left LOW_BATTERY without the judge knowing.
 */
function noteDrops(belief: Belief, event: UplinkEvent): void {
  const { body, dropped } = event.uplink;
  // Each uplink reports the power settings, so `powerFrom` is the newest uplink; an older one changes nothing.
  if (compareToKey(belief.powerFrom, event) !== 0) return;
  belief.isStateDoubtful = body.kind === 'ack' && dropped > belief.droppedAtPing;
  if (body.kind !== 'ack') belief.droppedAtPing = dropped;
}

/** A number for each combination of settings, to compare settings with. */
function powerRank(power: PowerSettings): number {
  const switches = (power.airplane ? 1 : 0) + (power.recovery ? 2 : 0) + (power.rideTracking ? 4 : 0);
  return power.mode === 'HIGH' ? switches + 8 : switches;
}

/** Returns whether the battery changed. */
function updateFromPing(belief: Belief, event: UplinkEvent, ping: Ping): boolean {
  const { batteryPercent, lockState } = ping;
  if (lockState !== 'unknown') updateLockState(belief, event, lockState);
  if (ping.kind !== 'close_connection' && ping.position !== null && isPlausiblePosition(ping.position))
    updatePosition(belief, event, ping.position);
  const order = compareToKey(belief.batteryFrom, event);
  // Negative or NaN, which only a faulty lock sends.
  if (!(batteryPercent >= 0)) return false;
  if (order < 0 || (order === 0 && batteryPercent <= (belief.batteryPercent ?? -1))) return false;
  setKeyFromEvent(belief.batteryFrom, event);
  const isChanged = belief.batteryPercent !== batteryPercent;
  belief.batteryPercent = batteryPercent;
  return isChanged;
}

function updateLockState(belief: Belief, event: UplinkEvent, lockState: Exclude<LockState, 'unknown'>): void {
  const order = compareToKey(belief.lockStateFrom, event);
  if (order < 0 || (order === 0 && lockState <= belief.lockState)) return;
  setKeyFromEvent(belief.lockStateFrom, event);
  belief.lockState = lockState;
}

function updatePosition(belief: Belief, event: UplinkEvent, position: Position): void {
  const order = compareToKey(belief.positionFrom, event);
  const { timeMs } = event.uplink;
  const believed = belief.position;
  if (order < 0 || (order === 0 && believed !== null && !isGreater(position, timeMs, believed))) return;
  setKeyFromEvent(belief.positionFrom, event);
  const { latitudeDegrees, longitudeDegrees, uncertaintyMeters } = position;
  if (believed === null) belief.position = { latitudeDegrees, longitudeDegrees, uncertaintyMeters, timeMs };
  else {
    // Overwritten in place, because a new object for each ping would burden the garbage collector.
    believed.latitudeDegrees = latitudeDegrees;
    believed.longitudeDegrees = longitudeDegrees;
    believed.uncertaintyMeters = uncertaintyMeters;
    believed.timeMs = timeMs;
  }
}

function isGreater(position: Position, timeMs: number, believed: BelievedPosition): boolean {
  const difference =
    position.latitudeDegrees - believed.latitudeDegrees ||
    position.longitudeDegrees - believed.longitudeDegrees ||
    position.uncertaintyMeters - believed.uncertaintyMeters ||
    timeMs - believed.timeMs;
  return difference > 0;
}

/** Returns whether the window changed. */
function updateWindow(belief: Belief, event: UplinkEvent, window: HighWindow): boolean {
  const order = compareToKey(belief.windowFrom, event);
  const difference =
    window.fromMinute - belief.highWindow.fromMinute ||
    window.toMinute - belief.highWindow.toMinute ||
    window.utcOffsetMinutes - belief.highWindow.utcOffsetMinutes;
  if (order < 0 || (order === 0 && difference <= 0)) return false;
  setKeyFromEvent(belief.windowFrom, event);
  belief.highWindow = window;
  if (difference !== 0) belief.windowSinceMs = event.atMs;
  return difference !== 0;
}

/** Notes that a command asks for a high window. Until an acknowledgement says which, that window may be in force. */
export function noteAskedWindow(belief: Belief, id: number, window: HighWindow, sentMs: number): void {
  const others = belief.askedWindows.filter((each) => each.id !== id);
  belief.askedWindows = [...others, { id, sentMs, window }].slice(-BELIEF_LIMITS.askedWindows);
}

/**
 * An acknowledgement reports the window in force, so those that its command or earlier commands asked for are no longer
 * in question. Returns whether there were any.
 */
function forgetAskedWindows(belief: Belief, commandId: number): boolean {
  if (belief.askedWindows.length === 0) return false;
  // −NEVER is before all times.
  const firstSentMs = belief.commands.find(({ id }) => id === commandId)?.firstSentMs ?? -NEVER;
  const before = belief.askedWindows.length;
  belief.askedWindows = belief.askedWindows.filter(({ id, sentMs }) => id !== commandId && sentMs >= firstSentMs);
  return belief.askedWindows.length < before;
}

/** Determines the effective state and, if it changed, since when it holds. Returns whether it changed. */
function enterState(model: PowerModel, belief: Belief, atMs: number): boolean {
  // The model's row for the state in force; `period` says whether a lock in that state sends daily pings.
  const row = stateRow(model, belief.power, belief.batteryPercent);
  if (row.state === belief.state) return false;
  if (row.period !== rowOfState(model, belief.state).period) {
    belief.periodStateSinceMs = atMs;
    belief.isOverdueReported = false;
  }
  belief.state = row.state;
  belief.stateSinceMs = atMs;
  belief.isWindowReported = false;
  belief.isRecoveryReported = false;
  return true;
}

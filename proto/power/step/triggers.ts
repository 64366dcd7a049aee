/**
 * What makes a lock speak by itself: theft, state change, ride, period (protocol.md §2). A cellular ping is made at
 * the moment of its trigger, connected or not, so that what it says is never later than what happened. The GPS ping
 * follows in the tick in which there is a fix.
 */

import { searchEndsMs } from './gps.js';
import type { GpsFix } from './io.js';
import { NEVER, nextPeriodMs, triggerRow } from './reading.js';
import type { StepState, Turn } from './state.js';
import { makeCellular, makeGps } from './uplinks.js';

/** A new trigger connects at once, whatever the wait of an earlier failure. */
export function hurry(turn: Turn): void {
  turn.state.retryAtMs = turn.nowMs;
  turn.state.failures = 0;
}

/** The shackle moved. Each change makes its own ping at once, before any other ping can carry the new state. */
export function changeLockState(turn: Turn, lockState: 'locked' | 'unlocked'): void {
  const { state, row } = turn;
  if (state.lockState === lockState) return;
  state.lockState = lockState;
  state.lockStateSinceMs = turn.nowMs;
  // After a change in a state that forbids the ping, a change back brings the lock to what was last told.
  const alreadyTold = lockState === state.toldLockState && !state.toldInSilence;
  if (!row.stateChange || alreadyTold) return;
  hurry(turn);
  cellular(turn, 'state-change');
  state.stateGpsUntilMs = searchEndsMs(turn);
}

/** Ends theft or ride: stood still for long enough, or locked, unlocked or forbidden meanwhile. */
export function endTracking(turn: Turn): void {
  const { state, row, nowMs } = turn;
  if (state.tracking === 'none') return;
  const isAllowed =
    state.tracking === 'theft'
      ? row.theft && state.lockState === 'locked'
      : row.cellOnInRide && state.lockState === 'unlocked';
  if (isAllowed && (state.moving || nowMs < trackingEndsMs(turn))) return;
  state.tracking = 'none';
  state.trackGpsUntilMs = NEVER;
}

/** When theft or ride ends, unless the lock moves again. */
export function trackingEndsMs({ state, model }: Turn): number {
  const { theftEndsAfterStill, rideEndsAfterStill } = model.timings;
  return state.motionSinceMs + (state.tracking === 'theft' ? theftEndsAfterStill : rideEndsAfterStill);
}

/** When a theft begins; never (Infinity) while the lock stands still, is not locked, or may not say so. */
export function theftStartsMs({ state, row, model }: Turn): number {
  if (!row.theft || !state.moving || state.lockState !== 'locked') return Number.POSITIVE_INFINITY;
  // "For more than 6 s": the first millisecond beyond them.
  return Math.max(state.motionSinceMs, state.lockStateSinceMs) + model.timings.theftAfterMotion + 1;
}

/** Theft: locked and moving for more than 6 s. */
export function advanceTheft(turn: Turn): void {
  const { state, nowMs } = turn;
  if (state.tracking === 'none' && nowMs >= theftStartsMs(turn)) beginTracking(turn, 'theft');
  if (state.tracking !== 'theft') return;
  refreshTracking(turn);
  trackByGps(turn, 'theft');
}

/** Ride: unlocked and moving. */
export function advanceRide(turn: Turn): void {
  const { state, row } = turn;
  const rides = row.cellOnInRide && state.moving && state.lockState === 'unlocked';
  if (state.tracking === 'none' && rides) beginTracking(turn, 'ride');
  if (state.tracking !== 'ride') return;
  refreshTracking(turn);
  if (tracksRide(turn)) trackByGps(turn, 'ride');
}

function beginTracking(turn: Turn, tracking: 'theft' | 'ride'): void {
  const { state } = turn;
  state.tracking = tracking;
  state.trackCellAtMs = NEVER;
  state.trackGpsAtMs = NEVER;
  state.trackGpsUntilMs = NEVER;
  hurry(turn);
}

/** The first cellular ping, and one at least every 5 min. Each begins a new search where GPS had given up. */
function refreshTracking(turn: Turn): void {
  const { state, nowMs } = turn;
  if (nowMs < state.trackCellAtMs + turn.model.timings.refreshEvery) return;
  state.trackCellAtMs = nowMs;
  state.trackGpsUntilMs = searchEndsMs(turn);
  cellular(turn, state.tracking === 'theft' ? 'theft' : 'ride');
}

function trackByGps(turn: Turn, trigger: 'theft' | 'ride'): void {
  const { state, nowMs, fix } = turn;
  if (fix === null || nowMs < trackGpsDueMs(turn)) return;
  state.trackGpsAtMs = nowMs;
  gps(turn, trigger, fix);
}

/** Whether a ride sends where it is: the state allows it and the switch is on. */
function tracksRide({ state, row }: Turn): boolean {
  return row.rideTracking && state.power.rideTracking;
}

/** Whether theft or ride sends GPS pings at all. */
export function tracksByGps(turn: Turn): boolean {
  return turn.state.tracking === 'theft' || (turn.state.tracking === 'ride' && tracksRide(turn));
}

/** When the next GPS ping of theft or ride is due: the first at once, the others while the lock moves. */
export function trackGpsDueMs({ state, model }: Turn): number {
  const { theftGpsEvery, rideGpsEvery } = model.timings;
  if (state.trackGpsAtMs === NEVER) return NEVER;
  if (!state.moving) return Number.POSITIVE_INFINITY;
  return state.trackGpsAtMs + (state.tracking === 'theft' ? theftGpsEvery : rideGpsEvery);
}

/** The one GPS ping after a change of the lock state, for the latest change. */
export function advanceStateChange(turn: Turn): void {
  turn.state.stateGpsUntilMs = advanceOneFix(turn, 'state-change', turn.state.stateGpsUntilMs);
}

/** Period: once daily, at the lock's own minute; one that falls where the state forbids it is left out. */
export function advancePeriod(turn: Turn): void {
  const { state, row, nowMs } = turn;
  if (row.period && nowMs >= state.nextPeriodMs) {
    hurry(turn);
    cellular(turn, 'period');
    state.periodGpsUntilMs = searchEndsMs(turn);
    state.lastPeriodMs = nowMs;
    planPeriod(turn);
  }
  state.periodGpsUntilMs = advanceOneFix(turn, 'period', state.periodGpsUntilMs);
}

/** Looks up the next minute for a period ping: at boot, and when a state ends that left the ping out. */
export function planPeriod(turn: Turn): void {
  const { state, nowMs } = turn;
  const hasBeen = state.lastPeriodMs !== NEVER;
  const fromMs = hasBeen ? Math.max(nowMs, state.lastPeriodMs + 1) : nowMs;
  // One that was late (a host was) would bring the next one too near.
  const soonestMs = hasBeen ? state.lastPeriodMs + turn.model.bounds.periodTooSoonUnder : nowMs;
  state.nextPeriodMs = nextPeriodMs(state.periodMinute, fromMs, soonestMs);
}

/** Makes the one GPS ping that waits until `untilMs`, or leaves it out when the search is over. Returns what waits. */
function advanceOneFix(turn: Turn, trigger: 'state-change' | 'period', untilMs: number): number {
  if (untilMs === NEVER) return NEVER;
  if (turn.fix !== null) {
    gps(turn, trigger, turn.fix);
    return NEVER;
  }
  return turn.state.gps !== 'fixed' && turn.nowMs >= untilMs ? NEVER : untilMs;
}

/** Whether the receiver is wanted, by a trigger or by a command to locate. */
export function wantsFix(turn: Turn): boolean {
  const { state, nowMs } = turn;
  if (wantsOneFix(state)) return true;
  return tracksByGps(turn) && (state.gps === 'fixed' || nowMs < state.trackGpsUntilMs);
}

/** Whether a single GPS ping waits for a fix, of whatever trigger but theft and ride. */
export function wantsOneFix(state: StepState): boolean {
  return state.stateGpsUntilMs !== NEVER || state.periodGpsUntilMs !== NEVER || state.locating.length > 0;
}

function cellular(turn: Turn, trigger: 'theft' | 'state-change' | 'ride' | 'period'): void {
  const reason = triggerRow(turn.model, trigger)?.cellularReason;
  if (reason) makeCellular(turn, reason);
}

function gps(turn: Turn, trigger: 'theft' | 'state-change' | 'ride' | 'period', fix: GpsFix): void {
  const reason = triggerRow(turn.model, trigger)?.gpsReason;
  if (reason) makeGps(turn, reason, fix);
}

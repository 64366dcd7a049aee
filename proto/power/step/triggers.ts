/**
 * What makes a lock send without a command: theft, state change, ride, period (protocol.md §2). The lock makes a
 * cellular ping at the moment of its trigger, connected or not, so that the ping describes that moment. It makes the
 * GPS ping in the first tick with a fix. No I/O: the functions change only the context of the step (the lock's state
 * and effects) that they are given. *Tracking* is what a lock does during a theft or a ride.
 */

import { searchEndsMs } from './gps.js';
import type { GpsFix } from './io.js';
import { NEVER, nextPeriodMs, triggerRow } from './reading.js';
import type { StepContext, StepState } from './state.js';
import { makeCellular, makeGps } from './uplinks.js';

/** A new trigger connects at once, even while the lock waits for its next attempt after a failure. */
export function connectAtOnce(context: StepContext): void {
  context.state.retryAtMs = context.nowMs;
  context.state.failures = 0;
}

/** The shackle moved. A change that is reported makes a ping at once, before any other ping can carry the new state. */
export function changeLockState(context: StepContext, lockState: 'locked' | 'unlocked'): void {
  const { state, row } = context;
  if (state.lockState === lockState) return;
  state.lockState = lockState;
  state.lockStateSinceMs = context.nowMs;
  // In a state that forbids the ping a change is not reported, and changing back restores what was last reported. But
  // if the last ping was made in a silent state (AIRPLANE, LOW_BATTERY), even such a change back is reported.
  const isReported = lockState === state.toldLockState && !state.toldInSilence;
  if (!row.stateChange || isReported) return;
  connectAtOnce(context);
  makeCellularFor(context, 'state-change');
  state.stateGpsUntilMs = searchEndsMs(context);
}

/** Ends theft or ride: the lock did not move for long enough, its lock state changed, or the state forbids tracking. */
export function endTracking(context: StepContext): void {
  const { state, row, nowMs } = context;
  if (state.tracking === 'none') return;
  const isAllowed =
    state.tracking === 'theft'
      ? row.theft && state.lockState === 'locked'
      : row.cellOnInRide && state.lockState === 'unlocked';
  if (isAllowed && (state.moving || nowMs < trackingEndsMs(context))) return;
  state.tracking = 'none';
  state.trackGpsUntilMs = NEVER;
}

/** When theft or ride ends, unless the lock moves again. */
export function trackingEndsMs({ state, model }: StepContext): number {
  const { theftEndsAfterStill, rideEndsAfterStill } = model.timings;
  return state.motionSinceMs + (state.tracking === 'theft' ? theftEndsAfterStill : rideEndsAfterStill);
}

/** When a theft starts; Infinity while the lock is not moving, is not locked, or is in a state without theft pings. */
export function theftStartsMs({ state, row, model }: StepContext): number {
  if (!row.theft || !state.moving || state.lockState !== 'locked') return Number.POSITIVE_INFINITY;
  // The theft starts after more than 6 s, so in the first millisecond after them.
  return Math.max(state.motionSinceMs, state.lockStateSinceMs) + model.timings.theftAfterMotion + 1;
}

/** Theft: locked and moving for more than 6 s. */
export function advanceTheft(context: StepContext): void {
  const { state, nowMs } = context;
  if (state.tracking === 'none' && nowMs >= theftStartsMs(context)) startTracking(context, 'theft');
  if (state.tracking !== 'theft') return;
  refreshTracking(context);
  trackByGps(context, 'theft');
}

/** Ride: unlocked and moving. */
export function advanceRide(context: StepContext): void {
  const { state, row } = context;
  const isRiding = row.cellOnInRide && state.moving && state.lockState === 'unlocked';
  if (state.tracking === 'none' && isRiding) startTracking(context, 'ride');
  if (state.tracking !== 'ride') return;
  refreshTracking(context);
  if (tracksRide(context)) trackByGps(context, 'ride');
}

function startTracking(context: StepContext, tracking: 'theft' | 'ride'): void {
  const { state } = context;
  state.tracking = tracking;
  state.trackCellAtMs = NEVER;
  state.trackGpsAtMs = NEVER;
  state.trackGpsUntilMs = NEVER;
  connectAtOnce(context);
}

/** Makes the first cellular ping, and then one every 5 min. Each starts or prolongs the search for a GPS position. */
function refreshTracking(context: StepContext): void {
  const { state, nowMs } = context;
  if (nowMs < state.trackCellAtMs + context.model.timings.refreshEvery) return;
  state.trackCellAtMs = nowMs;
  state.trackGpsUntilMs = searchEndsMs(context);
  makeCellularFor(context, state.tracking === 'theft' ? 'theft' : 'ride');
}

function trackByGps(context: StepContext, trigger: 'theft' | 'ride'): void {
  const { state, nowMs, fix } = context;
  if (fix === null || nowMs < trackGpsDueMs(context)) return;
  state.trackGpsAtMs = nowMs;
  makeGpsFor(context, trigger, fix);
}

/** Whether a ride sends GPS pings: the state allows them and the ride-tracking switch is on. */
function tracksRide({ state, row }: StepContext): boolean {
  return row.rideTracking && state.power.rideTracking;
}

/** Whether theft or ride sends GPS pings at all. */
export function tracksByGps(context: StepContext): boolean {
  return context.state.tracking === 'theft' || (context.state.tracking === 'ride' && tracksRide(context));
}

/**
 * When the next GPS ping of theft or ride is due. The first is due at once ({@link NEVER} has passed at every time);
 * further ones only while the lock moves.
 */
export function trackGpsDueMs({ state, model }: StepContext): number {
  const { theftGpsEvery, rideGpsEvery } = model.timings;
  if (state.trackGpsAtMs === NEVER) return NEVER;
  if (!state.moving) return Number.POSITIVE_INFINITY;
  return state.trackGpsAtMs + (state.tracking === 'theft' ? theftGpsEvery : rideGpsEvery);
}

/** Makes the single GPS ping that follows the latest change of the lock state. */
export function advanceStateChange(context: StepContext): void {
  context.state.stateGpsUntilMs = advanceSingleFix(context, 'state-change', context.state.stateGpsUntilMs);
}

/** Period: once daily, at the lock's own minute of the day. A state that forbids the ping skips that day's ping. */
export function advancePeriod(context: StepContext): void {
  const { state, row, nowMs } = context;
  if (row.period && nowMs >= state.nextPeriodMs) {
    connectAtOnce(context);
    makeCellularFor(context, 'period');
    state.periodGpsUntilMs = searchEndsMs(context);
    state.lastPeriodMs = nowMs;
    planPeriod(context);
  }
  state.periodGpsUntilMs = advanceSingleFix(context, 'period', state.periodGpsUntilMs);
}

/** Plans the next period ping: at boot, after each period ping, and on leaving a state that skips the ping. */
export function planPeriod(context: StepContext): void {
  const { state, nowMs } = context;
  const hasPrevious = state.lastPeriodMs !== NEVER;
  // Later than the last ping: otherwise the minute of that ping would be planned again.
  const fromMs = hasPrevious ? Math.max(nowMs, state.lastPeriodMs + 1) : nowMs;
  // If the last ping was late because the host was late, the next one must not follow it too soon.
  const soonestMs = hasPrevious ? state.lastPeriodMs + context.model.bounds.periodTooSoonUnder : nowMs;
  state.nextPeriodMs = nextPeriodMs(state.periodMinute, fromMs, soonestMs);
}

/**
 * Makes a trigger's single GPS ping if there is a fix, or skips it when the search is over at `untilMs`. Returns until
 * when the ping still waits, or {@link NEVER}.
 */
function advanceSingleFix(context: StepContext, trigger: 'state-change' | 'period', untilMs: number): number {
  if (untilMs === NEVER) return NEVER;
  if (context.fix !== null) {
    makeGpsFor(context, trigger, context.fix);
    return NEVER;
  }
  return context.state.gps !== 'fixed' && context.nowMs >= untilMs ? NEVER : untilMs;
}

/** Whether a trigger or a command to locate needs the receiver. */
export function wantsFix(context: StepContext): boolean {
  const { state, nowMs } = context;
  if (wantsSingleFix(state)) return true;
  return tracksByGps(context) && (state.gps === 'fixed' || nowMs < state.trackGpsUntilMs);
}

/** Whether a single GPS ping waits for a fix: of a state change, a period ping or a command to locate. */
export function wantsSingleFix(state: StepState): boolean {
  return state.stateGpsUntilMs !== NEVER || state.periodGpsUntilMs !== NEVER || state.locatingByGps.length > 0;
}

function makeCellularFor(context: StepContext, trigger: 'theft' | 'state-change' | 'ride' | 'period'): void {
  const reason = triggerRow(context.model, trigger)?.cellularReason;
  if (reason) makeCellular(context, reason);
}

function makeGpsFor(context: StepContext, trigger: 'theft' | 'state-change' | 'ride' | 'period', fix: GpsFix): void {
  const reason = triggerRow(context.model, trigger)?.gpsReason;
  if (reason) makeGps(context, reason, fix);
}

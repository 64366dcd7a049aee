/** When a lock must be woken next: the earliest time at which it acts without any input (protocol.md §2). Pure. */
import { fixAtMs } from './gps.js';
import { closesMs, mustStayOpen, timesOutMs, wantsLink } from './link.js';
import { keepsConnection, NEVER, nextWindowEdgeMs } from './reading.js';
import type { StepContext } from './state.js';
import { theftStartsMs, trackGpsDueMs, trackingEndsMs, tracksByGps, wantsSingleFix } from './triggers.js';

/** When the next tick is due, ms since the epoch, never before now; Infinity if only an input can wake the lock. */
export function dueMs(context: StepContext): number {
  const { state, row, nowMs } = context;
  let soonest = Number.POSITIVE_INFINITY;
  if (row.period) soonest = state.nextPeriodMs;
  if (row.connectionKept === 'in-window') soonest = Math.min(soonest, nextWindowEdgeMs(state.highWindow, nowMs));
  if (state.tracking === 'none') {
    if (state.moving) soonest = Math.min(soonest, theftStartsMs(context));
  } else {
    soonest = Math.min(soonest, trackingDueMs(context));
  }
  if (state.gps !== 'off') soonest = Math.min(soonest, receiverDueMs(context));
  if (state.locking.length > 0) soonest = Math.min(soonest, state.lockingAtMs);
  if (state.locatingByCell.length > 0) soonest = nowMs;
  return Math.max(Math.min(soonest, linkDueMs(context)), nowMs);
}

function trackingDueMs(context: StepContext): number {
  const { state, model } = context;
  const refreshMs = state.trackCellAtMs + model.timings.refreshEvery;
  return state.moving ? refreshMs : Math.min(refreshMs, trackingEndsMs(context));
}

/** With a fix: when the next GPS ping is due. While searching: when the fix comes, or when the search is given up. */
function receiverDueMs(context: StepContext): number {
  const { state, nowMs } = context;
  if (state.gps === 'fixed') {
    if (wantsSingleFix(state)) return nowMs;
    return tracksByGps(context) ? trackGpsDueMs(context) : Number.POSITIVE_INFINITY;
  }
  let soonest = state.skyOpen ? fixAtMs(state) : Number.POSITIVE_INFINITY;
  if (state.stateGpsUntilMs !== NEVER) soonest = Math.min(soonest, state.stateGpsUntilMs);
  if (state.periodGpsUntilMs !== NEVER) soonest = Math.min(soonest, state.periodGpsUntilMs);
  if (state.locatingByGps.length > 0) soonest = Math.min(soonest, state.locatingByGpsUntilMs);
  if (tracksByGps(context) && state.trackGpsUntilMs > nowMs) soonest = Math.min(soonest, state.trackGpsUntilMs);
  return soonest;
}

function linkDueMs(context: StepContext): number {
  const { state, row, nowMs, model } = context;
  if (state.link === 'down') return wantsLink(context) ? state.retryAtMs : Number.POSITIVE_INFINITY;
  if (state.link !== 'up') return Number.POSITIVE_INFINITY;
  if (state.inFlight) return timesOutMs(context);
  if (keepsConnection(row, state.highWindow, nowMs)) return state.networkAtMs + model.timings.networkPingEvery;
  const isIdle = state.waiting.length === 0 && !mustStayOpen(context);
  return isIdle ? closesMs(context) : Number.POSITIVE_INFINITY;
}

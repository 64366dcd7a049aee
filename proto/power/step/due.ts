/** When a lock must be woken next: the earliest of all that time alone will make due (protocol.md §2). */
import { fixAtMs } from './gps.js';
import { closesMs, givesUpMs, holdsOpen, wantsLink } from './link.js';
import { keepsConnection, NEVER, nextWindowEdgeMs } from './reading.js';
import type { Turn } from './state.js';
import { theftStartsMs, trackGpsDueMs, trackingEndsMs, tracksByGps, wantsOneFix } from './triggers.js';

/** Ms since the epoch, never before now; Infinity where only an input can wake the lock. */
export function dueMs(turn: Turn): number {
  const { state, row, nowMs } = turn;
  let soonest = Number.POSITIVE_INFINITY;
  if (row.period) soonest = state.nextPeriodMs;
  if (row.connectionKept === 'in-window') soonest = Math.min(soonest, nextWindowEdgeMs(state.highWindow, nowMs));
  if (state.tracking === 'none') {
    if (state.moving) soonest = Math.min(soonest, theftStartsMs(turn));
  } else {
    soonest = Math.min(soonest, trackingDueMs(turn));
  }
  if (state.gps !== 'off') soonest = Math.min(soonest, receiverDueMs(turn));
  if (state.locking.length > 0) soonest = Math.min(soonest, state.lockingAtMs);
  if (state.locatingByCell.length > 0) soonest = nowMs;
  return Math.max(Math.min(soonest, linkDueMs(turn)), nowMs);
}

function trackingDueMs(turn: Turn): number {
  const { state, model } = turn;
  const refreshMs = state.trackCellAtMs + model.timings.refreshEvery;
  return state.moving ? refreshMs : Math.min(refreshMs, trackingEndsMs(turn));
}

/** With a fix: the next GPS ping. While searching: the fix, or the end of a search. */
function receiverDueMs(turn: Turn): number {
  const { state, nowMs } = turn;
  if (state.gps === 'fixed') {
    if (wantsOneFix(state)) return nowMs;
    return tracksByGps(turn) ? trackGpsDueMs(turn) : Number.POSITIVE_INFINITY;
  }
  let soonest = state.skyOpen ? fixAtMs(state) : Number.POSITIVE_INFINITY;
  if (state.stateGpsUntilMs !== NEVER) soonest = Math.min(soonest, state.stateGpsUntilMs);
  if (state.periodGpsUntilMs !== NEVER) soonest = Math.min(soonest, state.periodGpsUntilMs);
  if (state.locating.length > 0) soonest = Math.min(soonest, state.locatingUntilMs);
  if (tracksByGps(turn) && state.trackGpsUntilMs > nowMs) soonest = Math.min(soonest, state.trackGpsUntilMs);
  return soonest;
}

function linkDueMs(turn: Turn): number {
  const { state, row, nowMs, model } = turn;
  if (state.link === 'down') return wantsLink(turn) ? state.retryAtMs : Number.POSITIVE_INFINITY;
  if (state.link !== 'up') return Number.POSITIVE_INFINITY;
  if (state.inFlight) return givesUpMs(turn);
  if (keepsConnection(row, state.highWindow, nowMs)) return state.networkAtMs + model.timings.networkPingEvery;
  const isIdle = state.waiting.length === 0 && !holdsOpen(turn);
  return isIdle ? closesMs(turn) : Number.POSITIVE_INFINITY;
}

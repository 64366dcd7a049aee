/**
 * The GPS receiver: when it is on, and how long it takes to get a fix (protocol.md §2). No I/O: the functions change
 * only the context of the step (the lock's state and effects) that they are given. The *host* is the program that runs
 * `step`.
 */
import { NEVER } from './reading.js';
import type { StepContext, StepState } from './state.js';

/** Updates the receiver: it finds its fix or loses it. While it has no fix, the tick's measurement is ignored. */
export function settleReceiver(context: StepContext): void {
  const { state, nowMs } = context;
  if (state.gps === 'searching' && state.skyOpen && nowMs >= fixAtMs(state)) state.gps = 'fixed';
  // The host has no measurement although the sky counts as open: the sky must be closed.
  if (state.gps === 'fixed' && context.isTick && context.fix === null) changeSky(context, false);
  if (state.gps !== 'fixed') context.fix = null;
}

/** The sky over the lock opens or closes. When it closes, the receiver loses its fix and starts a new search. */
export function changeSky(context: StepContext, open: boolean): void {
  const { state, nowMs } = context;
  if (state.skyOpen === open) return;
  state.skyOpen = open;
  state.skySinceMs = nowMs;
  if (open || state.gps !== 'fixed') return;
  state.lastFixMs = nowMs;
  // If GPS tracks a ride or a theft, it searches until this time. The start of tracking sets the same limit.
  state.trackGpsUntilMs = searchEndsMs(context);
  startSearch(context);
}

/** Switches the receiver on or off. */
export function switchReceiver(context: StepContext, wanted: boolean): void {
  const { state, nowMs } = context;
  if (wanted === (state.gps !== 'off')) return;
  if (wanted) {
    startSearch(context);
    context.effects.push(GPS_ON);
  } else {
    if (state.gps === 'fixed') state.lastFixMs = nowMs;
    state.gps = 'off';
    context.effects.push(GPS_OFF);
  }
}

const GPS_ON = Object.freeze({ type: 'gps-on' });
const GPS_OFF = Object.freeze({ type: 'gps-off' });

function startSearch(context: StepContext): void {
  const { state, nowMs } = context;
  const { warmFixWithin, warmFixTakes, coldFixTakes } = context.model.timings;
  state.gps = 'searching';
  state.gpsSinceMs = nowMs;
  const isWarm = state.lastFixMs !== NEVER && nowMs - state.lastFixMs < warmFixWithin;
  state.fixTakesMs = isWarm ? warmFixTakes : coldFixTakes;
}

/** When the current search will find its fix, if the sky stays open. */
export function fixAtMs(state: StepState): number {
  return Math.max(state.gpsSinceMs, state.skySinceMs) + state.fixTakesMs;
}

/** When a search that starts now is given up. */
export function searchEndsMs(context: StepContext): number {
  return context.nowMs + context.model.timings.fixSearchEnds;
}

/** The GPS receiver: when it is on, and how long it takes to a fix (protocol.md §2). */
import { NEVER } from './reading.js';
import type { StepState, Turn } from './state.js';

/** Takes what GPS can do at this moment: a fix found, or one lost. What it reads is used only while it has a fix. */
export function settleReceiver(turn: Turn): void {
  const { state, nowMs } = turn;
  if (state.gps === 'searching' && state.skyOpen && nowMs >= fixAtMs(state)) state.gps = 'fixed';
  // A host that reads nothing under an open sky is taken at its word: the sky is closed.
  if (state.gps === 'fixed' && turn.ticked && turn.fix === null) changeSky(turn, false);
  if (state.gps !== 'fixed') turn.fix = null;
}

/** The sky over the lock opens or closes. Without it a fix is lost, and the search begins anew. */
export function changeSky(turn: Turn, open: boolean): void {
  const { state, nowMs } = turn;
  if (state.skyOpen === open) return;
  state.skyOpen = open;
  state.skySinceMs = nowMs;
  if (open || state.gps !== 'fixed') return;
  state.lastFixMs = nowMs;
  state.trackGpsUntilMs = searchEndsMs(turn);
  startSearch(turn);
}

/** Switches the receiver on for whoever wants a fix, and off when nobody does. */
export function switchReceiver(turn: Turn, wanted: boolean): void {
  const { state, nowMs } = turn;
  if (wanted === (state.gps !== 'off')) return;
  if (wanted) {
    startSearch(turn);
    turn.effects.push(GPS_ON);
  } else {
    if (state.gps === 'fixed') state.lastFixMs = nowMs;
    state.gps = 'off';
    turn.effects.push(GPS_OFF);
  }
}

const GPS_ON = Object.freeze({ type: 'gps-on' });
const GPS_OFF = Object.freeze({ type: 'gps-off' });

function startSearch(turn: Turn): void {
  const { state, nowMs } = turn;
  const { warmFixWithin, warmFixTakes, coldFixTakes } = turn.model.timings;
  state.gps = 'searching';
  state.gpsSinceMs = nowMs;
  const warm = state.lastFixMs !== NEVER && nowMs - state.lastFixMs < warmFixWithin;
  state.fixTakesMs = warm ? warmFixTakes : coldFixTakes;
}

/** When the search that runs will have its fix, if the sky stays open. */
export function fixAtMs(state: StepState): number {
  return Math.max(state.gpsSinceMs, state.skySinceMs) + state.fixTakesMs;
}

/** When a search that is asked for now ends without a fix. */
export function searchEndsMs(turn: Turn): number {
  return turn.nowMs + turn.model.timings.fixSearchEnds;
}

/**
 * The rules about REASON_NETWORK_PING and the connection that it belongs to (protocol.md §3): network-ping-missing,
 * network-ping-unkept, and cadence-too-fast between network pings.
 */
import { Days } from '../../clock.js';
import type { PowerModel } from '../model.js';
import type { Belief, Run, Span } from './belief.js';
import { keyOf } from './content.js';
import { finding, type UplinkEvent, type Verdict } from './event.js';
import { NEVER, rowOfState, stateRow, windowPhase } from './state.js';
import { describeSpan } from './words.js';

/** Judges a new uplink of the lock, after it was taken into the belief. */
export function judgeNetworkPings(model: PowerModel, belief: Belief, event: UplinkEvent, verdict: Verdict): void {
  const { body } = event.uplink;
  const isNetworkPing = body.kind !== 'ack' && body.reason === 'REASON_NETWORK_PING';
  if (isNetworkPing) judgeUnkept(model, belief, event, verdict);
  if (!belief.isConnected) return;
  const { runs } = belief;
  const run = runs[runs.length - 1];
  const top = run?.spans[run.spans.length - 1];
  // Only the newest uplink is in order with those before it; one that was overtaken still counts as made.
  if (run === undefined || top === undefined || !isNewestUplink(run, top, event)) {
    if (isNetworkPing) noteOvertakenPing(belief, event);
    return;
  }
  if (isNetworkPing) noteNetworkPing(model, belief, top, event, verdict);
  else judgeMissing(model, belief, top, event, verdict);
}

function isNewestUplink(run: Run, top: Span, { credential, uplink }: UplinkEvent): boolean {
  return run.credential === credential && run.boot === uplink.boot && top.high === uplink.sequence;
}

function judgeUnkept(model: PowerModel, belief: Belief, event: UplinkEvent, verdict: Verdict): void {
  const { power, body, timeMs } = event.uplink;
  if (body.kind === 'ack') return;
  const { state, connectionKept } = stateRow(model, power, body.batteryPercent);
  if (state === 'LOW_BATTERY' || state === 'AIRPLANE' || connectionKept === 'always') return;
  let message = `REASON_NETWORK_PING was sent in ${state}, which keeps no connection.`;
  if (connectionKept === 'in-window') {
    const over = model.bounds.networkPingOutsideOver;
    const { isInside, changesIn, closedFor } = windowPhase(belief.highWindow, timeMs);
    // Over 2 min after the window closed, and before it opens again.
    if (isInside || changesIn <= over || closedFor - changesIn <= over) return;
    message = `REASON_NETWORK_PING was sent in ${state} outside its window.`;
  }
  verdict.findings.push(finding('network-ping-unkept', belief.mac, keyOf(event), event.atMs, message));
}

function noteOvertakenPing({ networkPings: pings }: Belief, { uplink: { timeMs } }: UplinkEvent): void {
  if (!(timeMs > pings.lastMs)) return;
  pings.lastMs = timeMs;
  pings.tooSoon = 0;
  pings.isMissingReported = false;
}

function noteNetworkPing(model: PowerModel, belief: Belief, top: Span, event: UplinkEvent, verdict: Verdict): void {
  judgeMissing(model, belief, top, event, verdict);
  const { networkPings: pings } = belief;
  const { timeMs, kept, sequence, body } = event.uplink;
  if (body.kind === 'ack') return;
  const after = timeMs - pings.lastMs;
  const isSteady = pings.sequence >= top.low && pings.state === belief.state && pings.lockState === body.lockState;
  const isTooSoon = isSteady && kept === 0 && after >= 0 && after < model.bounds.networkPingUnder;
  pings.tooSoon = isTooSoon ? pings.tooSoon + 1 : 0;
  pings.lastMs = timeMs;
  pings.sequence = sequence;
  pings.state = belief.state;
  pings.lockState = body.lockState;
  pings.isMissingReported = false;
  if (pings.tooSoon !== 2) return;
  pings.tooSoon = 0;
  const message = `Three REASON_NETWORK_PING in a row were made, the last ${describeSpan(after)} after the one before.`;
  verdict.findings.push(finding('cadence-too-fast', belief.mac, keyOf(event), event.atMs, message));
}

/**
 * network-ping-missing: a later uplink shows that the connection was kept for over 17 min without one. What is missing
 * can't be among uplinks that are still to come, since all numbers since then are known.
 */
function judgeMissing(model: PowerModel, belief: Belief, top: Span, event: UplinkEvent, verdict: Verdict): void {
  const { networkPings: pings, connectedSinceMs, stateSinceMs } = belief;
  const { timeMs, power } = event.uplink;
  const { state } = top.stretch.context;
  // What came first on this connection was made first on it, too: a lock sends in order.
  const fromMs = top.low === belief.connectionFirst ? -NEVER : top.stretch.context.fromMs;
  if (pings.isMissingReported || state === null || timeMs - event.atMs > model.bounds.clockAheadOver) return;
  const { connectionKept } = rowOfState(model, state);
  if (connectionKept === 'never' || power.airplane) return;
  let sinceMs = Math.max(connectedSinceMs, pings.lastMs, fromMs, stateSinceMs);
  if (connectionKept === 'in-window') {
    const { isInside, changesIn, closedFor } = windowPhase(belief.highWindow, timeMs);
    if (!isInside) return;
    const openedFor = changesIn === NEVER ? timeMs : Days(1) - closedFor - changesIn;
    sinceMs = Math.max(sinceMs, timeMs - openedFor, belief.windowSinceMs);
  }
  const span = timeMs - sinceMs;
  if (span <= model.bounds.networkPingMissingOver) return;
  pings.isMissingReported = true;
  const kept = `Connected for ${describeSpan(span)} in ${state}, which keeps the connection`;
  const message = `${kept}, without a REASON_NETWORK_PING.`;
  verdict.findings.push(finding('network-ping-missing', belief.mac, keyOf(event), event.atMs, message));
}

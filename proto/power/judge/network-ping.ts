/**
 * The rules about REASON_NETWORK_PING, which a lock sends every 15 min while its state keeps the connection
 * (protocol.md §3): network-ping-missing, network-ping-unkept, and cadence-too-fast between network pings. No I/O:
 * changes only the given belief (what the judge knows of the lock) and verdict (its findings). A `Span` is a series of
 * received sequence numbers without a hole. `timeMs` is by the lock's clock, `atMs` by the judge's; −`NEVER` is earlier
 * than each time.
 */
import { Days, type Milliseconds } from '../../clock.js';
import type { HighWindow } from '../../wire/ping.js';
import type { PowerModel } from '../model.js';
import type { Belief, BootRecord, Span } from './belief.js';
import { keyOf } from './content.js';
import { finding, type UplinkEvent, type Verdict } from './event.js';
import { NEVER, rowOfState, stateRow, windowPhase } from './state.js';
import { describeSpan } from './words.js';

/** A finding is made when this many network pings in a row came too soon after the one before: three pings in all. */
const TOO_SOON_PINGS_FOR_FINDING = 2;

/** Judges a new uplink of the lock, after the belief has been updated from it. */
export function judgeNetworkPings(model: PowerModel, belief: Belief, event: UplinkEvent, verdict: Verdict): void {
  const { body } = event.uplink;
  const isNetworkPing = body.kind !== 'ack' && body.reason === 'REASON_NETWORK_PING';
  if (isNetworkPing) judgeUnkept(model, belief, event, verdict);
  if (!belief.isConnected) return;
  const { runs } = belief;
  const record = runs[runs.length - 1];
  const newestSpan = record?.spans[record.spans.length - 1];
  // Only the newest uplink can be compared with those before it. A network ping that another uplink overtook on the way
  // still counts as made.
  if (record === undefined || newestSpan === undefined || !isNewestUplink(record, newestSpan, event)) {
    if (isNetworkPing) noteOvertakenPing(belief, event);
    return;
  }
  if (isNetworkPing) noteNetworkPing(model, belief, newestSpan, event, verdict);
  else judgeMissing(model, belief, newestSpan, event, verdict);
}

function isNewestUplink(record: BootRecord, newestSpan: Span, { credential, uplink }: UplinkEvent): boolean {
  return record.credential === credential && record.boot === uplink.boot && newestSpan.high === uplink.sequence;
}

function judgeUnkept(model: PowerModel, belief: Belief, event: UplinkEvent, verdict: Verdict): void {
  const { power, body, timeMs } = event.uplink;
  if (body.kind === 'ack') return;
  const { state, connectionKept } = stateRow(model, power, body.batteryPercent);
  // In LOW_BATTERY and AIRPLANE, other rules report such a ping.
  if (state === 'LOW_BATTERY' || state === 'AIRPLANE' || connectionKept === 'always') return;
  let message = `REASON_NETWORK_PING was sent in ${state}, which keeps no connection.`;
  if (connectionKept === 'in-window') {
    const over = model.bounds.networkPingOutsideOver;
    // A window that was asked for may be in force, though its acknowledgement has not come.
    const { highWindow, askedWindows } = belief;
    if (isNearWindow(highWindow, timeMs, over) || askedWindows.some(({ window }) => isNearWindow(window, timeMs, over)))
      return;
    message = `REASON_NETWORK_PING was sent in ${state} outside its window.`;
  }
  verdict.findings.push(finding('network-ping-unkept', belief.mac, keyOf(event), event.atMs, message));
}

/** Whether the time is inside the window or at most `tolerance` outside it, on either side. */
function isNearWindow(window: HighWindow, timeMs: number, tolerance: Milliseconds): boolean {
  const { isInside, changesIn, closedFor } = windowPhase(window, timeMs);
  const hasBeenClosedFor = closedFor - changesIn;
  return isInside || changesIn <= tolerance || hasBeenClosedFor <= tolerance;
}

/** A network ping came after a newer uplink: it shows that the lock made a network ping then, but nothing more. */
function noteOvertakenPing({ networkPings }: Belief, { uplink: { timeMs } }: UplinkEvent): void {
  // Written so that NaN returns too.
  if (!(timeMs > networkPings.lastMs)) return;
  networkPings.lastMs = timeMs;
  networkPings.tooSoon = 0;
  networkPings.isMissingReported = false;
}

function noteNetworkPing(
  model: PowerModel,
  belief: Belief,
  newestSpan: Span,
  event: UplinkEvent,
  verdict: Verdict,
): void {
  judgeMissing(model, belief, newestSpan, event, verdict);
  const { networkPings } = belief;
  const { timeMs, kept, sequence, body } = event.uplink;
  if (body.kind === 'ack') return;
  const sinceLast = timeMs - networkPings.lastMs;
  // The network ping before was made in the same state, and no uplink since then is missing.
  const isSteady =
    networkPings.sequence >= newestSpan.low &&
    networkPings.state === belief.state &&
    networkPings.lockState === body.lockState;
  // If uplinks still wait in the lock (`kept`), or a state changed, the times of pings say nothing about the cadence.
  const isTooSoon = isSteady && kept === 0 && sinceLast >= 0 && sinceLast < model.bounds.networkPingUnder;
  networkPings.tooSoon = isTooSoon ? networkPings.tooSoon + 1 : 0;
  networkPings.lastMs = timeMs;
  networkPings.sequence = sequence;
  networkPings.state = belief.state;
  networkPings.lockState = body.lockState;
  networkPings.isMissingReported = false;
  if (networkPings.tooSoon !== TOO_SOON_PINGS_FOR_FINDING) return;
  networkPings.tooSoon = 0;
  const interval = describeSpan(sinceLast);
  const message = `Three REASON_NETWORK_PING in a row were made, the last ${interval} after the one before.`;
  verdict.findings.push(finding('cadence-too-fast', belief.mac, keyOf(event), event.atMs, message));
}

/**
 * network-ping-missing: an uplink shows that the connection was kept for over 17 min without a network ping. The
 * missing ping can't arrive later, since all sequence numbers since then have been received.
 */
function judgeMissing(model: PowerModel, belief: Belief, newestSpan: Span, event: UplinkEvent, verdict: Verdict): void {
  const { networkPings, connectedSinceMs, stateSinceMs } = belief;
  const { timeMs, power } = event.uplink;
  const { state } = newestSpan.stretch.context;
  // If the span starts with the connection's first uplink, no earlier uplink of this connection can be missing.
  const fromMs = newestSpan.low === belief.connectionFirst ? -NEVER : newestSpan.stretch.context.fromMs;
  // A clock that is ahead would make the connection seem longer than it is.
  if (networkPings.isMissingReported || state === null || timeMs - event.atMs > model.bounds.clockAheadOver) return;
  const { connectionKept } = rowOfState(model, state);
  if (connectionKept === 'never' || power.airplane) return;
  let sinceMs = Math.max(connectedSinceMs, networkPings.lastMs, fromMs, stateSinceMs);
  if (connectionKept === 'in-window') {
    const { isInside, changesIn, closedFor } = windowPhase(belief.highWindow, timeMs);
    if (!isInside) return;
    // A window that is open all day never changes: it has been open since the epoch.
    const openFor = changesIn === NEVER ? timeMs : Days(1) - closedFor - changesIn;
    sinceMs = Math.max(sinceMs, timeMs - openFor, belief.windowSinceMs);
  }
  const span = timeMs - sinceMs;
  if (span <= model.bounds.networkPingMissingOver) return;
  networkPings.isMissingReported = true;
  const connected = `Connected for ${describeSpan(span)} in ${state}, which keeps the connection`;
  const message = `${connected}, without a REASON_NETWORK_PING.`;
  verdict.findings.push(finding('network-ping-missing', belief.mac, keyOf(event), event.atMs, message));
}

/**
 * Infers when a lock had no coverage: a connection broke and the lock did not reconnect at once, or an uplink waited
 * for a connection. Coverage is assumed to return just before the lock's next connection. An uplink's `madeMs` is when
 * the lock made it, its `atMs` when it arrived. In the power state HIGH a lock stays connected during its high window,
 * a span of hours each day. Pure.
 */
import { Seconds } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow, nextWindowEdgeMs, windowContains } from '../../proto/power/step/reading.js';
import { type InferredEvent, TOLERANCE_MS } from './inferred-event.js';
import type { LockTrace, TracedConnection, TracedUplink } from './lock-trace.js';
import { wasBroken } from './switches.js';

/** A lock whose attempt fails retries after 10 s. If it connected in less time, no attempt failed. */
const MAX_IMMEDIATE_RECONNECT_MS = Seconds(10) - TOLERANCE_MS;

/**
 * Infers the losses and returns of coverage.
 *
 * @param events the events inferred so far: boots and modem restarts among them also break connections
 */
export function inferCoverage(trace: LockTrace, events: readonly InferredEvent[]): InferredEvent[] {
  // A restart that broke a connection, or that a connection began with, is inferred at that very millisecond.
  const restartTimes = new Set(events.filter(({ change }) => breaksConnection(change.type)).map(({ atMs }) => atMs));
  const inferred: InferredEvent[] = [];
  const addGap = (fromMs: number, reconnectMs: number): void => {
    inferred.push({ atMs: fromMs, change: { type: 'coverage', covered: false } });
    if (reconnectMs === Number.POSITIVE_INFINITY) return;
    // A lock that connects because of a restart must not get coverage before that restart.
    const backMs = restartTimes.has(reconnectMs) ? reconnectMs : reconnectMs - 1;
    inferred.push({ atMs: backMs, change: { type: 'coverage', covered: true } });
  };
  let connectedUntilMs = Number.NEGATIVE_INFINITY;
  const uplinks = trace.uplinks.toSorted((a, b) => a.madeMs - b.madeMs);
  let nextUplink = 0;
  for (const [index, connection] of trace.connections.entries()) {
    // Since when the lock waited for this connection: since its earliest uplink that was made after the last connection
    // and came over this one, or since the high window opened.
    let waitingSinceMs = Number.POSITIVE_INFINITY;
    for (; nextUplink < uplinks.length; nextUplink++) {
      const { madeMs, atMs } = uplinks[nextUplink] as TracedUplink;
      if (madeMs >= connection.connectedMs) break;
      if (madeMs > connectedUntilMs && atMs >= connection.connectedMs)
        waitingSinceMs = Math.min(waitingSinceMs, madeMs);
    }
    waitingSinceMs = Math.min(waitingSinceMs, windowOpenedMs(trace, connectedUntilMs, connection.connectedMs));
    // Coverage is lost 1 ms before the wait starts, since with coverage the lock would have connected at once.
    if (connection.connectedMs - waitingSinceMs > MAX_IMMEDIATE_RECONNECT_MS)
      addGap(waitingSinceMs - 1, connection.connectedMs);
    const nextConnectMs = trace.connections[index + 1]?.connectedMs ?? Number.POSITIVE_INFINITY;
    const brokeMs = wasBroken(connection) ? breakTimeMs(connection, uplinks) : null;
    // A restart broke the connection, and the lock reconnected at once: no loss of coverage is needed as a cause.
    const isExplained =
      brokeMs !== null && restartTimes.has(brokeMs) && nextConnectMs - brokeMs <= MAX_IMMEDIATE_RECONNECT_MS;
    if (brokeMs === null || isExplained || nextConnectMs <= brokeMs) connectedUntilMs = connection.endedMs;
    else {
      addGap(brokeMs, nextConnectMs);
      // Without coverage, the lock could not connect before this.
      connectedUntilMs = nextConnectMs;
    }
  }
  return inferred;
}

/**
 * When the high window opened between two times, so that a lock in HIGH should have connected; Infinity if it did not.
 */
function windowOpenedMs({ header, uplinks }: LockTrace, fromMs: number, untilMs: number): number {
  const last = uplinks.findLast(({ madeMs }) => madeMs <= fromMs)?.uplink;
  // An acknowledgement does not state the battery, so the lock's state is unknown.
  if (last === undefined || last.body.kind === 'ack') return Number.POSITIVE_INFINITY;
  const row = effectiveRow(POWER_MODEL, last.power, last.body.batteryPercent);
  const window = header?.highWindow ?? POWER_MODEL.highWindow;
  if (row.connectionKept !== 'in-window' || windowContains(window, fromMs)) return Number.POSITIVE_INFINITY;
  const opensMs = nextWindowEdgeMs(window, fromMs);
  return opensMs < untilMs ? opensMs : Number.POSITIVE_INFINITY;
}

function breaksConnection(type: string): boolean {
  return type === 'boot' || type === 'modem-reset';
}

/**
 * When the lock lost the connection. The gateway may have considered the connection open for longer; the lock's next
 * uplink then arrived over a later connection.
 */
function breakTimeMs({ cause, endedMs, lastActivityMs }: TracedConnection, uplinks: readonly TracedUplink[]): number {
  // The gateway noticed at once: the network broke the connection, or the gateway closed it.
  if (cause === 'dropped' || cause === 'gateway') return endedMs;
  const delayed = uplinks.find(({ madeMs, atMs }) => madeMs > lastActivityMs && madeMs < endedMs && atMs >= endedMs);
  return delayed === undefined ? lastActivityMs + 1 : delayed.madeMs - 1;
}

/**
 * Infers when a lock had no coverage: a connection broke and the lock did not reconnect at once, or an uplink waited
 * for a connection. Coverage is assumed to return just before the lock's next connection. Pure.
 */
import { Seconds } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow, nextWindowEdgeMs, windowContains } from '../../proto/power/step/reading.js';
import { type InferredEvent, TOLERANCE_MS } from './inferred-event.js';
import type { LockTrace, TracedConnection, TracedUplink } from './lock-trace.js';
import { wasBroken } from './switches.js';

/** A lock whose attempt fails retries after 10 s. If it connected in less time, no attempt failed. */
const MAX_IMMEDIATE_RECONNECT_MS = Seconds(10) - TOLERANCE_MS;

/** Infers holes in coverage. @param events already inferred: boots and modem restarts, which break connections too */
export function inferCoverage(trace: LockTrace, events: readonly InferredEvent[]): InferredEvent[] {
  const breaks = new Set(events.filter(({ change }) => breaksConnection(change.type)).map(({ atMs }) => atMs));
  const holes: InferredEvent[] = [];
  const addHole = (fromMs: number, connectsMs: number): void => {
    holes.push({ atMs: fromMs, change: { type: 'coverage', covered: false } });
    if (connectsMs === Number.POSITIVE_INFINITY) return;
    // A lock that connects because of a restart must not get coverage before that restart.
    const backMs = breaks.has(connectsMs) ? connectsMs : connectsMs - 1;
    holes.push({ atMs: backMs, change: { type: 'coverage', covered: true } });
  };
  let connectedUntilMs = Number.NEGATIVE_INFINITY;
  const uplinks = trace.uplinks.toSorted((one, other) => one.madeMs - other.madeMs);
  let next = 0;
  for (const [index, connection] of trace.connections.entries()) {
    // When the earliest uplink was made that the lock made after the last connection and sent on this one.
    let waitingSinceMs = Number.POSITIVE_INFINITY;
    for (; next < uplinks.length && (uplinks[next] as TracedUplink).madeMs < connection.connectedMs; next++) {
      const { madeMs, atMs } = uplinks[next] as TracedUplink;
      if (madeMs > connectedUntilMs && atMs >= connection.connectedMs)
        waitingSinceMs = Math.min(waitingSinceMs, madeMs);
    }
    waitingSinceMs = Math.min(waitingSinceMs, windowOpenedMs(trace, connectedUntilMs, connection.connectedMs));
    if (connection.connectedMs - waitingSinceMs > MAX_IMMEDIATE_RECONNECT_MS)
      addHole(waitingSinceMs - 1, connection.connectedMs);
    const after = trace.connections[index + 1]?.connectedMs ?? Number.POSITIVE_INFINITY;
    const brokeMs = wasBroken(connection) ? breakTimeMs(connection, uplinks) : null;
    const isExplained = brokeMs !== null && breaks.has(brokeMs) && after - brokeMs <= MAX_IMMEDIATE_RECONNECT_MS;
    if (brokeMs === null || isExplained || after <= brokeMs) connectedUntilMs = connection.endedMs;
    else {
      addHole(brokeMs, after);
      // The hole explains everything up to the next connection.
      connectedUntilMs = after;
    }
  }
  return holes;
}

/** When a high window opened between two times, so that the lock should have connected; Infinity if none did. */
function windowOpenedMs({ header, uplinks }: LockTrace, fromMs: number, untilMs: number): number {
  const last = uplinks.findLast(({ madeMs }) => madeMs <= fromMs)?.uplink;
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
  if (cause === 'dropped' || cause === 'gateway') return endedMs;
  const lost = uplinks.find(({ madeMs, atMs }) => madeMs > lastActivityMs && madeMs < endedMs && atMs >= endedMs);
  return lost === undefined ? lastActivityMs + 1 : lost.madeMs - 1;
}

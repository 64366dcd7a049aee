/**
 * Infers where a lock had no coverage: a connection broke and was not made again at once, or an uplink was made without
 * a connection and waited. Coverage comes back just before the lock's next connection.
 */
import { Seconds } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow, nextWindowEdgeMs, windowContains } from '../../proto/power/step/reading.js';
import { type InferredEvent, TOLERANCE } from './inferred-event.js';
import type { LockTrace, TracedConnection, TracedUplink } from './lock-trace.js';
import { wasBroken } from './switches.js';

/** A lock that can't connect retries after 10 s: in less than that, no attempt failed. */
const AT_ONCE = Seconds(10) - TOLERANCE;

/** Holes in coverage. @param events what else is known: a boot or a restart of the modem breaks a connection, too */
export function inferCoverage(trace: LockTrace, events: readonly InferredEvent[]): InferredEvent[] {
  const breaks = new Set(events.filter(({ change }) => isBreak(change.type)).map(({ atMs }) => atMs));
  const holes: InferredEvent[] = [];
  const hole = (fromMs: number, connectsMs: number): void => {
    holes.push({ atMs: fromMs, change: { type: 'coverage', covered: false } });
    if (connectsMs === Number.POSITIVE_INFINITY) return;
    // A lock that connects because it restarted would otherwise do so a moment earlier.
    const backMs = breaks.has(connectsMs) ? connectsMs : connectsMs - 1;
    holes.push({ atMs: backMs, change: { type: 'coverage', covered: true } });
  };
  let connectedUntilMs = Number.NEGATIVE_INFINITY;
  const uplinks = trace.uplinks.toSorted((one, other) => one.madeMs - other.madeMs);
  let next = 0;
  for (const [index, connection] of trace.connections.entries()) {
    // The earliest uplink that was made after the last connection ended and waited for this one.
    let waitedMs = Number.POSITIVE_INFINITY;
    for (; next < uplinks.length && (uplinks[next] as TracedUplink).madeMs < connection.connectedMs; next++) {
      const { madeMs, atMs } = uplinks[next] as TracedUplink;
      if (madeMs > connectedUntilMs && atMs >= connection.connectedMs) waitedMs = Math.min(waitedMs, madeMs);
    }
    waitedMs = Math.min(waitedMs, windowOpenedMs(trace, connectedUntilMs, connection.connectedMs));
    if (connection.connectedMs - waitedMs > AT_ONCE) hole(waitedMs - 1, connection.connectedMs);
    const after = trace.connections[index + 1]?.connectedMs ?? Number.POSITIVE_INFINITY;
    const brokeMs = wasBroken(connection) ? brokenMs(connection, uplinks) : null;
    const isExplained = brokeMs !== null && breaks.has(brokeMs) && after - brokeMs <= AT_ONCE;
    if (brokeMs === null || isExplained || after <= brokeMs) connectedUntilMs = connection.endedMs;
    else {
      hole(brokeMs, after);
      // Everything until then is explained.
      connectedUntilMs = after;
    }
  }
  return holes;
}

/** When a high window opened in between, so that the lock should have connected; Infinity where none did. */
function windowOpenedMs({ header, uplinks }: LockTrace, fromMs: number, untilMs: number): number {
  const last = uplinks.findLast(({ madeMs }) => madeMs <= fromMs)?.uplink;
  if (last === undefined || last.body.kind === 'ack') return Number.POSITIVE_INFINITY;
  const row = effectiveRow(POWER_MODEL, last.power, last.body.batteryPercent);
  const window = header?.highWindow ?? POWER_MODEL.highWindow;
  if (row.connectionKept !== 'in-window' || windowContains(window, fromMs)) return Number.POSITIVE_INFINITY;
  const opensMs = nextWindowEdgeMs(window, fromMs);
  return opensMs < untilMs ? opensMs : Number.POSITIVE_INFINITY;
}

function isBreak(type: string): boolean {
  return type === 'boot' || type === 'modem-reset';
}

/**
 * When the lock lost the connection. The other side may have believed in it for longer: then the next uplink did not
 * arrive over it.
 */
function brokenMs({ cause, endedMs, lastMs }: TracedConnection, uplinks: readonly TracedUplink[]): number {
  if (cause === 'dropped' || cause === 'gateway') return endedMs;
  const lost = uplinks.find(({ madeMs, atMs }) => madeMs > lastMs && madeMs < endedMs && atMs >= endedMs);
  return lost === undefined ? lastMs + 1 : lost.madeMs - 1;
}

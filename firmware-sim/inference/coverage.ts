/**
 * Where the network did not reach a lock: a connection broke and was not made again at once, or an uplink was made
 * without one and waited. Coverage comes back just before the lock's next connection, whose moment is the lock's own.
 */
import { Seconds } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow, nextWindowEdgeMs, windowContains } from '../../proto/power/step/reading.js';
import { type InferredEvent, TOLERANCE } from './inferred-event.js';
import { wasBroken } from './switches.js';
import type { Heard, HeardLink, LockRecord } from './trace-records.js';

/** A lock that can't connect waits 10 s for its next try: what took less was no try that failed. */
const AT_ONCE = Seconds(10) - TOLERANCE;

/** Holes in coverage. @param clues what else is known: a boot or a restart of the modem breaks a connection, too */
export function inferCoverage(record: LockRecord, clues: readonly InferredEvent[]): InferredEvent[] {
  const breaks = new Set(clues.filter(({ change }) => isBreak(change.type)).map(({ atMs }) => atMs));
  const holes: InferredEvent[] = [];
  const hole = (fromMs: number, connectsMs: number): void => {
    holes.push({ atMs: fromMs, change: { type: 'coverage', covered: false } });
    if (connectsMs === Number.POSITIVE_INFINITY) return;
    // Who connects because it restarted would otherwise do so a moment before.
    const backMs = breaks.has(connectsMs) ? connectsMs : connectsMs - 1;
    holes.push({ atMs: backMs, change: { type: 'coverage', covered: true } });
  };
  let connectedUntilMs = Number.NEGATIVE_INFINITY;
  const uplinks = record.uplinks.toSorted((one, other) => one.madeMs - other.madeMs);
  let next = 0;
  for (const [index, link] of record.links.entries()) {
    // What was made since the last connection ended, and waited for this one.
    let waitedMs = Number.POSITIVE_INFINITY;
    for (; next < uplinks.length && (uplinks[next] as Heard).madeMs < link.connectedMs; next++) {
      const { madeMs, atMs } = uplinks[next] as Heard;
      if (madeMs > connectedUntilMs && atMs >= link.connectedMs) waitedMs = Math.min(waitedMs, madeMs);
    }
    waitedMs = Math.min(waitedMs, windowOpenedMs(record, connectedUntilMs, link.connectedMs));
    if (link.connectedMs - waitedMs > AT_ONCE) hole(waitedMs - 1, link.connectedMs);
    const after = record.links[index + 1]?.connectedMs ?? Number.POSITIVE_INFINITY;
    const brokeMs = wasBroken(link) ? brokenMs(link, uplinks) : null;
    const isExplained = brokeMs !== null && breaks.has(brokeMs) && after - brokeMs <= AT_ONCE;
    if (brokeMs === null || isExplained || after <= brokeMs) connectedUntilMs = link.endedMs;
    else {
      hole(brokeMs, after);
      // Till then all is said.
      connectedUntilMs = after;
    }
  }
  return holes;
}

/** When a high window opened in between, and the lock should have connected; never (Infinity) where none did. */
function windowOpenedMs({ named, uplinks }: LockRecord, fromMs: number, untilMs: number): number {
  const last = uplinks.findLast(({ madeMs }) => madeMs <= fromMs)?.uplink;
  if (last === undefined || last.body.kind === 'ack') return Number.POSITIVE_INFINITY;
  const row = effectiveRow(POWER_MODEL, last.power, last.body.batteryPercent);
  const window = named?.highWindow ?? POWER_MODEL.highWindow;
  if (row.connectionKept !== 'in-window' || windowContains(window, fromMs)) return Number.POSITIVE_INFINITY;
  const opensMs = nextWindowEdgeMs(window, fromMs);
  return opensMs < untilMs ? opensMs : Number.POSITIVE_INFINITY;
}

function isBreak(type: string): boolean {
  return type === 'boot' || type === 'modem-reset';
}

/**
 * When the lock lost the connection. The other side may have believed in it for longer: then what the lock made next
 * did not come over it.
 */
function brokenMs({ cause, endedMs, lastMs }: HeardLink, uplinks: readonly Heard[]): number {
  if (cause === 'dropped' || cause === 'gateway') return endedMs;
  const lost = uplinks.find(({ madeMs, atMs }) => madeMs > lastMs && madeMs < endedMs && atMs >= endedMs);
  return lost === undefined ? lastMs + 1 : lost.madeMs - 1;
}

/**
 * The lock's own connection, and the rules about it (protocol.md §3): outside-connection, after-close, not-closed,
 * close-missing, and clock-behind at a close-connection ping. A phone's connections must not be passed here. No I/O:
 * changes only the given belief (what the judge knows of the lock) and verdict (its findings).
 *
 * `belief.closeSeen` says which connection a close-connection ping closes: `own` for the one over which it came,
 * `first` for the one before (it came first, or was made earlier), `none` without such a ping.
 */
import type { PowerModel } from '../model.js';
import { type Belief, newNetworkPings } from './belief.js';
import { keyOf } from './content.js';
import { type DisconnectCause, finding, type UplinkEvent, type Verdict } from './event.js';
import { lowBatteryLimitPercent } from './state.js';
import { describeSpan, describeTime } from './words.js';

/** The lock connected. If it was still connected, the old connection ends as takeover (protocol.md §4). */
export function connect(belief: Belief, atMs: number, verdict: Verdict): void {
  if (belief.isConnected) disconnect(belief, 'takeover', atMs, verdict);
  belief.isConnected = true;
  belief.firstConnectionMs ??= atMs;
  belief.connectedSinceMs = atMs;
  belief.activityMs = atMs;
  belief.hasUplinks = false;
  belief.closeSeen = 'none';
  belief.connections += 1;
  belief.isConnectionWhole = true;
  belief.hasClosePing = false;
  // No uplink has come over it.
  belief.connectionFirst = -1;
  belief.connectionLast = -1;
  belief.connectionHighest = -1;
  belief.connectionHighestBoot = -1;
  belief.networkPings = newNetworkPings();
  belief.isUnexplainedReported = false;
  belief.isWindowReported = false;
  belief.isRecoveryReported = false;
}

/** How a connection ended that the lock did not close, as a part of a sentence. */
const LOST_HOW = { dropped: 'broke', keepalive: 'timed out', takeover: 'was replaced by a new one' } as const;

/** The connection ended. */
export function disconnect(belief: Belief, cause: DisconnectCause, atMs: number, verdict: Verdict): void {
  if (!belief.isConnected) return;
  belief.isConnected = false;
  belief.offlineSinceMs = atMs;
  // If neither holds, the close-connection ping may have come before the first event that the judge received.
  const isSeen = belief.isConnectionWhole || belief.hasUplinks;
  belief.isConnectionWhole = false;
  if (cause === 'closed' && isSeen && !belief.hasClosePing) {
    const start = describeTime(belief.connectedSinceMs);
    const message = `The lock ended the connection that began at ${start} without a close-connection ping.`;
    verdict.findings.push(finding('close-missing', belief.mac, null, atMs, message));
  }
  const isLost = cause === 'dropped' || cause === 'keepalive' || cause === 'takeover';
  if (!isLost || belief.closeSeen !== 'none') return;
  const start = describeTime(belief.connectedSinceMs);
  const message = `The connection that began at ${start} ${LOST_HOW[cause]} without a close-connection ping.`;
  verdict.findings.push(finding('not-closed', belief.mac, null, atMs, message));
}

/** Judges an uplink by the connection over which it was received. */
export function judgeReceipt(model: PowerModel, belief: Belief, event: UplinkEvent, verdict: Verdict): void {
  if (!belief.isConnected) {
    const message = 'The uplink was received while the lock was not connected.';
    verdict.findings.push(finding('outside-connection', belief.mac, keyOf(event), event.atMs, message));
    return;
  }
  if (belief.closeSeen === 'own') {
    const message = 'The uplink came after the close-connection ping of its connection.';
    verdict.findings.push(finding('after-close', belief.mac, keyOf(event), event.atMs, message));
  }
  judgeClockAtClose(model, belief, event, verdict);
  noteReceipt(belief, event);
}

/**
 * clock-behind at a close-connection ping. If the ping has the next number after another uplink of its connection and
 * nothing else waits, the lock made it on this connection, so its time can't be before the connection started.
 */
function judgeClockAtClose(model: PowerModel, belief: Belief, event: UplinkEvent, verdict: Verdict): void {
  const { body, kept, sequence, timeMs, power } = event.uplink;
  if (body.kind !== 'close_connection' || kept !== 0 || belief.connectionLast !== sequence - 1) return;
  const behind = belief.connectedSinceMs - timeMs;
  // In AIRPLANE and LOW_BATTERY a lock may connect only to send this ping, which is then older than the connection.
  if (behind <= model.bounds.clockBehindOver || power.airplane || body.batteryPercent < lowBatteryLimitPercent(model))
    return;
  const message =
    `The lock’s time ${describeTime(timeMs)} is ${describeSpan(behind)} before its connection began, at ` +
    `${describeTime(belief.connectedSinceMs)}.`;
  verdict.findings.push(finding('clock-behind', belief.mac, keyOf(event), event.atMs, message));
}

/**
 * Notes that an uplink, new or repeated, came over the connection.
 *
 * If a close-connection ping was made before the connection and another uplink follows, it belongs to the connection
 * before. If nothing follows, it closes this connection: the lock connected only to announce its silence.
 */
export function noteReceipt(belief: Belief, event: UplinkEvent): void {
  if (!belief.isConnected) return;
  const { boot, sequence, body } = event.uplink;
  belief.activityMs = event.atMs;
  if (body.kind === 'close_connection') {
    belief.hasClosePing = true;
    if (belief.closeSeen !== 'own') belief.closeSeen = wasMadeBefore(belief, event) ? 'first' : 'own';
  } else if (belief.closeSeen === 'first') belief.closeSeen = 'none';
  if (!belief.hasUplinks) belief.connectionFirst = sequence;
  // Numbers of different boots can't be compared, so the connection has no first one any more.
  else if (boot !== belief.connectionHighestBoot) belief.connectionFirst = -1;
  belief.connectionLast = sequence;
  if (compareWithHighest(belief, boot, sequence) > 0) {
    belief.connectionHighest = sequence;
    belief.connectionHighestBoot = boot;
  }
  belief.hasUplinks = true;
}

/**
 * Whether a close-connection ping may have been made before the connection over which it came: if it is the first
 * uplink or that one again, if an uplink with a higher number overtook it (a theft's, a reset's), or if its time is
 * before the connect. The time doesn't count if the uplink before it came over this connection and nothing waited in
 * the lock: then the ping is certainly new, and the lock's clock is wrong.
 */
function wasMadeBefore(belief: Belief, { uplink }: UplinkEvent): boolean {
  const { boot, sequence, timeMs, kept } = uplink;
  if (!belief.hasUplinks) return true;
  const order = compareWithHighest(belief, boot, sequence);
  if (order < 0 || (order === 0 && belief.closeSeen === 'first')) return true;
  const isSurelyNew = kept === 0 && belief.connectionLast === sequence - 1;
  return timeMs < belief.connectedSinceMs && !isSurelyNew;
}

/** Below 0 if the uplink was made before the highest one of the connection, 0 if it has the same number. */
function compareWithHighest(belief: Belief, boot: number, sequence: number): number {
  return boot === belief.connectionHighestBoot
    ? sequence - belief.connectionHighest
    : boot - belief.connectionHighestBoot;
}

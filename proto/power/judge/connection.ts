/**
 * The lock's own connection, and the rules that rest on it (protocol.md §3): outside-connection, after-close,
 * not-closed. A phone's connections are none of the lock's.
 */
import type { Belief } from './belief.js';
import { keyOf } from './content.js';
import { type DisconnectCause, finding, type UplinkEvent, type Verdict } from './event.js';
import { describeTime } from './words.js';

/** The lock connected. Where it was connected, that connection ends as takeover (protocol.md §4). */
export function connect(belief: Belief, atMs: number, out: Verdict): void {
  if (belief.isConnected) disconnect(belief, 'takeover', atMs, out);
  belief.isConnected = true;
  belief.firstConnectionMs ??= atMs;
  belief.connectedSinceMs = atMs;
  belief.activityMs = atMs;
  belief.hasUplinks = false;
  belief.closeSeen = 'none';
  belief.isUnexplainedReported = false;
  belief.isWindowReported = false;
  belief.isRecoveryReported = false;
}

/** The connection ended. */
export function disconnect(belief: Belief, cause: DisconnectCause, atMs: number, out: Verdict): void {
  if (!belief.isConnected) return;
  belief.isConnected = false;
  belief.offlineSinceMs = atMs;
  const isLocksDoing = cause === 'dropped' || cause === 'keepalive' || cause === 'takeover';
  if (!isLocksDoing || belief.closeSeen !== 'none') return;
  const since = describeTime(belief.connectedSinceMs);
  const message = `The connection since ${since} ended as ${cause} without a close-connection ping.`;
  out.findings.push(finding('not-closed', belief.mac, null, atMs, message));
}

/** Judges what an uplink's receipt says of the connection. */
export function judgeReceipt(belief: Belief, event: UplinkEvent, out: Verdict): void {
  if (!belief.isConnected) {
    const message = 'The uplink was received while the lock was not connected.';
    out.findings.push(finding('outside-connection', belief.mac, keyOf(event), event.atMs, message));
    return;
  }
  if (belief.closeSeen === 'own') {
    const message = 'The uplink came after the close-connection ping of its connection.';
    out.findings.push(finding('after-close', belief.mac, keyOf(event), event.atMs, message));
  }
  noteReceipt(belief, event);
}

/**
 * Something came over the connection, be it for the second time.
 *
 * A close-connection ping that is its connection's first uplink belongs to the connection before, but that shows only
 * when something follows it: a lock that connects just to say that it falls silent has closed this connection with it.
 */
export function noteReceipt(belief: Belief, event: UplinkEvent): void {
  if (!belief.isConnected) return;
  belief.activityMs = event.atMs;
  if (event.uplink.body.kind === 'close_connection') {
    if (belief.closeSeen !== 'own') belief.closeSeen = belief.hasUplinks ? 'own' : 'first';
  } else if (belief.closeSeen === 'first') belief.closeSeen = 'none';
  belief.hasUplinks = true;
}

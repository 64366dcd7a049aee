/**
 * Commands that switch airplane mode on (protocol.md §3). While one of them may have silenced the lock, lateness is
 * suspended: period-overdue, window-offline and recovery-offline are not found, and the time does not count towards
 * period-overdue. That ends when the lock answers, when an uplink with airplane off comes on a later connection, and
 * when the command expires. One that expired unanswered may still be why the lock is silent, and findings say so.
 */
import { type AirplaneSwitch, BELIEF_LIMITS, type Belief, overdueFromMs } from './belief.js';
import { NEVER } from './state.js';
import { describeTime } from './words.js';

/** A set-power with airplane on was sent, maybe not for the first time. */
export function sendSwitch(belief: Belief, id: number, atMs: number, expiresMs: number = NEVER): void {
  const { airplaneSwitches } = belief;
  const known = airplaneSwitches.find((each) => each.id === id);
  if (known !== undefined && known.outcome !== 'open' && known.outcome !== 'refuted') return;
  if (known === undefined) {
    airplaneSwitches.push({ id, sentMs: atMs, expiresMs, hasReconnected: false, outcome: 'open' });
    if (airplaneSwitches.length > BELIEF_LIMITS.airplaneSwitches) airplaneSwitches.shift();
  } else {
    // Sent again, over the connection that there is now: what came before it on this connection refutes nothing.
    known.sentMs = atMs;
    known.hasReconnected = false;
    known.outcome = 'open';
  }
  belief.suspendedSinceMs ??= atMs;
}

/** The lock connected: what comes from now on comes on a later connection than the one with the command. */
export function noteReconnected(belief: Belief): void {
  for (const each of belief.airplaneSwitches) each.hasReconnected = true;
}

/** The lock answered a command. Returns whether that ends the suspension. */
export function acknowledgeSwitch(belief: Belief, commandId: number, atMs: number): boolean {
  const known = belief.airplaneSwitches.find((each) => each.id === commandId);
  if (known === undefined) return false;
  known.outcome = 'acknowledged';
  return resumeIfNoneOpen(belief, atMs);
}

/** An uplink with airplane off came. Returns whether that ends the suspension. */
export function refuteSwitches(belief: Belief, atMs: number): boolean {
  for (const each of belief.airplaneSwitches) {
    if (each.hasReconnected && each.outcome !== 'acknowledged') each.outcome = 'refuted';
  }
  return resumeIfNoneOpen(belief, atMs);
}

/** Time has come to `atMs`: what has expired by then suspends nothing any longer, from the moment of its expiry on. */
export function expireSwitches(belief: Belief, atMs: number): void {
  if (belief.suspendedSinceMs === null || atMs < nextExpiryMs(belief)) return;
  let lastMs = belief.suspendedSinceMs;
  for (const each of belief.airplaneSwitches) {
    if (each.outcome !== 'open' || each.expiresMs > atMs) continue;
    each.outcome = 'expired';
    lastMs = Math.max(lastMs, each.expiresMs);
  }
  resumeIfNoneOpen(belief, lastMs);
}

/** When the first of the open commands expires; {@link NEVER} where none does. */
export function nextExpiryMs(belief: Belief): number {
  if (belief.suspendedSinceMs === null) return NEVER;
  let nextMs = NEVER;
  for (const each of belief.airplaneSwitches) {
    if (each.outcome === 'open') nextMs = Math.min(nextMs, each.expiresMs);
  }
  return nextMs;
}

/** A sentence that names the last command that expired unanswered, after a space; empty where there is none. */
export function possibleCause(belief: Belief): string {
  const expired = belief.airplaneSwitches.findLast(isExpired);
  if (expired === undefined) return '';
  const { id, sentMs, expiresMs } = expired;
  return (
    ` A possible cause: command ${id} to switch airplane mode on was sent at ${describeTime(sentMs)} and expired ` +
    `unanswered at ${describeTime(expiresMs)}.`
  );
}

function isExpired({ outcome }: AirplaneSwitch): boolean {
  return outcome === 'expired';
}

/** The time of the suspension does not count towards period-overdue. Returns whether it has ended. */
function resumeIfNoneOpen(belief: Belief, atMs: number): boolean {
  if (belief.suspendedSinceMs === null || belief.airplaneSwitches.some(({ outcome }) => outcome === 'open'))
    return false;
  const fromMs = overdueFromMs(belief);
  if (belief.overdueCreditFromMs !== fromMs) {
    belief.overdueCreditFromMs = fromMs;
    belief.overdueCreditMs = 0;
  }
  belief.overdueCreditMs += Math.max(0, atMs - Math.max(belief.suspendedSinceMs, fromMs));
  belief.suspendedSinceMs = null;
  return true;
}

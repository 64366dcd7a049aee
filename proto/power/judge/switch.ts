/**
 * Commands that switch airplane mode on (protocol.md §3). Such a command is *open* until the lock answers it, an uplink
 * with airplane off comes on a later connection, or the command expires. While one is open, the lock may be silent
 * because of it, so lateness is suspended: the judge does not find period-overdue, window-offline or recovery-offline,
 * and the time does not count towards period-overdue. A command that expired unanswered may still be why the lock is
 * silent, so findings mention it. No I/O: changes only the given belief (what the judge knows of the lock).
 */
import { type AirplaneSwitch, BELIEF_LIMITS, type Belief, overdueCountStartMs } from './belief.js';
import { NEVER } from './state.js';
import { describeTime } from './words.js';

/** A command that switches airplane mode on was sent, perhaps again. */
export function noteSwitchSent(belief: Belief, id: number, atMs: number, expiresMs: number = NEVER): void {
  const { airplaneSwitches } = belief;
  const known = airplaneSwitches.find((each) => each.id === id);
  // A command that was answered or has expired changes nothing when it is sent again.
  if (known !== undefined && known.outcome !== 'open' && known.outcome !== 'refuted') return;
  if (known === undefined) {
    airplaneSwitches.push({ id, sentMs: atMs, expiresMs, hasReconnected: false, outcome: 'open' });
    if (airplaneSwitches.length > BELIEF_LIMITS.airplaneSwitches) airplaneSwitches.shift();
  } else {
    // Sent again, over the current connection: only an uplink on a later connection refutes it.
    known.sentMs = atMs;
    known.hasReconnected = false;
    known.outcome = 'open';
  }
  belief.suspendedSinceMs ??= atMs;
}

/** A command was not sent after all. */
export function forgetSwitch(belief: Belief, id: number, atMs: number): void {
  const index = belief.airplaneSwitches.findIndex((each) => each.id === id);
  if (index === -1) return;
  belief.airplaneSwitches.splice(index, 1);
  resumeIfNoneOpen(belief, atMs);
}

/** The lock connected: uplinks from now on come on a later connection than the commands sent so far. */
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

/** Marks the commands that have expired by `atMs`. If none is open then, the suspension ended at the last expiry. */
export function expireSwitches(belief: Belief, atMs: number): void {
  if (belief.suspendedSinceMs === null || atMs < nextExpiryMs(belief)) return;
  let lastExpiryMs = belief.suspendedSinceMs;
  for (const each of belief.airplaneSwitches) {
    if (each.outcome !== 'open' || each.expiresMs > atMs) continue;
    each.outcome = 'expired';
    lastExpiryMs = Math.max(lastExpiryMs, each.expiresMs);
  }
  resumeIfNoneOpen(belief, lastExpiryMs);
}

/** When the first open command expires, ms since the epoch; {@link NEVER} if none does. */
export function nextExpiryMs(belief: Belief): number {
  if (belief.suspendedSinceMs === null) return NEVER;
  let nextMs = NEVER;
  for (const each of belief.airplaneSwitches) {
    if (each.outcome === 'open') nextMs = Math.min(nextMs, each.expiresMs);
  }
  return nextMs;
}

/** A space and a sentence that names the last command that expired unanswered; empty if there is none. */
export function possibleCauseText(belief: Belief): string {
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

/**
 * Ends the suspension if no command is open any longer, and credits its duration, which does not count towards
 * period-overdue. Returns whether the suspension ended.
 */
function resumeIfNoneOpen(belief: Belief, atMs: number): boolean {
  if (belief.suspendedSinceMs === null || belief.airplaneSwitches.some(({ outcome }) => outcome === 'open'))
    return false;
  const fromMs = overdueCountStartMs(belief);
  // A credit is for one count. When another has started, such as after a daily ping, its credit starts at 0.
  if (belief.overdueCreditFromMs !== fromMs) {
    belief.overdueCreditFromMs = fromMs;
    belief.overdueCreditMs = 0;
  }
  belief.overdueCreditMs += Math.max(0, atMs - Math.max(belief.suspendedSinceMs, fromMs));
  belief.suspendedSinceMs = null;
  return true;
}

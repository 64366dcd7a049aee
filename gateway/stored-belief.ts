/**
 * Beliefs that an older version of lockgate stored, brought to the shape of this one. A stored state outlives the
 * version that wrote it, and rebuilding it from the log would lose what retention has taken from there.
 */
import { Hours } from '../proto/clock.js';
import { isObject } from '../proto/json-reader.js';
import type { AirplaneSwitch } from '../proto/power-judge-belief.js';

/** How long a set-power lives that an older version sent, which did not note when it expires (protocol.md §1). */
export const UNNOTED_SET_POWER_LIFE = Hours(24);

/** Brings the belief of a stored state up to date, in place. What is damaged is left for the check of its shape. */
export function upgradeBelief(belief: unknown): void {
  if (isObject(belief)) upgradeSwitches(belief);
}

/** Before, a switch had nothing but its id and whether it was acknowledged. */
function upgradeSwitches(belief: Record<string, unknown>): void {
  const { airplaneSwitches, suspendedSinceMs, nowMs } = belief;
  if (!Array.isArray(airplaneSwitches) || !airplaneSwitches.some(isOldSwitch)) return;
  const sentMs = Number(suspendedSinceMs ?? nowMs);
  belief.airplaneSwitches = airplaneSwitches.map((each: unknown) => {
    if (!isOldSwitch(each)) return each;
    const upgraded: AirplaneSwitch = {
      id: each.id,
      sentMs,
      expiresMs: sentMs + UNNOTED_SET_POWER_LIFE,
      hasReconnected: false,
      outcome: each.isAcknowledged ? 'acknowledged' : 'open',
    };
    return upgraded;
  });
  // A command may expire before what the older version waited for.
  belief.dueMs = nowMs;
}

function isOldSwitch(value: unknown): value is { readonly id: number; readonly isAcknowledged: boolean } {
  return isObject(value) && typeof value.id === 'number' && typeof value.isAcknowledged === 'boolean';
}

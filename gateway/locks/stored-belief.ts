/**
 * Beliefs that an older version of lockgate stored, brought to the shape of this one. A stored state outlives the
 * version that wrote it, and rebuilding it from the log would lose what retention has taken from there.
 */
import { Hours } from '../../proto/clock.js';
import { isObject } from '../../proto/json-reader.js';
import { type AirplaneSwitch, newRun, type Run } from '../../proto/power/judge/belief.js';
import { NEVER } from '../../proto/power/judge/state.js';
import { FIRST_LIFE, PLAUSIBLE_FROM_MS } from '../../proto/wire/uplink-life.js';

/** How long a set-power lives that an older version sent, which did not note when it expires (protocol.md §1). */
export const UNNOTED_SET_POWER_LIFE = Hours(24);

/** Brings a stored state up to date, in place. What is damaged is left for the check of its shape. */
export function upgradeState(state: unknown): void {
  if (!isObject(state) || !isObject(state.belief)) return;
  upgradeSwitches(state.belief);
  if (Array.isArray(state.belief.runs) && !isOfLives(state.belief)) upgradeNames(state, state.belief);
}

function isOfLives({ powerFrom }: Record<string, unknown>): boolean {
  return isObject(powerFrom) && 'life' in powerFrom;
}

const NAMES = ['powerFrom', 'batteryFrom', 'lockStateFrom', 'positionFrom', 'windowFrom', 'lastPeriodFrom', 'first'];

/** Before, names had no life, and boots no times. The latest ping says when one of them was in use. */
function upgradeNames(state: Record<string, unknown>, belief: Record<string, unknown>): void {
  for (const name of NAMES) belief[name] = nameOfLife(belief[name]);
  if (Array.isArray(belief.periods)) belief.periods = belief.periods.map(nameOfLife);
  belief.runs = (belief.runs as unknown[]).map((run) => {
    if (!isObject(run)) return run;
    return Object.assign(newRun(Number(run.credential), FIRST_LIFE, Number(run.boot)), run);
  });
  if (isObject(state.usedTo)) state.usedTo = nameOfLife(state.usedTo);
  if (!isObject(state.ping)) return;
  const { credential, boot, sequence, timeMs } = state.ping;
  state.ping = nameOfLife(state.ping);
  const run = (belief.runs as unknown[]).find(
    (each) => isObject(each) && each.credential === credential && each.boot === boot,
  );
  if (run !== undefined && typeof timeMs === 'number' && timeMs >= PLAUSIBLE_FROM_MS)
    Object.assign(run as Run, { earliestMs: timeMs, latestMs: timeMs, latestSequence: sequence });
}

function nameOfLife(name: unknown): unknown {
  if (!isObject(name) || typeof name.boot !== 'number') return name;
  const { credential, boot, ...rest } = name;
  return { credential, life: boot < 0 ? 0 : boot === NEVER ? NEVER : FIRST_LIFE, boot, ...rest };
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

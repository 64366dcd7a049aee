/**
 * Upgrades beliefs that an older version of lockgate stored. A belief is what the judge (proto/power/judge) has
 * concluded about a lock. Old beliefs can't be rebuilt from the log of uplinks instead, since retention may have
 * deleted a part of the log. Reads no store.
 */
import { Hours } from '../../proto/clock.js';
import { isObject } from '../../proto/json-reader.js';
import { type AirplaneSwitch, type BootRecord, newBelief, newBootRecord } from '../../proto/power/judge/belief.js';
import { newStretch, type Stretch } from '../../proto/power/judge/in-order/stretch-state.js';
import { NEVER } from '../../proto/power/judge/state.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { FIRST_LIFE, PLAUSIBLE_FROM_MS } from '../../proto/wire/uplink-life.js';

/** The lifetime of a set-power command from a version that did not record when it expires (protocol.md §1). */
export const DEFAULT_SET_POWER_LIFETIME = Hours(24);

/** Upgrades a stored state in place. Damaged members stay: the caller checks the state's shape afterwards. */
export function upgradeState(state: unknown): void {
  if (!isObject(state) || !isObject(state.belief)) return;
  upgradeSwitches(state.belief);
  upgradeOrder(state.belief);
  upgradeConnection(state.belief);
  upgradeAskedWindows(state.belief);
  if (Array.isArray(state.belief.runs) && !hasLives(state.belief)) upgradeKeys(state, state.belief);
}

function hasLives({ powerFrom }: Record<string, unknown>): boolean {
  return isObject(powerFrom) && 'life' in powerFrom;
}

/** The members of a belief that are keys of uplinks: credential, life, boot, sequence. */
const KEY_MEMBERS = [
  'powerFrom',
  'batteryFrom',
  'lockStateFrom',
  'positionFrom',
  'windowFrom',
  'lastPeriodFrom',
  'first',
];

/**
 * Adds lives to keys, and times to the runs (what the judge knows of each boot). A life is the time between two wipes
 * of the lock's flash. The latest ping gives the times of its own boot.
 */
function upgradeKeys(state: Record<string, unknown>, belief: Record<string, unknown>): void {
  for (const name of KEY_MEMBERS) belief[name] = withLife(belief[name]);
  if (Array.isArray(belief.periods)) belief.periods = belief.periods.map(withLife);
  belief.runs = (belief.runs as unknown[]).map((run) => {
    if (!isObject(run)) return run;
    return Object.assign(newBootRecord(Number(run.credential), FIRST_LIFE, Number(run.boot)), run);
  });
  // The key up to which keys may have been used before the lock was erased or moved.
  if (isObject(state.usedTo)) state.usedTo = withLife(state.usedTo);
  if (!isObject(state.ping)) return;
  const { credential, boot, sequence, timeMs } = state.ping;
  state.ping = withLife(state.ping);
  const run = (belief.runs as unknown[]).find(
    (each) => isObject(each) && each.credential === credential && each.boot === boot,
  );
  if (run !== undefined && typeof timeMs === 'number' && timeMs >= PLAUSIBLE_FROM_MS)
    Object.assign(run as BootRecord, { earliestMs: timeMs, latestMs: timeMs, latestSequence: sequence });
}

/** The key with a life: the first, or the bound before or after all lives if the key is before or after all boots. */
function withLife(key: unknown): unknown {
  if (!isObject(key) || typeof key.boot !== 'number') return key;
  const { credential, boot, ...others } = key;
  return { credential, life: boot < 0 ? 0 : boot === NEVER ? NEVER : FIRST_LIFE, boot, ...others };
}

/**
 * Adds the members for commands, for the uplinks of a connection and for the order of uplinks, which older beliefs
 * lack. They describe only what happens from now on; what came before is unknown, and breaks no rule.
 */
function upgradeOrder(belief: Record<string, unknown>): void {
  // A belief with network pings has the other members too.
  if (belief.networkPings !== undefined || typeof belief.nowMs !== 'number') return;
  const fresh = newBelief(POWER_MODEL, '', 0);
  const { commands, commandsAboveId, networkPings, connections, isConnectionWhole, hasClosePing } = fresh;
  const { connectionFirst, connectionLast, windowSinceMs, droppedAtPing, isStateDoubtful } = fresh;
  Object.assign(belief, {
    commands,
    commandsSinceMs: belief.nowMs,
    commandsAboveId,
    networkPings,
    connections,
    isConnectionWhole,
    hasClosePing,
    connectionFirst,
    connectionLast,
    windowSinceMs,
    droppedAtPing,
    isStateDoubtful,
  });
  if (!Array.isArray(belief.runs)) return;
  for (const run of belief.runs) {
    if (!isObject(run)) continue;
    // `standing`: findings that a later uplink may withdraw.
    Object.assign(run, { standing: [] });
    if (!Array.isArray(run.spans)) continue;
    for (const span of run.spans) if (isObject(span)) Object.assign(span, { stretch: unknownStretch() });
  }
}

/**
 * Adds the highest boot and sequence that came over the connection, which beliefs of some versions lack. They are −1,
 * "none yet", so only uplinks from now on count.
 */
function upgradeConnection(belief: Record<string, unknown>): void {
  if (belief.connectionHighest !== undefined || belief.connectionLast === undefined) return;
  Object.assign(belief, { connectionHighest: -1, connectionHighestBoot: -1 });
}

/** Adds the list of the windows in high power that commands ask for, which older beliefs lack. */
function upgradeAskedWindows(belief: Record<string, unknown>): void {
  if (belief.windowFrom !== undefined) belief.askedWindows ??= [];
}

/**
 * A stretch (consecutive uplinks of a boot) of which the judge knows nothing. The number of its first uplink is
 * unknown: with infinity, {@link newStretch} takes the stretch for one that does not begin a boot.
 */
function unknownStretch(): Stretch {
  return { ...newStretch(Number.POSITIVE_INFINITY), isHeadOpen: false };
}

/** Upgrades airplane switches (commands to or from airplane mode). An older one has only `id` and `isAcknowledged`. */
function upgradeSwitches(belief: Record<string, unknown>): void {
  const { airplaneSwitches, suspendedSinceMs, nowMs } = belief;
  if (!Array.isArray(airplaneSwitches) || !airplaneSwitches.some(isOldSwitch)) return;
  // The older version did not note when the command was sent. From then on it suspended the rules about silence, so the
  // start of a suspension is nearest to that time.
  const sentMs = Number(suspendedSinceMs ?? nowMs);
  belief.airplaneSwitches = airplaneSwitches.map((each: unknown) => {
    if (!isOldSwitch(each)) return each;
    const upgraded: AirplaneSwitch = {
      id: each.id,
      sentMs,
      expiresMs: sentMs + DEFAULT_SET_POWER_LIFETIME,
      hasReconnected: false,
      outcome: each.isAcknowledged ? 'acknowledged' : 'open',
    };
    return upgraded;
  });
  // A command may expire before the due time that the older version set.
  belief.dueMs = nowMs;
}

function isOldSwitch(value: unknown): value is { readonly id: number; readonly isAcknowledged: boolean } {
  return isObject(value) && typeof value.id === 'number' && typeof value.isAcknowledged === 'boolean';
}

/**
 * The state of a lock: the judge's belief, which is what the judge (proto/power/judge) has concluded from the lock's
 * uplinks and other events, and the lock's latest ping for lists. It is stored as JSON. Pure, except that functions
 * update the states that they get.
 *
 * Uplinks count in the order of protocol.md §1 (age of the credential, life, boot, sequence), not in the order of
 * arrival: a late uplink adds missing information but overwrites nothing newer. A life is the time between two wipes of
 * the lock's flash; after each wipe, boots count from 1 again.
 */
import { ok, problem, type Result } from '../../proto/errors.js';
import {
  type Belief,
  isAfterKey,
  isSameKey,
  type MutableKey,
  newBelief,
  newBootRecord,
  setKey,
} from '../../proto/power/judge/belief.js';
import type { UplinkKey } from '../../proto/power/judge/event.js';
import { newSentCommand } from '../../proto/power/judge/sent-command.js';
import { NEVER } from '../../proto/power/judge/state.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import type { Ping, PingUplink, Source, Uplink } from '../../proto/wire/ping.js';
import { isPingUplink } from '../../proto/wire/ping.js';
import { FIRST_LIFE } from '../../proto/wire/uplink-life.js';
import type { JudgingStop } from '../ingest/judging.js';
import type { ReportedTroubles } from './reported-troubles.js';
import { upgradeState } from './stored-belief.js';

/** The latest ping of a lock. Updated in place, since it changes with every ping. */
export interface LatestPing extends MutableKey {
  /** By the lock's clock, ms since the epoch. */
  timeMs: number;
  reason: Ping['reason'];
  kind: Ping['kind'];
}

/** The firmware that a lock's newest cellular ping reported. Updated in place. */
export interface ReportedFirmware extends MutableKey {
  version: string;
}

/** The state of a lock. The stored JSON has the same members. */
export interface DeviceState {
  readonly belief: Belief;
  ping: LatestPing | null;
  /** Absent until the lock's first cellular ping, and in states that older versions stored. */
  firmware?: ReportedFirmware;
  /** Why the lock is not judged; the belief is then the one before the failure. Absent if the lock is judged. */
  unjudged?: JudgingStop | undefined;
  /** The troubles for which its merchant got an event that is still true. Absent if there are none. */
  reported?: ReportedTroubles | undefined;
  /**
   * When the lock's last uplink was received, by the run's clock (wall-clock time, except in a sped-up simulation);
   * null if none was.
   */
  receivedAtMs: number | null;
  /**
   * Uplink keys up to this one may have been used before the state was erased or the lock moved to another merchant.
   * The belief does not cover them, so they are looked up in the log. Absent if the lock was never erased or moved.
   */
  readonly usedTo?: MutableKey;
}

/** The state of a new lock. @param listeningSinceMs since when the gateway listens for the lock */
export function newDeviceState(mac: Mac, atMs: number, listeningSinceMs: number): DeviceState {
  const belief = newBelief(POWER_MODEL, formatMac(mac), atMs, { listeningSinceMs, commands: [] });
  return { belief, ping: null, receivedAtMs: null };
}

/** The state of a lock after a move or an erasure: a new state, except for `usedTo`. */
export function resetState(before: DeviceState, mac: Mac, nowMs: number): DeviceState {
  // The key of the lock's newest uplink: every uplink reports the power settings.
  const { powerFrom } = before.belief;
  const { usedTo } = before;
  const { credential, life, boot, sequence } = powerFrom;
  const isNewer = usedTo === undefined || isAfterKey(usedTo, credential, life, boot, sequence);
  const state = newDeviceState(mac, nowMs, nowMs);
  // The lock may still acknowledge commands from before, which the new belief does not know. The judge takes unknown
  // commands with higher ids than `commandsAboveId` for ones that were never sent; no id is higher than NEVER.
  Object.assign(state.belief, { commandsSinceMs: nowMs, commandsAboveId: NEVER });
  return { ...state, usedTo: isNewer ? { ...powerFrom } : usedTo };
}

/**
 * A state that was made by judging the lock's log again, with two members of the state before it, which the log can't
 * restore: `reported` and `usedTo`.
 */
export function withUnlogged(state: DeviceState, { reported, usedTo }: DeviceState): DeviceState {
  return { ...state, ...(reported !== undefined && { reported }), ...(usedTo !== undefined && { usedTo }) };
}

/**
 * Whether a key was certainly never used, because it comes after all other keys of the lock. True for most uplinks,
 * which then need no lookup. False for a phone's uplinks, since a phone's keys have their own order, and for those of a
 * lock whose flash was wiped: the log finds an uplink by credential, boot and sequence, which an earlier life may have
 * used too.
 */
export function isNewest(state: DeviceState, source: Source, key: UplinkKey): boolean {
  const { credential, life = FIRST_LIFE, boot, sequence } = key;
  if (source === 'phone' || life > FIRST_LIFE || !isAfterKey(state.belief.powerFrom, credential, life, boot, sequence))
    return false;
  return state.usedTo === undefined || isAfterKey(state.usedTo, credential, life, boot, sequence);
}

/** Parses a stored state. @throws Error if it is damaged */
export function parseDeviceState(json: string): DeviceState {
  const state = JSON.parse(json) as DeviceState;
  upgradeState(state);
  return state;
}

/** Parses a stored state that may be damaged, and checks its shape: the judge must not get an incomplete belief. */
export function readDeviceState(json: string): Result<DeviceState> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    return problem('bad-state', `the stored state is not JSON: ${(error as Error).message}`);
  }
  upgradeState(value);
  const difference = shapeDifference(SHAPE, value, 'state');
  return difference === undefined
    ? ok(value as DeviceState)
    : problem('bad-state', `in the stored state, ${difference}`);
}

const KEY = { credential: 0, life: 0, boot: 0, sequence: 0 };
/**
 * A sample state with every member that is always there, to compare the shape of stored states with. Its values
 * represent their types; null represents any value.
 */
const SHAPE = {
  belief: {
    ...newBelief(POWER_MODEL, '', 0),
    periods: [{ ...KEY, timeMs: 0, isReported: false }],
    airplaneSwitches: [{ id: 0, sentMs: 0, expiresMs: 0, hasReconnected: false, outcome: '' }],
    commands: [newSentCommand(0, { type: 'unlock' }, 0)],
    runs: [
      {
        ...newBootRecord(0, 0, 0),
        spans: [{ low: 0, high: 0, stretch: { context: { fromMs: 0 }, head: [], isHeadOpen: false } }],
      },
    ],
  },
  ping: null,
  receivedAtMs: null,
};

/** Where `value` differs from `shape`, in a few words; undefined if it matches. Extra members are allowed. */
function shapeDifference(shape: unknown, value: unknown, path: string): string | undefined {
  if (value === undefined) return `${path} is missing`;
  if (shape === null) return undefined;
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return `${path} is not a list`;
    // An empty sample says nothing about the items.
    if (shape.length === 0) return undefined;
    for (const [index, item] of value.entries()) {
      const difference = shapeDifference(shape[0], item, `${path}[${index}]`);
      if (difference !== undefined) return difference;
    }
    return undefined;
  }
  if (typeof value !== typeof shape || value === null) return `${path} is not of type ${typeof shape}`;
  if (typeof shape !== 'object') return undefined;
  for (const [name, member] of Object.entries(shape as object)) {
    const difference = shapeDifference(member, (value as Record<string, unknown>)[name], `${path}.${name}`);
    if (difference !== undefined) return difference;
  }
  return undefined;
}

/**
 * Notes the receipt of an uplink, and its ping if it is the latest in the order of protocol.md §1.
 *
 * @param credential the id of the credential that sent it: a newer credential has a greater id
 */
export function noteUplink(
  state: DeviceState,
  credential: number,
  uplink: Uplink,
  receivedAtMs: number,
  life: number = FIRST_LIFE,
): void {
  state.receivedAtMs = receivedAtMs;
  if (!isPingUplink(uplink)) return;
  const { boot, sequence, timeMs, body } = uplink;
  const { reason, kind } = body;
  if (kind === 'cellular') noteFirmware(state, credential, life, uplink, body.firmwareVersion);
  const latest = state.ping;
  if (latest === null) state.ping = { credential, life, boot, sequence, timeMs, reason, kind };
  else if (isAfterKey(latest, credential, life, boot, sequence) || isGreater(credential, life, uplink, latest)) {
    setKey(latest, credential, life, boot, sequence);
    latest.timeMs = timeMs;
    latest.reason = reason;
    latest.kind = kind;
  }
}

/** Keeps the firmware of the newest cellular ping; of two with one key, the greater version. */
function noteFirmware(
  state: DeviceState,
  credential: number,
  life: number,
  { boot, sequence }: PingUplink,
  version: string,
): void {
  const known = state.firmware;
  if (known === undefined) {
    state.firmware = { credential, life, boot, sequence, version };
    return;
  }
  const isSame = isSameKey(known, credential, life, boot, sequence);
  if (isSame ? version <= known.version : !isAfterKey(known, credential, life, boot, sequence)) return;
  setKey(known, credential, life, boot, sequence);
  known.version = version;
}

/**
 * Whether the uplink has the same key as the latest ping and replaces it. The greater of two conflicting pings counts:
 * an arbitrary rule, but independent of the order of arrival (protocol.md §3, "Late data").
 */
function isGreater(credential: number, life: number, uplink: PingUplink, latest: LatestPing): boolean {
  const { boot, sequence, timeMs, body } = uplink;
  if (!isSameKey(latest, credential, life, boot, sequence)) return false;
  if (timeMs !== latest.timeMs) return timeMs > latest.timeMs;
  return `${body.kind} ${body.reason}` > `${latest.kind} ${latest.reason}`;
}

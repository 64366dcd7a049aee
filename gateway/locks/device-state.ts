/**
 * The state of a lock: the judge's belief, and its latest ping for lists. It is stored as JSON.
 *
 * It follows the order of protocol.md §1 (age of the credential, boot, sequence), never the order of arrival: a late
 * uplink adds what was missing and overwrites nothing newer.
 */
import { ok, problem, type Result } from '../../proto/errors.js';
import {
  type Belief,
  isAfterKey,
  isSameKey,
  type MutableKey,
  newBelief,
  newRun,
  setKey,
} from '../../proto/power/judge/belief.js';
import type { UplinkKey } from '../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import type { Ping, PingUplink, Source, Uplink } from '../../proto/wire/ping.js';
import { isPingUplink } from '../../proto/wire/ping.js';
import { FIRST_LIFE } from '../../proto/wire/uplink-life.js';
import type { Unjudged } from '../ingest/judging.js';
import { upgradeState } from './stored-belief.js';

/** The latest ping of a lock. It is updated in place, since it changes with every ping. */
export interface LatestPing extends MutableKey {
  /** By the lock's clock, ms since the epoch. */
  timeMs: number;
  reason: Ping['reason'];
  kind: Ping['kind'];
}

/** The state of a lock. Its members are those of the stored JSON. */
export interface DeviceState {
  readonly belief: Belief;
  ping: LatestPing | null;
  /** Why the lock is not judged; the belief is then as of before. Absent where it is judged. */
  unjudged?: Unjudged | undefined;
  /** When the lock's last uplink was received, by the run's clock; null where none was. */
  receivedAtMs: number | null;
  /**
   * Uplink keys up to this one may have been used before the state was erased or the lock moved. They are looked up in
   * the log, since the belief does not cover them. Absent where that never happened.
   */
  readonly usedTo?: MutableKey;
}

/** The state of a new lock. `listeningSinceMs`: since when the gateway listens for it. */
export function newDeviceState(mac: Mac, atMs: number, listeningSinceMs: number): DeviceState {
  const belief = newBelief(POWER_MODEL, formatMac(mac), atMs, { listeningSinceMs });
  return { belief, ping: null, receivedAtMs: null };
}

/** The state of a lock after a move or an erasure: new, except that used uplink keys stay known. */
export function forgottenState(known: DeviceState, mac: Mac, nowMs: number): DeviceState {
  const { powerFrom } = known.belief;
  const { usedTo } = known;
  const { credential, life, boot, sequence } = powerFrom;
  const isNewer = usedTo === undefined || isAfterKey(usedTo, credential, life, boot, sequence);
  return { ...newDeviceState(mac, nowMs, nowMs), usedTo: isNewer ? { ...powerFrom } : usedTo };
}

/**
 * Whether a key was certainly never used, because it comes after all others of the lock. That is so for most uplinks,
 * which then need no lookup. A phone's uplinks are always looked up, since its keys are ordered independently of the
 * lock's; so are those of a reflashed lock, whose key may have been used in an earlier life.
 */
export function isNewest(state: DeviceState, source: Source, key: UplinkKey): boolean {
  const { credential, life = FIRST_LIFE, boot, sequence } = key;
  if (source === 'phone' || life > FIRST_LIFE || !isAfterKey(state.belief.powerFrom, credential, life, boot, sequence))
    return false;
  return state.usedTo === undefined || isAfterKey(state.usedTo, credential, life, boot, sequence);
}

/** Parses a stored state. @throws Error where it is damaged */
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
    return problem('bad-state', `the stored state is no JSON: ${(error as Error).message}`);
  }
  upgradeState(value);
  const misfit = misfitOf(SHAPE, value, 'state');
  return misfit === undefined ? ok(value as DeviceState) : problem('bad-state', `in the stored state, ${misfit}`);
}

const KEY = { credential: 0, life: 0, boot: 0, sequence: 0 };
/** A sample state with one of everything. Its values stand for their types; null stands for anything, or nothing. */
const SHAPE = {
  belief: {
    ...newBelief(POWER_MODEL, '', 0),
    periods: [{ ...KEY, timeMs: 0, isReported: false }],
    airplaneSwitches: [{ id: 0, sentMs: 0, expiresMs: 0, hasReconnected: false, outcome: '' }],
    runs: [{ ...newRun(0, 0, 0), spans: [{ low: 0, high: 0 }] }],
  },
  ping: null,
  receivedAtMs: null,
};

/** Where `value` differs from `shape`, in a few words; undefined where it fits. Extra members are allowed. */
function misfitOf(shape: unknown, value: unknown, at: string): string | undefined {
  if (value === undefined) return `${at} is missing`;
  if (shape === null) return undefined;
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return `${at} is no list`;
    for (const [index, item] of value.entries()) {
      const misfit = misfitOf(shape[0], item, `${at}[${index}]`);
      if (misfit !== undefined) return misfit;
    }
    return undefined;
  }
  if (typeof value !== typeof shape || value === null) return `${at} is no ${typeof shape}`;
  if (typeof shape !== 'object') return undefined;
  for (const [name, part] of Object.entries(shape as object)) {
    const misfit = misfitOf(part, (value as Record<string, unknown>)[name], `${at}.${name}`);
    if (misfit !== undefined) return misfit;
  }
  return undefined;
}

/** Notes a received uplink: its ping too, where it is the latest in the order of protocol.md §1. */
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
  const known = state.ping;
  if (known === null) state.ping = { credential, life, boot, sequence, timeMs, reason, kind };
  else if (isAfterKey(known, credential, life, boot, sequence) || isGreater(credential, life, uplink, known)) {
    setKey(known, credential, life, boot, sequence);
    known.timeMs = timeMs;
    known.reason = reason;
    known.kind = kind;
  }
}

/**
 * Of two conflicting pings with the same key the greater one counts. That is arbitrary, but independent of the order of
 * arrival (protocol.md §3, "Late data").
 */
function isGreater(credential: number, life: number, uplink: PingUplink, known: LatestPing): boolean {
  const { boot, sequence, timeMs, body } = uplink;
  if (!isSameKey(known, credential, life, boot, sequence)) return false;
  if (timeMs !== known.timeMs) return timeMs > known.timeMs;
  return `${body.kind} ${body.reason}` > `${known.kind} ${known.reason}`;
}

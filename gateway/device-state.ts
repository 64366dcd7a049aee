/**
 * What is known of a lock: what `judge` believes of it, and its latest ping for lists. It is kept across restarts as
 * JSON beside the log, in the same commit as the uplink or event that it rests on.
 *
 * It follows the order of protocol.md §1 (age of the credential, boot, sequence), never that of arrival: a late uplink
 * adds what was missing and overwrites nothing newer.
 */

import { ok, problem, type Result } from '../proto/errors.js';
import { isObject } from '../proto/json-reader.js';
import { formatMac, type Mac } from '../proto/mac.js';
import type { Ping, PingUplink, Source, Uplink } from '../proto/ping.js';
import { isPingUplink } from '../proto/ping.js';
import { type Belief, isAfter, isSame, type Newest, newBelief, setName } from '../proto/power-judge-belief.js';
import type { UplinkName } from '../proto/power-judge-event.js';
import { POWER_MODEL } from '../proto/power-model.js';
import type { Unjudged } from './judging/judging.js';
import { upgradeBelief } from './stored-belief.js';

/** It is written in place: there is one for every ping. */
export interface LatestPing extends Newest {
  /** By the lock's clock, ms since the epoch. */
  timeMs: number;
  reason: Ping['reason'];
  kind: Ping['kind'];
}

export interface DeviceState {
  readonly belief: Belief;
  ping: LatestPing | null;
  /** Why the lock is not judged: what is believed of it is as of before. Absent where it is judged. */
  unjudged?: Unjudged | undefined;
  /** When the lock's last uplink came, by the run's clock; null where none did. */
  receivedAtMs: number | null;
  /**
   * Names up to this one may have been used before what was known of the lock was forgotten. They are looked up in the
   * log, as the belief no longer knows of them. Absent where nothing was forgotten.
   */
  readonly usedTo?: UplinkName;
}

/** The state of a lock that was never heard of. `listeningSinceMs`: since when the gateway listens for it. */
export function newDeviceState(mac: Mac, atMs: number, listeningSinceMs: number): DeviceState {
  const belief = newBelief(POWER_MODEL, formatMac(mac), atMs, { listeningSinceMs });
  return { belief, ping: null, receivedAtMs: null };
}

/** The state of a lock of which nothing is to be known any more, but that names were used. */
export function forgottenState(known: DeviceState, mac: Mac, nowMs: number): DeviceState {
  const { powerFrom } = known.belief;
  const { usedTo } = known;
  const isNewer = usedTo === undefined || isAfter(usedTo, powerFrom.credential, powerFrom.boot, powerFrom.sequence);
  return { ...newDeviceState(mac, nowMs, nowMs), usedTo: isNewer ? { ...powerFrom } : usedTo };
}

/**
 * Whether a name was certainly never used, because it comes after all others of the lock. Most uplinks do, and need no
 * look into the log. A phone counts for itself, whatever its credential's age beside the lock's: it is looked up.
 */
export function isNewest(state: DeviceState, source: Source, { credential, boot, sequence }: UplinkName): boolean {
  if (source === 'phone' || !isAfter(state.belief.powerFrom, credential, boot, sequence)) return false;
  return state.usedTo === undefined || isAfter(state.usedTo, credential, boot, sequence);
}

/** Reads what {@link DeviceState} was stored as. @throws Error where it was damaged since */
export function parseDeviceState(json: string): DeviceState {
  const state = JSON.parse(json) as DeviceState;
  upgradeBelief(state.belief);
  return state;
}

/** The same for a row of which nobody knows yet whether it is whole: a judge must not meet a belief with a hole. */
export function readDeviceState(json: string): Result<DeviceState> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    return problem('bad-state', `the stored state is no JSON: ${(error as Error).message}`);
  }
  if (isObject(value)) upgradeBelief(value.belief);
  const misfit = misfitOf(SHAPE, value, 'state');
  return misfit === undefined ? ok(value as DeviceState) : problem('bad-state', `in the stored state, ${misfit}`);
}

const NAME = { credential: 0, boot: 0, sequence: 0 };
/** A state that has one of everything. Its values stand for their types; null for whatever there may be, or not. */
const SHAPE = {
  belief: {
    ...newBelief(POWER_MODEL, '', 0),
    periods: [{ ...NAME, timeMs: 0, isReported: false }],
    airplaneSwitches: [{ id: 0, sentMs: 0, expiresMs: 0, hasReconnected: false, outcome: '' }],
    runs: [{ credential: 0, boot: 0, spans: [{ low: 0, high: 0 }], dropped: 0, lost: 0, reported: 0 }],
  },
  ping: null,
  receivedAtMs: null,
};

/** What in `value` is not as in `shape`, in a few words; undefined where all is. More than the shape has is fine. */
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

/** Notes that an uplink came: the ping, where it is the latest in the order of protocol.md §1. */
export function noteUplink(state: DeviceState, credential: number, uplink: Uplink, receivedAtMs: number): void {
  state.receivedAtMs = receivedAtMs;
  if (!isPingUplink(uplink)) return;
  const { boot, sequence, timeMs, body } = uplink;
  const { reason, kind } = body;
  const known = state.ping;
  if (known === null) state.ping = { credential, boot, sequence, timeMs, reason, kind };
  else if (isAfter(known, credential, boot, sequence) || isGreater(credential, uplink, known)) {
    setName(known, credential, boot, sequence);
    known.timeMs = timeMs;
    known.reason = reason;
    known.kind = kind;
  }
}

/**
 * Of two pings of one name that contradict each other the greater counts: that is arbitrary, but it is the same in
 * whatever order they come (protocol.md §3, "Late data").
 */
function isGreater(credential: number, { boot, sequence, timeMs, body }: PingUplink, known: LatestPing): boolean {
  if (!isSame(known, credential, boot, sequence)) return false;
  if (timeMs !== known.timeMs) return timeMs > known.timeMs;
  return `${body.kind} ${body.reason}` > `${known.kind} ${known.reason}`;
}

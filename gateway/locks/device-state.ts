/**
 * What is known of a lock: what `judge` believes of it, and its latest ping for lists. It is kept across restarts as
 * JSON beside the log, in the same commit as the uplink or event that it rests on.
 *
 * It follows the order of protocol.md §1 (age of the credential, boot, sequence), never that of arrival: a late uplink
 * adds what was missing and overwrites nothing newer.
 */

import { ok, problem, type Result } from '../../proto/errors.js';
import {
  type Belief,
  isAfter,
  isSame,
  type Newest,
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
  readonly usedTo?: Newest;
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
  const { credential, life, boot, sequence } = powerFrom;
  const isNewer = usedTo === undefined || isAfter(usedTo, credential, life, boot, sequence);
  return { ...newDeviceState(mac, nowMs, nowMs), usedTo: isNewer ? { ...powerFrom } : usedTo };
}

/**
 * Whether a name was certainly never used, because it comes after all others of the lock. Most uplinks do, and need no
 * look into the log. A phone counts for itself, whatever its credential's age beside the lock's: it is looked up. So is
 * a lock that was reflashed: what comes after all others in order may have its name from an earlier life.
 */
export function isNewest(state: DeviceState, source: Source, name: UplinkKey): boolean {
  const { credential, life = FIRST_LIFE, boot, sequence } = name;
  if (source === 'phone' || life > FIRST_LIFE || !isAfter(state.belief.powerFrom, credential, life, boot, sequence))
    return false;
  return state.usedTo === undefined || isAfter(state.usedTo, credential, life, boot, sequence);
}

/** Reads what {@link DeviceState} was stored as. @throws Error where it was damaged since */
export function parseDeviceState(json: string): DeviceState {
  const state = JSON.parse(json) as DeviceState;
  upgradeState(state);
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
  upgradeState(value);
  const misfit = misfitOf(SHAPE, value, 'state');
  return misfit === undefined ? ok(value as DeviceState) : problem('bad-state', `in the stored state, ${misfit}`);
}

const NAME = { credential: 0, life: 0, boot: 0, sequence: 0 };
/** A state that has one of everything. Its values stand for their types; null for whatever there may be, or not. */
const SHAPE = {
  belief: {
    ...newBelief(POWER_MODEL, '', 0),
    periods: [{ ...NAME, timeMs: 0, isReported: false }],
    airplaneSwitches: [{ id: 0, sentMs: 0, expiresMs: 0, hasReconnected: false, outcome: '' }],
    runs: [{ ...newRun(0, 0, 0), spans: [{ low: 0, high: 0 }] }],
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
  else if (isAfter(known, credential, life, boot, sequence) || isGreater(credential, life, uplink, known)) {
    setKey(known, credential, life, boot, sequence);
    known.timeMs = timeMs;
    known.reason = reason;
    known.kind = kind;
  }
}

/**
 * Of two pings of one name that contradict each other the greater counts: that is arbitrary, but it is the same in
 * whatever order they come (protocol.md §3, "Late data").
 */
function isGreater(credential: number, life: number, uplink: PingUplink, known: LatestPing): boolean {
  const { boot, sequence, timeMs, body } = uplink;
  if (!isSame(known, credential, life, boot, sequence)) return false;
  if (timeMs !== known.timeMs) return timeMs > known.timeMs;
  return `${body.kind} ${body.reason}` > `${known.kind} ${known.reason}`;
}

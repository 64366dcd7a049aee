/**
 * One uplink as the rules about uplinks in order see it (protocol.md §3, "What a lock must do"): plain data, so that a
 * belief can store the first uplinks of a stretch of numbers until those before them have come.
 */
import { isPlausiblePosition } from '../../../gen/ping-content.js';
import type { LockState, Ping, Position, PowerSettings, Uplink } from '../../../wire/ping.js';
import { isDatable } from '../../../wire/ping-json.js';
import type { Reason } from '../../../wire/reasons.js';
import type { RuleName } from '../../rules.js';

/**
 * Which command an acknowledgement answers. `unlock` and `lock` are answered with `ok`; `unknown` is a command that
 * the judge has never seen or has forgotten; `none` where the uplink is a ping.
 */
export type Answer = 'none' | 'reset' | 'unlock' | 'lock' | 'other' | 'unknown';

/** The rules that rest on uplinks in order. */
export const IN_ORDER_RULES = [
  'ack-untrue',
  'cadence-too-fast',
  'change-untold',
  'clock-back',
  'gps-before-cellular',
  'gps-missing',
  'motion-unlikely',
  'refresh-missing',
] as const satisfies readonly RuleName[];

/** One of them. */
export type InOrderRule = (typeof IN_ORDER_RULES)[number];

/** See the head of this file. It is written in place on the hot path. */
export interface OrderedUplink {
  sequence: number;
  /** By the lock's clock, ms since the epoch. */
  timeMs: number;
  kind: Ping['kind'] | 'ack';
  reason: Reason | '';
  lockState: LockState;
  /** −1 where the uplink carries none. */
  batteryPercent: number;
  power: PowerSettings;
  /** Null where there is none, or an impossible one. */
  position: Position | null;
  /** Metres per second; −1 where the uplink carries none. */
  speed: number;
  answer: Answer;
  /** Whether it can't be evidence: its time is no date, or its number came with two contents. */
  isDoubtful: boolean;
  /** The rules it was found to break. */
  found: InOrderRule[];
}

/** An ordered uplink for {@link readOrdered} to fill. */
export function newOrderedUplink(power: PowerSettings): OrderedUplink {
  return {
    sequence: 0,
    timeMs: 0,
    kind: 'ack',
    reason: '',
    lockState: 'unknown',
    batteryPercent: -1,
    power,
    position: null,
    speed: -1,
    answer: 'none',
    isDoubtful: false,
    found: [],
  };
}

/** Writes what the rules need of `uplink` into `into`. */
export function readOrdered(into: OrderedUplink, uplink: Uplink, answer: Answer): void {
  const { body, timeMs } = uplink;
  into.sequence = uplink.sequence;
  into.timeMs = timeMs;
  into.power = uplink.power;
  into.answer = answer;
  into.isDoubtful = !isDatable(timeMs);
  into.kind = body.kind;
  into.position = null;
  into.speed = -1;
  if (body.kind === 'ack') {
    into.reason = '';
    into.lockState = 'unknown';
    into.batteryPercent = -1;
    return;
  }
  into.reason = body.reason;
  into.lockState = body.lockState;
  into.batteryPercent = body.batteryPercent >= 0 && body.batteryPercent <= 100 ? body.batteryPercent : -1;
  if (body.kind === 'close_connection') return;
  if (body.position !== null && isPlausiblePosition(body.position)) into.position = body.position;
  if (body.kind === 'gps' && body.speedMetersPerSecond >= 0 && body.speedMetersPerSecond < Number.POSITIVE_INFINITY)
    into.speed = body.speedMetersPerSecond;
}

/** A rule that an uplink breaks, and the first uplink of the evidence. */
export interface Breach {
  readonly rule: InOrderRule;
  /** Its number; −1 where the evidence is all uplinks made from `fromMs` on. */
  readonly fromSequence: number;
  readonly fromMs: number;
  readonly message: string;
}

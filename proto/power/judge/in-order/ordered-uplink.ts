/**
 * What the in-order rules need of an uplink (protocol.md §3, "In order"); these rules compare uplinks that
 * have no missing sequence number between them. It is plain data, so that the judge's belief about the lock can store
 * uplinks until the missing ones before them have come.
 */
import { isPlausiblePosition } from '../../../gen/ping-content.js';
import type { LockState, Ping, Position, PowerSettings, Uplink } from '../../../wire/ping.js';
import { isDatable } from '../../../wire/ping-json.js';
import type { Reason } from '../../../wire/reasons.js';
import type { RuleName } from '../../rules.js';

/**
 * Which command an uplink answers: an `unlock` or `lock` with the result `ok`; a `reset`; any `other` command or
 * result; an `unknown` command, which the judge has never seen or has forgotten; or `none`, if the uplink is a ping.
 */
export type Answer = 'none' | 'reset' | 'unlock' | 'lock' | 'other' | 'unknown';

/** The in-order rules. */
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

/** The rules that depend on earlier uplinks, so that a late uplink may explain a finding, which is then withdrawn. */
export const WITHDRAWABLE_RULES: ReadonlySet<RuleName> = new Set<RuleName>([
  'airplane-silence',
  'boot-back',
  'period-too-soon',
  'state-unchanged',
  ...IN_ORDER_RULES,
]);

/** The name of an in-order rule. */
export type InOrderRule = (typeof IN_ORDER_RULES)[number];

/** See the top of this file. Mutable, so that one object can be reused for all uplinks. */
export interface OrderedUplink {
  sequence: number;
  /** By the lock's clock, ms since the epoch. */
  timeMs: number;
  kind: Ping['kind'] | 'ack';
  reason: Reason | '';
  lockState: LockState;
  /** −1 if the uplink carries none, or an impossible one. */
  batteryPercent: number;
  power: PowerSettings;
  /** Null if the uplink carries none, or an impossible one. */
  position: Position | null;
  /** Metres per second; −1 if the uplink carries none, or an impossible one. */
  speed: number;
  answer: Answer;
  /** Whether it can't be evidence: its time is no date, or its sequence number came with two contents. */
  isDoubtful: boolean;
  /** The rules that it was found to break. */
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

/** Writes what the rules need of `uplink` to `target`. */
export function readOrdered(target: OrderedUplink, uplink: Uplink, answer: Answer): void {
  const { body, timeMs } = uplink;
  target.sequence = uplink.sequence;
  target.timeMs = timeMs;
  target.power = uplink.power;
  target.answer = answer;
  target.isDoubtful = !isDatable(timeMs);
  target.kind = body.kind;
  target.position = null;
  target.speed = -1;
  if (body.kind === 'ack') {
    target.reason = '';
    target.lockState = 'unknown';
    target.batteryPercent = -1;
    return;
  }
  target.reason = body.reason;
  target.lockState = body.lockState;
  target.batteryPercent = body.batteryPercent >= 0 && body.batteryPercent <= 100 ? body.batteryPercent : -1;
  if (body.kind === 'close_connection') return;
  if (body.position !== null && isPlausiblePosition(body.position)) target.position = body.position;
  if (body.kind === 'gps' && body.speedMetersPerSecond >= 0 && body.speedMetersPerSecond < Number.POSITIVE_INFINITY)
    target.speed = body.speedMetersPerSecond;
}

/** A rule that an uplink breaks, and the evidence for that: a series of uplinks up to this one. */
export interface Breach {
  readonly rule: InOrderRule;
  /** The number of the first uplink of the evidence; −1 if the evidence is all uplinks made from `fromMs` on. */
  readonly fromSequence: number;
  readonly fromMs: number;
  readonly message: string;
}

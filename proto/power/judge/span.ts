/**
 * Stretches of numbers without a hole, made and joined. See {@link Span} for what they say.
 */
import type { Ping, Uplink } from '../../wire/ping.js';
import type { PowerModel } from '../model.js';
import { joinAirplane } from './airplane.js';
import type { Belief, Run, Span } from './belief.js';
import { finding, type UplinkKey, uplinkKey, type Verdict } from './event.js';
import { lowBatteryBelow } from './state.js';

const LOCKED = 1;
const UNLOCKED = 2;

/** A lock state as bits: two that share one are the same state, and unknown shares none with any. */
function stateBits(ping: Ping): number {
  return ping.lockState === 'locked' ? LOCKED : ping.lockState === 'unlocked' ? UNLOCKED : 0;
}

/** The state that a cellular REASON_STATE_PING tells; no bits for any other uplink. */
export function statePingBits(uplink: Uplink): number {
  const { body } = uplink;
  return body.kind === 'cellular' && body.reason === 'REASON_STATE_PING' ? stateBits(body) : 0;
}

/** The state that a following state ping may not repeat; no bits where the lock need not have told of a change. */
export function comparableBits(model: PowerModel, uplink: Uplink): number {
  const { body } = uplink;
  if (body.kind === 'ack' || uplink.power.airplane || body.batteryPercent < lowBatteryBelow(model)) return 0;
  return stateBits(body);
}

/** The stretch of one number. */
export function singleSpan(model: PowerModel, uplink: Uplink): Span {
  const isAirplaneClose = uplink.power.airplane && uplink.body.kind === 'close_connection';
  return {
    low: uplink.sequence,
    high: uplink.sequence,
    lowStatePing: statePingBits(uplink),
    highState: comparableBits(model, uplink),
    hasAirplaneOff: !uplink.power.airplane,
    headClose: isAirplaneClose ? uplink.sequence : -1,
    isHeadReported: false,
    hasTailClose: isAirplaneClose,
    holeSinceMs: 0,
    holeSinceUplinks: 0,
    isHoleOverdue: false,
  };
}

/** Joins the stretch at `index` with the next one, between which no number is missing. */
export function joinNeighbours(belief: Belief, run: Run, index: number, atMs: number, out: Verdict): void {
  const lower = run.spans[index] as Span;
  const upper = run.spans[index + 1] as Span;
  if ((lower.highState & upper.lowStatePing) !== 0) {
    const about = uplinkKey(run.credential, run.life, run.boot, upper.low);
    reportUnchanged(belief, lower.highState & upper.lowStatePing, about, atMs, out);
  }
  joinOverHole(belief, run, index, atMs, out);
}

/** Joins two stretches without comparing their ends, so that what is missing between them counts as nothing. */
export function joinOverHole(belief: Belief, run: Run, index: number, atMs: number, out: Verdict): void {
  const lower = run.spans[index] as Span;
  const upper = run.spans[index + 1] as Span;
  joinAirplane(belief, run, lower, upper, atMs, out);
  lower.high = upper.high;
  lower.highState = upper.highState;
  run.spans.splice(index + 1, 1);
}

/** A state ping repeats the state in `bits`. */
export function reportUnchanged(belief: Belief, bits: number, about: UplinkKey, atMs: number, out: Verdict): void {
  const state = (bits & LOCKED) !== 0 ? 'locked' : 'unlocked';
  const message = `REASON_STATE_PING says ${state}, which the lock was already.`;
  out.findings.push(finding('state-unchanged', belief.mac, about, atMs, message));
}

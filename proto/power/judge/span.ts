/**
 * Makes and joins spans: series of sequence numbers without a hole (see {@link Span}). Also reports the rule
 * state-unchanged (protocol.md §3). No I/O: changes only the given belief (what the judge knows of the lock) and
 * verdict (its findings). A span's *stretch* is what the in-order rules (in-order/) know of its uplinks.
 */
import type { Ping, Uplink } from '../../wire/ping.js';
import type { PowerModel } from '../model.js';
import { joinAirplane } from './airplane.js';
import type { Belief, BootRecord, Span } from './belief.js';
import { finding, type UplinkKey, uplinkKey, type Verdict } from './event.js';
import { joinOverMissing, joinStretches } from './in-order/stretch.js';
import { newStretch } from './in-order/stretch-state.js';
import { lowBatteryLimitPercent } from './state.js';

const LOCKED = 1;
const UNLOCKED = 2;

/** A lock state as a bit; 0 for unknown. Two lock states are the same if they share a bit. */
function stateBits(ping: Ping): number {
  return ping.lockState === 'locked' ? LOCKED : ping.lockState === 'unlocked' ? UNLOCKED : 0;
}

/** The lock state that a cellular REASON_STATE_PING reports, as a bit; 0 for any other uplink. */
export function statePingBits(uplink: Uplink): number {
  const { body } = uplink;
  return body.kind === 'cellular' && body.reason === 'REASON_STATE_PING' ? stateBits(body) : 0;
}

/** The lock state that the next state ping must not repeat, as a bit; 0 if the lock may have hidden a change since. */
export function comparableBits(model: PowerModel, uplink: Uplink): number {
  const { body } = uplink;
  if (body.kind === 'ack' || uplink.power.airplane || body.batteryPercent < lowBatteryLimitPercent(model)) return 0;
  return stateBits(body);
}

/** The span of a single uplink. */
export function singleSpan(model: PowerModel, uplink: Uplink): Span {
  const isAirplaneClose = uplink.power.airplane && uplink.body.kind === 'close_connection';
  return {
    low: uplink.sequence,
    high: uplink.sequence,
    lowStatePing: statePingBits(uplink),
    highState: comparableBits(model, uplink),
    // For airplane.ts: whether an uplink was made outside airplane mode; the number of a close-connection ping among
    // the uplinks before the first such one (-1 for none), and whether one follows the last such one.
    hasAirplaneOff: !uplink.power.airplane,
    headClose: isAirplaneClose ? uplink.sequence : -1,
    isHeadReported: false,
    hasTailClose: isAirplaneClose,
    // These count only if there is a hole below; `noticeHole` sets them then.
    holeSinceMs: 0,
    holeSinceUplinks: 0,
    isHoleOverdue: false,
    stretch: newStretch(uplink.sequence),
  };
}

/** Joins the span at `index` with the next one, which follows without a hole, and compares the uplinks at the joint. */
export function joinNeighbours(
  model: PowerModel,
  belief: Belief,
  record: BootRecord,
  index: number,
  atMs: number,
  verdict: Verdict,
): void {
  const lower = record.spans[index] as Span;
  const upper = record.spans[index + 1] as Span;
  if ((lower.highState & upper.lowStatePing) !== 0) {
    const about = uplinkKey(record.credential, record.life, record.boot, upper.low);
    reportUnchangedState(belief, lower.highState & upper.lowStatePing, about, atMs, verdict);
  }
  joinStretches(model, belief, record, lower.stretch, upper.stretch, atMs, verdict);
  joinSpans(belief, record, index, atMs, verdict);
}

/** Joins the span at `index` with the next one without comparing them, and so forgets the hole between them. */
export function joinOverHole(belief: Belief, record: BootRecord, index: number, atMs: number, verdict: Verdict): void {
  joinOverMissing((record.spans[index] as Span).stretch, (record.spans[index + 1] as Span).stretch);
  joinSpans(belief, record, index, atMs, verdict);
}

function joinSpans(belief: Belief, record: BootRecord, index: number, atMs: number, verdict: Verdict): void {
  const lower = record.spans[index] as Span;
  const upper = record.spans[index + 1] as Span;
  joinAirplane(belief, record, lower, upper, atMs, verdict);
  lower.high = upper.high;
  lower.highState = upper.highState;
  record.spans.splice(index + 1, 1);
}

/** Reports that a state ping repeats the lock state in `bits`. */
export function reportUnchangedState(
  belief: Belief,
  bits: number,
  about: UplinkKey,
  atMs: number,
  verdict: Verdict,
): void {
  const state = (bits & LOCKED) !== 0 ? 'locked' : 'unlocked';
  const message = `REASON_STATE_PING reports ${state}, but the lock was already ${state}.`;
  verdict.findings.push(finding('state-unchanged', belief.mac, about, atMs, message));
}

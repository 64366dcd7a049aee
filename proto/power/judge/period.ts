/**
 * period-too-soon (protocol.md §3): a sequence of period pings begins less than 23 h after another.
 *
 * Pings within 10 min of the first are one sequence, by the lock's time. A late ping may join two sequences, part one,
 * or stand between two, so the sequences are found anew from all that are remembered; what was found and no longer
 * holds is withdrawn. A finding is about the first ping of the later sequence; where that is the one known before the
 * first event, which is no uplink, it is about the first ping of the earlier one.
 */

import { FIRST_LIFE } from '../../wire/uplink-life.js';
import type { PowerModel } from '../model.js';
import { BELIEF_LIMITS, type Belief, isAfter, type PeriodPing, setKey } from './belief.js';
import {
  compareKeys,
  type Finding,
  finding,
  type UplinkEvent,
  type UplinkKey,
  uplinkKey,
  type Verdict,
} from './event.js';
import { describeSpan, describeTime } from './words.js';

/** Takes a REASON_PERIOD_TRACKING ping. */
export function judgePeriod(model: PowerModel, belief: Belief, event: UplinkEvent, out: Verdict): void {
  const { credential, uplink, life = FIRST_LIFE } = event;
  if (isAfter(belief.lastPeriodFrom, credential, life, uplink.boot, uplink.sequence)) {
    setKey(belief.lastPeriodFrom, credential, life, uplink.boot, uplink.sequence);
    belief.lastPeriodMs = event.atMs;
    belief.isOverdueReported = false;
  }
  const ping: PeriodPing = {
    credential,
    life,
    boot: uplink.boot,
    sequence: uplink.sequence,
    timeMs: uplink.timeMs,
    isReported: false,
  };
  const { periods } = belief;
  let index = periods.length;
  while (index > 0 && comparePeriods(periods[index - 1] as PeriodPing, ping) > 0) index -= 1;
  const same = periods[index - 1];
  if (same !== undefined && comparePeriods(same, ping) === 0) return;
  periods.splice(index, 0, ping);
  judgeSequences(model, belief, event.atMs, out);
  if (periods.length > BELIEF_LIMITS.periodPings) forgetOldest(periods);
}

/**
 * When the last period sequence began: by the lock's clock, as period-too-soon counts, unless that runs ahead of the
 * receipt, from which period-overdue is counted. Null where none is known.
 */
export function lastSequenceMs(model: PowerModel, belief: Belief): number | null {
  const { periods, lastPeriodMs, lastPeriodFrom } = belief;
  let begin: PeriodPing | undefined;
  for (const ping of periods) {
    if (begin === undefined || ping.timeMs - begin.timeMs > model.bounds.periodSequenceSpan) begin = ping;
    if (lastPeriodMs !== null && compareKeys(ping, lastPeriodFrom) === 0) return Math.min(begin.timeMs, lastPeriodMs);
  }
  return lastPeriodMs;
}

function comparePeriods(a: PeriodPing, b: PeriodPing): number {
  return a.timeMs - b.timeMs || compareKeys(a, b);
}

function judgeSequences(model: PowerModel, belief: Belief, atMs: number, out: Verdict): void {
  const { periods } = belief;
  const { periodSequenceSpan } = model.bounds;
  // Where pings were forgotten, sequences may look to begin elsewhere than they did.
  const canWithdraw = periods.length <= BELIEF_LIMITS.periodPings;
  const known = periods.find(isKnownBefore);
  let begin: PeriodPing | undefined;
  for (const ping of periods) {
    const isBegin = begin === undefined || ping.timeMs - begin.timeMs > periodSequenceSpan;
    const other = isBegin && !isKnownBefore(ping) ? tooSoonFor(model, periods, ping, begin, known) : undefined;
    if (other !== undefined && !ping.isReported) {
      ping.isReported = true;
      out.findings.push(tooSoon(belief, ping, other, atMs));
    } else if (other === undefined && ping.isReported && canWithdraw) {
      ping.isReported = false;
      out.withdrawn.push({ rule: 'period-too-soon', mac: belief.mac, about: bareName(ping) });
    }
    if (isBegin) begin = ping;
  }
}

/** The one that was known before the first event has no uplink that a finding could be about. */
function isKnownBefore(ping: PeriodPing): boolean {
  return ping.boot < 0;
}

/** The sequence that the one of `ping` is too close to: the one before it, or the known one where that is the next. */
function tooSoonFor(
  model: PowerModel,
  periods: readonly PeriodPing[],
  ping: PeriodPing,
  before: PeriodPing | undefined,
  known: PeriodPing | undefined,
): PeriodPing | undefined {
  const { periodSequenceSpan, periodTooSoonUnder } = model.bounds;
  if (before !== undefined && ping.timeMs - before.timeMs < periodTooSoonUnder) return before;
  if (known === undefined || known.timeMs - ping.timeMs >= periodTooSoonUnder) return undefined;
  const next = periods.find((other) => other.timeMs - ping.timeMs > periodSequenceSpan);
  return next === known ? known : undefined;
}

function tooSoon(belief: Belief, ping: PeriodPing, other: PeriodPing, atMs: number): Finding {
  const span = describeSpan(ping.timeMs - other.timeMs);
  const order = ping.timeMs < other.timeMs ? 'before' : 'after';
  const [begin, beginOfOther] = [describeTime(ping.timeMs), describeTime(other.timeMs)];
  const message = `The period sequence of ${begin} began ${span} ${order} that of ${beginOfOther}.`;
  return finding('period-too-soon', belief.mac, bareName(ping), atMs, message);
}

function bareName(ping: PeriodPing): UplinkKey {
  return uplinkKey(ping.credential, ping.life, ping.boot, ping.sequence);
}

/** The oldest in order of names, since a lock's clock may stand anywhere. */
function forgetOldest(periods: PeriodPing[]): void {
  let oldest = 0;
  for (let index = 1; index < periods.length; index++) {
    if (compareKeys(periods[index] as PeriodPing, periods[oldest] as PeriodPing) < 0) oldest = index;
  }
  periods.splice(oldest, 1);
}

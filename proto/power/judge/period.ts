/**
 * The rule period-too-soon (protocol.md §3): a sequence of period pings (the pings of one day's report) starts less
 * than 23 h after another. No I/O: changes only the given belief (what the judge knows of the lock) and verdict (its
 * findings).
 *
 * Pings within 10 min of the first are one sequence, by the lock's time. A late ping may join two sequences, split one,
 * or form a third between two. So after each ping the judge determines the sequences again from all remembered pings,
 * and withdraws findings that no longer apply. A finding is about the first ping of the later sequence. A trace's
 * header may name when a lock's last sequence before the trace started. This initial sequence has no uplink: if it is
 * the later one, the finding is about the first ping of the earlier sequence.
 */

import { FIRST_LIFE } from '../../wire/uplink-life.js';
import type { PowerModel } from '../model.js';
import { BELIEF_LIMITS, type Belief, isAfterKey, type PeriodPing, setKey } from './belief.js';
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

/**
 * Judges a REASON_PERIOD_TRACKING ping. An uplink's key is its credential, life (the time between two wipes of the
 * lock's flash), boot and sequence. The rule's time spans are part of the power model.
 */
export function judgePeriod(model: PowerModel, belief: Belief, event: UplinkEvent, verdict: Verdict): void {
  const { credential, uplink, life = FIRST_LIFE } = event;
  if (isAfterKey(belief.lastPeriodFrom, credential, life, uplink.boot, uplink.sequence)) {
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
  judgeSequences(model, belief, event.atMs, verdict);
  if (periods.length > BELIEF_LIMITS.periodPings) removeOldest(periods);
}

/**
 * When the last period sequence started, ms since the epoch: the lock's time of its first ping (which period-too-soon
 * uses) or the time of receipt of its last ping (which period-overdue uses), whichever is earlier. Null if no sequence
 * is known.
 */
export function lastSequenceStartMs(model: PowerModel, belief: Belief): number | null {
  const { periods, lastPeriodMs, lastPeriodFrom } = belief;
  let first: PeriodPing | undefined;
  for (const ping of periods) {
    if (first === undefined || ping.timeMs - first.timeMs > model.bounds.periodSequenceSpan) first = ping;
    if (lastPeriodMs !== null && compareKeys(ping, lastPeriodFrom) === 0) return Math.min(first.timeMs, lastPeriodMs);
  }
  return lastPeriodMs;
}

function comparePeriods(a: PeriodPing, b: PeriodPing): number {
  return a.timeMs - b.timeMs || compareKeys(a, b);
}

/** Makes and withdraws findings for all remembered pings. */
function judgeSequences(model: PowerModel, belief: Belief, atMs: number, verdict: Verdict): void {
  const { periods } = belief;
  const { periodSequenceSpan } = model.bounds;
  // A full list gets one ping too many with each new ping, and then loses its oldest. Once pings have been removed,
  // sequences may seem to start at other pings than they did, so that no finding can be withdrawn any more.
  const canWithdraw = periods.length <= BELIEF_LIMITS.periodPings;
  const initial = periods.find(isInitialPing);
  let first: PeriodPing | undefined;
  for (const ping of periods) {
    const isFirst = first === undefined || ping.timeMs - first.timeMs > periodSequenceSpan;
    const other =
      isFirst && !isInitialPing(ping) ? findTooCloseSequence(model, periods, ping, first, initial) : undefined;
    if (other !== undefined && !ping.isReported) {
      ping.isReported = true;
      verdict.findings.push(tooSoonFinding(belief, ping, other, atMs));
    } else if (other === undefined && ping.isReported && canWithdraw) {
      ping.isReported = false;
      verdict.withdrawn.push({ rule: 'period-too-soon', mac: belief.mac, about: keyOfPeriodPing(ping) });
    }
    if (isFirst) first = ping;
  }
}

/** Whether this is the initial sequence, which was known before the first event and has no uplink: its boot is −1. */
function isInitialPing(ping: PeriodPing): boolean {
  return ping.boot < 0;
}

/**
 * The first ping of the sequence that is too close to the sequence which starts with `ping`: the sequence before, or
 * the initial sequence if it comes next. Undefined if there is no such sequence.
 */
function findTooCloseSequence(
  model: PowerModel,
  periods: readonly PeriodPing[],
  ping: PeriodPing,
  before: PeriodPing | undefined,
  initial: PeriodPing | undefined,
): PeriodPing | undefined {
  const { periodSequenceSpan, periodTooSoonUnder } = model.bounds;
  if (before !== undefined && ping.timeMs - before.timeMs < periodTooSoonUnder) return before;
  if (initial === undefined || initial.timeMs - ping.timeMs >= periodTooSoonUnder) return undefined;
  const next = periods.find((other) => other.timeMs - ping.timeMs > periodSequenceSpan);
  return next === initial ? initial : undefined;
}

function tooSoonFinding(belief: Belief, ping: PeriodPing, other: PeriodPing, atMs: number): Finding {
  const span = describeSpan(ping.timeMs - other.timeMs);
  const order = ping.timeMs < other.timeMs ? 'before' : 'after';
  const [start, otherStart] = [describeTime(ping.timeMs), describeTime(other.timeMs)];
  const message = `The period sequence of ${start} started ${span} ${order} that of ${otherStart}.`;
  return finding('period-too-soon', belief.mac, keyOfPeriodPing(ping), atMs, message);
}

function keyOfPeriodPing(ping: PeriodPing): UplinkKey {
  return uplinkKey(ping.credential, ping.life, ping.boot, ping.sequence);
}

/** Removes the oldest ping by key, not by time, since a lock's clock may be wrong. */
function removeOldest(periods: PeriodPing[]): void {
  let oldest = 0;
  for (let index = 1; index < periods.length; index++) {
    if (compareKeys(periods[index] as PeriodPing, periods[oldest] as PeriodPing) < 0) oldest = index;
  }
  periods.splice(oldest, 1);
}

/**
 * The rule sequence-gap (protocol.md §3): which numbers are missing within a boot, and how long the judge waits for
 * them. Pure: changes only the given belief (what the judge knows of the lock) and verdict (its findings). A `Run` is
 * what the belief has of one boot, a `Span` a series of received numbers without a hole.
 *
 * A *hole* is a series of numbers between two received ones. It becomes *overdue* after 100 uplinks (starting with the
 * one that revealed the hole), after 24 h, or at a close-connection ping with `kept` = 0, because then no earlier
 * uplink waits in the lock. The numbers of an overdue hole are missing. The judge makes a finding if more numbers are
 * missing than the lock reported as dropped. Numbers before the first received one don't count. A hole that is filled
 * later no longer counts.
 *
 * A lock's buffer survives a boot, but its count of dropped uplinks restarts (protocol.md §1). So uplinks that the lock
 * reports as dropped in one boot may have been made in an earlier boot.
 */

import { FIRST_LIFE } from '../../wire/uplink-life.js';
import type { PowerModel } from '../model.js';
import { BELIEF_LIMITS, type Belief, orderOfRun, type Run, type Span } from './belief.js';
import { finding, type UplinkEvent, type UplinkKey, type Verdict } from './event.js';
import { joinOverHole } from './span.js';
import { NEVER } from './state.js';

/** Notes a new hole below `span`, and when it becomes overdue. */
export function noticeHole(model: PowerModel, belief: Belief, span: Span, atMs: number): void {
  const { gapPatience, gapPatienceUplinks } = model.bounds;
  span.holeSinceMs = atMs;
  span.holeSinceUplinks = belief.uplinks;
  span.isHoleOverdue = false;
  belief.gapDueUplinks = Math.min(belief.gapDueUplinks, belief.uplinks + gapPatienceUplinks - 1);
  belief.gapDueMs = Math.min(belief.gapDueMs, atMs + gapPatience);
  belief.dueMs = Math.min(belief.dueMs, belief.gapDueMs);
}

/**
 * Looks for holes that have become overdue, and reports newly missing numbers.
 *
 * @param about the uplink that is being judged; null for a tick
 */
export function judgeGaps(
  model: PowerModel,
  belief: Belief,
  atMs: number,
  about: UplinkKey | null,
  verdict: Verdict,
): void {
  const { gapPatience, gapPatienceUplinks } = model.bounds;
  belief.gapDueUplinks = NEVER;
  belief.gapDueMs = NEVER;
  for (const run of belief.runs) {
    // The first span has no hole below it.
    for (let index = 1; index < run.spans.length; index++) {
      const span = run.spans[index] as Span;
      if (span.isHoleOverdue) continue;
      const dueUplinks = span.holeSinceUplinks + gapPatienceUplinks - 1;
      const dueMs = span.holeSinceMs + gapPatience;
      if (belief.uplinks >= dueUplinks || atMs > dueMs) {
        span.isHoleOverdue = true;
        continue;
      }
      belief.gapDueUplinks = Math.min(belief.gapDueUplinks, dueUplinks);
      belief.gapDueMs = Math.min(belief.gapDueMs, dueMs);
    }
  }
  for (const run of belief.runs) reportMissing(belief, run, atMs, about, verdict);
}

/** At a close-connection ping with `kept` = 0, all holes before it become overdue: no earlier uplink can still come. */
export function stopWaitingForHoles(belief: Belief, event: UplinkEvent, about: UplinkKey, verdict: Verdict): void {
  const { boot, sequence } = event.uplink;
  let hasHoles = false;
  for (const run of belief.runs) {
    const order = orderOfRun(run, event.credential, event.life ?? FIRST_LIFE, boot);
    const isSameRun = order === 0;
    if (order > 0) break;
    if (run.spans.length < 2) continue;
    hasHoles = true;
    for (const span of run.spans) {
      if (!isSameRun || span.low <= sequence) span.isHoleOverdue = true;
    }
  }
  if (!hasHoles) return;
  for (const run of belief.runs) reportMissing(belief, run, event.atMs, about, verdict);
}

/** Makes a finding if more numbers of the boot are missing without an explanation than were reported before. */
function reportMissing(belief: Belief, run: Run, atMs: number, about: UplinkKey | null, verdict: Verdict): void {
  const droppedCount = run.dropped + excessDropsOfLaterBoots(belief, run);
  const unexplained = countMissing(run) - droppedCount;
  if (unexplained <= run.reported) return;
  run.reported = unexplained;
  const dropped = droppedCount === 0 ? '' : `, but the lock reports only ${droppedCount} as dropped`;
  const message = `In boot ${run.boot}, ${describeMissing(run)}${dropped}.`;
  verdict.findings.push(finding('sequence-gap', belief.mac, about, atMs, message));
}

/** How many uplinks the lock reported as dropped in later boots in excess of the numbers missing there. */
function excessDropsOfLaterBoots(belief: Belief, run: Run): number {
  let excess = 0;
  for (let index = belief.runs.length - 1; index >= 0; index--) {
    const later = belief.runs[index] as Run;
    if (later === run) break;
    excess = Math.max(0, excess + later.dropped - countMissing(later));
  }
  return excess;
}

/** How many numbers are missing: those of overdue holes, and `lost` ones, whose holes are no longer tracked. */
function countMissing(run: Run): number {
  let count = run.lost;
  for (let index = 1; index < run.spans.length; index++) {
    const span = run.spans[index] as Span;
    if (span.isHoleOverdue) count += span.low - (run.spans[index - 1] as Span).high - 1;
  }
  return count;
}

function describeMissing(run: Run): string {
  const holes: string[] = [];
  for (let index = 1; index < run.spans.length; index++) {
    const span = run.spans[index] as Span;
    const first = (run.spans[index - 1] as Span).high + 1;
    const last = span.low - 1;
    if (span.isHoleOverdue) holes.push(first === last ? `${first}` : `${first}–${last}`);
  }
  const named = holes.slice(-BELIEF_LIMITS.holesNamed).join(', ');
  const count = countMissing(run);
  const listed = named === '' ? '' : ` (${holes.length > BELIEF_LIMITS.holesNamed ? '…, ' : ''}${named})`;
  return `${count} sequence number${count === 1 ? ' is' : 's are'} missing${listed}`;
}

/** A late uplink filled a hole, so fewer numbers are missing than were reported. Further missing ones are reported. */
export function lowerReportedCount(belief: Belief, run: Run): void {
  const droppedCount = run.dropped + excessDropsOfLaterBoots(belief, run);
  run.reported = Math.min(run.reported, Math.max(0, countMissing(run) - droppedCount));
}

/** Stops tracking the lowest holes: those too old to be filled, and those beyond the limit. */
export function dropLowestHoles(model: PowerModel, belief: Belief, run: Run, atMs: number, verdict: Verdict): void {
  while (run.spans.length > 1) {
    const [lowest, next] = run.spans as [Span, Span];
    const isTooOld = next.isHoleOverdue && atMs - next.holeSinceMs > model.bounds.lateWithin;
    if (!isTooOld && run.spans.length <= BELIEF_LIMITS.spans) return;
    run.lost += next.low - lowest.high - 1;
    joinOverHole(belief, run, 0, atMs, verdict);
  }
}

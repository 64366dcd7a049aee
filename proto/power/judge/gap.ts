/**
 * The rule sequence-gap (protocol.md §3): which numbers are missing within a boot, and how long the judge waits for
 * them. No I/O: changes only the given belief (what the judge knows of the lock) and verdict (its findings). A
 * `BootRecord` is what the belief has of one boot, a `Span` a series of received numbers without a hole.
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
import { BELIEF_LIMITS, type Belief, type BootRecord, orderOfRecord, type Span } from './belief.js';
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
  for (const record of belief.runs) {
    // The first span has no hole below it.
    for (let index = 1; index < record.spans.length; index++) {
      const span = record.spans[index] as Span;
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
  for (const record of belief.runs) reportMissing(belief, record, atMs, about, verdict);
}

/** At a close-connection ping with `kept` = 0, all holes before it become overdue: no earlier uplink can still come. */
export function stopWaitingForHoles(belief: Belief, event: UplinkEvent, about: UplinkKey, verdict: Verdict): void {
  const { boot, sequence } = event.uplink;
  let hasHoles = false;
  for (const record of belief.runs) {
    const order = orderOfRecord(record, event.credential, event.life ?? FIRST_LIFE, boot);
    const isSameBoot = order === 0;
    if (order > 0) break;
    if (record.spans.length < 2) continue;
    hasHoles = true;
    for (const span of record.spans) {
      if (!isSameBoot || span.low <= sequence) span.isHoleOverdue = true;
    }
  }
  if (!hasHoles) return;
  for (const record of belief.runs) reportMissing(belief, record, event.atMs, about, verdict);
}

/** Makes a finding if more numbers of the boot are missing without an explanation than were reported before. */
function reportMissing(
  belief: Belief,
  record: BootRecord,
  atMs: number,
  about: UplinkKey | null,
  verdict: Verdict,
): void {
  const droppedCount = record.dropped + excessDropsOfLaterBoots(belief, record);
  const unexplained = countMissing(record) - droppedCount;
  if (unexplained <= record.reported) return;
  record.reported = unexplained;
  const dropped = droppedCount === 0 ? '' : `, but the lock reports only ${droppedCount} as dropped`;
  const message = `In boot ${record.boot}, ${describeMissing(record)}${dropped}.`;
  verdict.findings.push(finding('sequence-gap', belief.mac, about, atMs, message));
}

/** How many uplinks the lock reported as dropped in later boots in excess of the numbers missing there. */
function excessDropsOfLaterBoots(belief: Belief, record: BootRecord): number {
  let excess = 0;
  for (let index = belief.runs.length - 1; index >= 0; index--) {
    const later = belief.runs[index] as BootRecord;
    if (later === record) break;
    excess = Math.max(0, excess + later.dropped - countMissing(later));
  }
  return excess;
}

/** How many numbers are missing: those of overdue holes, and `lost` ones, whose holes are no longer tracked. */
function countMissing(record: BootRecord): number {
  let count = record.lost;
  for (let index = 1; index < record.spans.length; index++) {
    const span = record.spans[index] as Span;
    if (span.isHoleOverdue) count += span.low - (record.spans[index - 1] as Span).high - 1;
  }
  return count;
}

function describeMissing(record: BootRecord): string {
  const holes: string[] = [];
  for (let index = 1; index < record.spans.length; index++) {
    const span = record.spans[index] as Span;
    const first = (record.spans[index - 1] as Span).high + 1;
    const last = span.low - 1;
    if (span.isHoleOverdue) holes.push(first === last ? `${first}` : `${first}–${last}`);
  }
  const named = holes.slice(-BELIEF_LIMITS.holesNamed).join(', ');
  const count = countMissing(record);
  const listed = named === '' ? '' : ` (${holes.length > BELIEF_LIMITS.holesNamed ? '…, ' : ''}${named})`;
  return `${count} sequence number${count === 1 ? ' is' : 's are'} missing${listed}`;
}

/** Lowers the count of reported numbers after a late uplink filled a hole, so that a number lost later is reported. */
export function lowerReportedCount(belief: Belief, record: BootRecord): void {
  const droppedCount = record.dropped + excessDropsOfLaterBoots(belief, record);
  record.reported = Math.min(record.reported, Math.max(0, countMissing(record) - droppedCount));
}

/** Stops tracking the lowest holes: those too old to be filled, and those beyond the limit. */
export function dropLowestHoles(
  model: PowerModel,
  belief: Belief,
  record: BootRecord,
  atMs: number,
  verdict: Verdict,
): void {
  while (record.spans.length > 1) {
    const [lowest, next] = record.spans as [Span, Span];
    const isTooOld = next.isHoleOverdue && atMs - next.holeSinceMs > model.bounds.lateWithin;
    if (!isTooOld && record.spans.length <= BELIEF_LIMITS.spans) return;
    record.lost += next.low - lowest.high - 1;
    joinOverHole(belief, record, 0, atMs, verdict);
  }
}

/**
 * Tracks which sequence numbers of each boot have come, and compares each uplink with its neighbours: the uplinks with
 * the previous and the next number (protocol.md §3). No I/O: changes only the given belief (what the judge knows of the
 * lock) and verdict (its findings). A `BootRecord` is what the belief has of one boot, a `Span` a series of received
 * numbers without a hole. Boots and spans are in order, the newest last. The `bits` of an uplink are a lock state: what
 * a state ping reports, or what the next one must not repeat.
 *
 * A late uplink fills a hole and is compared with both neighbours, in whatever order the three came. So the findings do
 * not depend on the order of arrival. A finding on two neighbours is about the one with the higher number.
 */

import { FIRST_LIFE } from '../../wire/uplink-life.js';
import type { PowerModel } from '../model.js';
import { judgeHeadCloses } from './airplane.js';
import {
  BELIEF_LIMITS,
  type Belief,
  type BootRecord,
  isAfterKey,
  isSameKey,
  newBootRecord,
  orderOfRecord,
  type Span,
  setKey,
} from './belief.js';
import { isBootBack, judgeBoots } from './boots.js';
import { keyOf } from './content.js';
import { type UplinkEvent, uplinkKey, type Verdict } from './event.js';
import { dropLowestHoles, judgeGaps, lowerReportedCount, noticeHole, stopWaitingForHoles } from './gap.js';
import type { Answer } from './in-order/ordered-uplink.js';
import { appendUplink, markDoubtful } from './in-order/stretch.js';
import { comparableBits, joinNeighbours, reportUnchangedState, singleSpan, statePingBits } from './span.js';

/** Judges an uplink of the lock, other than a repeat, by its number and its neighbours, and notes the number. */
export function judgeSequence(
  model: PowerModel,
  belief: Belief,
  event: UplinkEvent,
  answer: Answer,
  verdict: Verdict,
): void {
  const { uplink, credential, life = FIRST_LIFE } = event;
  belief.uplinks += 1;
  if (uplink.dropped > 0 && !belief.hasDropped) noteFirstDrop(belief, verdict);
  if (!isAfterKey(belief.first, credential, life, uplink.boot, uplink.sequence))
    judgeFirstUplink(belief, event, verdict);
  const newestRecord = belief.runs[belief.runs.length - 1];
  const topSpan = newestRecord?.spans[newestRecord.spans.length - 1];
  if (
    newestRecord !== undefined &&
    topSpan !== undefined &&
    uplink.sequence === topSpan.high + 1 &&
    newestRecord.boot === uplink.boot &&
    newestRecord.life === life &&
    newestRecord.credential === credential &&
    !uplink.power.airplane
  ) {
    noteDropped(newestRecord, event);
    judgeBoots(model, belief, newestRecord, event, verdict);
    extendTop(model, belief, topSpan, event, verdict);
    appendUplink(model, belief, newestRecord, topSpan.stretch, uplink, answer, event.atMs, verdict);
  } else insertUplink(model, belief, event, answer, verdict);
  if (belief.uplinks >= belief.gapDueUplinks) judgeGaps(model, belief, event.atMs, keyOf(event), verdict);
  // The lock has no further uplink, so a missing number can't come any more.
  if (uplink.body.kind === 'close_connection' && uplink.kept === 0)
    stopWaitingForHoles(belief, event, keyOf(event), verdict);
}

function noteDropped(record: BootRecord, event: UplinkEvent): void {
  if (event.uplink.dropped > record.dropped) record.dropped = event.uplink.dropped;
}

/**
 * Adds an uplink in the usual case: it has the next number of the newest boot, and airplane off. Makes no new object.
 */
function extendTop(model: PowerModel, belief: Belief, topSpan: Span, event: UplinkEvent, verdict: Verdict): void {
  const { uplink } = event;
  const repeated = topSpan.highState & statePingBits(uplink);
  if (repeated !== 0) reportUnchangedState(belief, repeated, keyOf(event), event.atMs, verdict);
  topSpan.high = uplink.sequence;
  topSpan.highState = comparableBits(model, uplink);
  topSpan.hasAirplaneOff = true;
  topSpan.hasTailClose = false;
}

/** Adds an uplink in any other case: in a new boot, out of order, after a hole, or with airplane on. */
function insertUplink(model: PowerModel, belief: Belief, event: UplinkEvent, answer: Answer, verdict: Verdict): void {
  const { uplink, atMs } = event;
  const record = findOrAddRecord(model, belief, event);
  if (record === undefined) return;
  noteDropped(record, event);
  judgeBoots(model, belief, record, event, verdict);
  dropLowestHoles(model, belief, record, atMs, verdict);
  const { spans } = record;
  const indexAbove = spans.findIndex((span) => span.high >= uplink.sequence);
  const index = indexAbove === -1 ? spans.length : indexAbove;
  const above = spans[index];
  const below = spans[index - 1];
  // This number came before with other content (sequence-conflict). The second content is not compared with neighbours.
  if (above !== undefined && above.low <= uplink.sequence) {
    markDoubtful(belief, record, uplink, verdict);
    return;
  }
  const span = singleSpan(model, uplink);
  appendUplink(model, belief, record, span.stretch, uplink, answer, atMs, verdict);
  spans.splice(index, 0, span);
  if (above !== undefined && below !== undefined) {
    // The uplink splits a hole in two, both as old as the original hole.
    span.holeSinceMs = above.holeSinceMs;
    span.holeSinceUplinks = above.holeSinceUplinks;
    span.isHoleOverdue = above.isHoleOverdue;
  } else if (above !== undefined && span.high + 1 < above.low) noticeHole(model, belief, above, atMs);
  else if (below !== undefined && below.high + 1 < span.low) noticeHole(model, belief, span, atMs);
  if (above !== undefined && span.high + 1 === above.low) joinNeighbours(model, belief, record, index, atMs, verdict);
  if (below !== undefined && below.high + 1 === span.low)
    joinNeighbours(model, belief, record, index - 1, atMs, verdict);
  if (record.reported > 0) lowerReportedCount(belief, record);
  judgeHeadCloses(belief, atMs, verdict);
}

/** The record of the uplink's boot, added if new; undefined if the list is full and all its boots are newer. */
function findOrAddRecord(model: PowerModel, belief: Belief, event: UplinkEvent): BootRecord | undefined {
  const { credential, life = FIRST_LIFE } = event;
  const { boot } = event.uplink;
  const { runs } = belief;
  let index = runs.length;
  for (; index > 0; index--) {
    const record = runs[index - 1] as BootRecord;
    const order = orderOfRecord(record, credential, life, boot);
    if (order === 0) return record;
    if (order < 0) break;
  }
  if (runs.length >= BELIEF_LIMITS.runs) {
    // The lowest boot is the oldest, unless the boot counter went back: then it is the newest and must be noted.
    if (index === 0 && !isBootBack(model, belief, event)) return undefined;
    runs.shift();
    index = Math.max(index - 1, 0);
  }
  const record = newBootRecord(credential, life, boot);
  runs.splice(index, 0, record);
  return record;
}

/**
 * Compares the first uplink in order with the initial lock state, which a trace's header or the store knew before any
 * uplink. If an earlier uplink arrives late, that uplink is the first, and a finding about the old one is withdrawn.
 * The same if the lock reports dropped uplinks, since one of those may have reported a change.
 */
function judgeFirstUplink(belief: Belief, event: UplinkEvent, verdict: Verdict): void {
  const { first, initialLockState } = belief;
  const { body, boot, sequence } = event.uplink;
  const { credential, life = FIRST_LIFE } = event;
  if (isSameKey(first, credential, life, boot, sequence)) return;
  if (belief.isFirstReported) withdrawFirstFinding(belief, verdict);
  setKey(first, credential, life, boot, sequence);
  const bits = statePingBits(event.uplink);
  belief.isFirstReported =
    !belief.hasDropped && bits !== 0 && body.kind === 'cellular' && body.lockState === initialLockState;
  if (belief.isFirstReported) reportUnchangedState(belief, bits, keyOf(event), event.atMs, verdict);
}

function noteFirstDrop(belief: Belief, verdict: Verdict): void {
  belief.hasDropped = true;
  if (!belief.isFirstReported) return;
  belief.isFirstReported = false;
  withdrawFirstFinding(belief, verdict);
}

function withdrawFirstFinding({ mac, first }: Belief, verdict: Verdict): void {
  const about = uplinkKey(first.credential, first.life, first.boot, first.sequence);
  verdict.withdrawn.push({ rule: 'state-unchanged', mac, about });
}

/**
 * Applies the in-order rules (in-order-rules.ts) to the uplinks of a boot, which arrive in any order. A *stretch* is a
 * series of uplinks without a missing sequence number. No I/O: changes only the given belief (what the judge knows of
 * the lock) and verdict (its findings). A `BootRecord` is what the belief has of one boot.
 *
 * A stretch has a *context*: what its uplinks say to the next one. While the uplinks before the stretch are missing, it
 * also stores its first uplinks, its *head*: the rules may judge those differently once they know what came before.
 * When two stretches join, the head of the upper one is judged again in the context of the lower one; findings are
 * added and withdrawn accordingly. So the findings don't depend on the order of arrival.
 *
 * A number that comes with two contents is no evidence: findings that depend on it are withdrawn.
 */
import { Minutes } from '../../../clock.js';
import { DEFAULT_POWER, type Uplink } from '../../../wire/ping.js';
import type { PowerModel } from '../../model.js';
import type { Belief, BootRecord, Span } from '../belief.js';
import { compareKeys, finding, type UplinkKey, uplinkKey, type Verdict } from '../event.js';
import { NEVER } from '../state.js';
import { forgetUpTo } from './context.js';
import { judgeInOrder } from './in-order-rules.js';
import {
  type Answer,
  type Breach,
  type InOrderRule,
  newOrderedUplink,
  type OrderedUplink,
  readOrdered,
} from './ordered-uplink.js';
import type { StandingFinding, Stretch } from './stretch-state.js';

/** How long a head is: no in-order rule looks back further, except in a run of GPS pings that lasts longer. */
const HEAD_SPAN = Minutes(12);
/** A theft makes a GPS ping every 10 s, so 72 in {@link HEAD_SPAN}, and a few other uplinks. */
const MAX_HEAD_UPLINKS = 80;
/** Findings of a boot that can still be withdrawn. */
const MAX_STANDING_FINDINGS = 32;

// Both are reused for each uplink, because new objects for every uplink would burden the garbage collector.
const reusedUplink = newOrderedUplink(DEFAULT_POWER);
const breaches: Breach[] = [];

/**
 * Adds the next uplink of a stretch, with the findings about it. `answer` is the kind of command that it answers;
 * `atMs` is the time of receipt, which findings have.
 */
export function appendUplink(
  model: PowerModel,
  belief: Belief,
  record: BootRecord,
  stretch: Stretch,
  uplink: Uplink,
  answer: Answer,
  atMs: number,
  verdict: Verdict,
): void {
  readOrdered(reusedUplink, uplink, answer);
  judgeInOrder(model, stretch.context, reusedUplink, breaches);
  const { isHeadOpen } = stretch;
  if (isHeadOpen) storeInHead(stretch, { ...reusedUplink, found: breaches.map(({ rule }) => rule) });
  if (breaches.length > 0) {
    for (const breach of breaches) reportBreach(belief, record, reusedUplink.sequence, breach, atMs, verdict);
    breaches.length = 0;
  }
}

/** Adds an uplink to the head. Closes the head when it is long enough and has a ping, which the rules compare with. */
function storeInHead(stretch: Stretch, uplink: OrderedUplink): void {
  const { head } = stretch;
  head.push(uplink);
  const first = head[0] as OrderedUplink;
  const isLongEnough = uplink.timeMs - first.timeMs > HEAD_SPAN && head.some(({ kind }) => kind !== 'ack');
  if (isLongEnough || head.length >= MAX_HEAD_UPLINKS) stretch.isHeadOpen = false;
}

/** Joins two neighbouring stretches into the lower one, and judges the head of the upper one again. */
export function joinStretches(
  model: PowerModel,
  belief: Belief,
  record: BootRecord,
  lower: Stretch,
  upper: Stretch,
  atMs: number,
  verdict: Verdict,
): void {
  for (const uplink of upper.head) {
    judgeInOrder(model, lower.context, uplink, breaches);
    for (const rule of uplink.found) {
      if (!breaches.some((breach) => breach.rule === rule))
        withdrawFinding(belief, record, uplink.sequence, rule, verdict);
    }
    for (const breach of breaches) {
      if (!uplink.found.includes(breach.rule)) reportBreach(belief, record, uplink.sequence, breach, atMs, verdict);
    }
    uplink.found = breaches.map(({ rule }) => rule);
    breaches.length = 0;
    if (lower.isHeadOpen) storeInHead(lower, uplink);
  }
  // If the head was still open, it was the whole upper stretch, and the lower context now knows all of it.
  if (upper.isHeadOpen) return;
  const { context } = upper;
  // If the upper context knows all uplinks of its stretch, then together with the lower one's it knows all of both.
  if (context.fromMs === upper.head[0]?.timeMs) {
    const before = lower.context;
    context.fromMs = Math.min(before.fromMs, context.fromMs);
    context.theftCellMs = Math.max(before.theftCellMs, context.theftCellMs);
    context.stateCellMs = Math.max(before.stateCellMs, context.stateCellMs);
    context.periodCellMs = Math.max(before.periodCellMs, context.periodCellMs);
    context.position ??= before.position;
  }
  lower.context = context;
  lower.isHeadOpen = false;
}

/**
 * Joins two stretches although numbers are missing between them, so that nothing is known from before the upper one.
 */
export function joinOverMissing(lower: Stretch, upper: Stretch): void {
  lower.context = upper.context;
  lower.isHeadOpen = false;
}

/** A number of the boot came again with other content, so neither of the two uplinks is evidence. */
export function markDoubtful(belief: Belief, record: BootRecord, { sequence, timeMs }: Uplink, verdict: Verdict): void {
  const dependent = record.standing.filter((each) => dependsOn(each, sequence, timeMs));
  for (const { rule, sequence: about } of dependent) withdrawFinding(belief, record, about, rule, verdict);
  const span = record.spans.find(({ low, high }) => low <= sequence && sequence <= high);
  if (span === undefined) return;
  for (const uplink of span.stretch.head) {
    if (uplink.sequence === sequence) uplink.isDoubtful = true;
    uplink.found = uplink.found.filter(
      (rule) => !dependent.some((each) => each.rule === rule && each.sequence === uplink.sequence),
    );
  }
  forgetUpTo(span.stretch.context, sequence, timeMs);
  if (span.high === sequence) forgetLast(span);
}

/** Forgets what the context has of the last uplink. */
function forgetLast({ stretch: { context } }: Span): void {
  context.lastMs = NEVER;
  context.state = null;
  context.isReset = false;
}

/** Whether an uplink is part of a finding's evidence. */
function dependsOn(standing: StandingFinding, sequence: number, timeMs: number): boolean {
  if (sequence > standing.sequence) return false;
  // −1: the evidence is all uplinks made from `fromMs` on.
  return standing.fromSequence < 0 ? timeMs >= standing.fromMs : sequence >= standing.fromSequence;
}

function reportBreach(
  belief: Belief,
  record: BootRecord,
  sequence: number,
  { rule, fromSequence, fromMs, message }: Breach,
  atMs: number,
  verdict: Verdict,
): void {
  const isReported = record.standing.some((other) => other.rule === rule && other.sequence === sequence);
  // A withdrawal names a rule and an uplink, so there is at most one finding for both.
  if (isReported) return;
  record.standing.push({ rule, sequence, fromSequence, fromMs });
  // Sorted by number, so that the belief does not depend on the order of arrival.
  record.standing.sort((a, b) => a.sequence - b.sequence || (a.rule < b.rule ? -1 : 1));
  if (record.standing.length > MAX_STANDING_FINDINGS) record.standing.shift();
  verdict.findings.push(finding(rule, belief.mac, keyIn(record, sequence), atMs, message));
}

function withdrawFinding(
  belief: Belief,
  record: BootRecord,
  sequence: number,
  rule: InOrderRule,
  verdict: Verdict,
): void {
  const index = record.standing.findIndex((standing) => standing.rule === rule && standing.sequence === sequence);
  if (index === -1) return;
  record.standing.splice(index, 1);
  const about = keyIn(record, sequence);
  // An uplink that joins two stretches may cause a finding at the first join and take it back at the second.
  const indexInVerdict = verdict.findings.findIndex((other) => {
    return other.rule === rule && other.about !== null && compareKeys(other.about, about) === 0;
  });
  if (indexInVerdict === -1) verdict.withdrawn.push({ rule, mac: belief.mac, about });
  else verdict.findings.splice(indexInVerdict, 1);
}

function keyIn({ credential, life, boot }: BootRecord, sequence: number): UplinkKey {
  return uplinkKey(credential, life, boot, sequence);
}

/**
 * Applies the rules in order (in-order-rules.ts) to the stretches of numbers of a boot, which arrive in any order.
 *
 * A stretch carries its *context*, what its uplinks say to the next one. Until the uplinks before a stretch have come,
 * it also stores its first uplinks, its *head*: those on which the rules could judge differently if they knew what came
 * before. When two stretches join, the head of the upper one is judged again in the context of the lower one; findings
 * are added and withdrawn accordingly. So the findings don't depend on the order of arrival.
 *
 * A number that comes with two contents is no evidence: what rests on it is withdrawn.
 */
import { Minutes } from '../../../clock.js';
import { DEFAULT_POWER, type Uplink } from '../../../wire/ping.js';
import type { PowerModel } from '../../model.js';
import type { Belief, Run, Span } from '../belief.js';
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

/** No rule in order looks back further than this, but for a run of GPS pings that lasts longer. */
const HEAD_SPAN = Minutes(12);
/** Uplinks that a head stores at most: a theft's GPS pings of {@link HEAD_SPAN}, and some. */
const MAX_HEAD_UPLINKS = 80;
/** Findings of a run that can still be withdrawn. */
const MAX_STANDING = 32;

// Both are reused for each uplink, so that the hot path makes no objects.
const scratch = newOrderedUplink(DEFAULT_POWER);
const broken: Breach[] = [];

/** Adds the next uplink of a stretch, with the findings about it. */
export function appendUplink(
  model: PowerModel,
  belief: Belief,
  run: Run,
  stretch: Stretch,
  uplink: Uplink,
  answer: Answer,
  atMs: number,
  verdict: Verdict,
): void {
  readOrdered(scratch, uplink, answer);
  judgeInOrder(model, stretch.context, scratch, broken);
  const { isHeadOpen } = stretch;
  if (isHeadOpen) storeInHead(stretch, { ...scratch, found: broken.map(({ rule }) => rule) });
  if (broken.length > 0) {
    for (const each of broken) reportBreach(belief, run, scratch.sequence, each, atMs, verdict);
    broken.length = 0;
  }
}

function storeInHead(stretch: Stretch, one: OrderedUplink): void {
  const { head } = stretch;
  head.push(one);
  const first = head[0] as OrderedUplink;
  const isSettled = one.timeMs - first.timeMs > HEAD_SPAN && head.some(({ kind }) => kind !== 'ack');
  if (isSettled || head.length >= MAX_HEAD_UPLINKS) stretch.isHeadOpen = false;
}

/** Joins two neighbouring stretches into the lower one: the head of the upper one is judged again. */
export function joinStretches(
  model: PowerModel,
  belief: Belief,
  run: Run,
  lower: Stretch,
  upper: Stretch,
  atMs: number,
  verdict: Verdict,
): void {
  for (const one of upper.head) {
    judgeInOrder(model, lower.context, one, broken);
    for (const rule of one.found) {
      if (!broken.some((each) => each.rule === rule)) withdrawFinding(belief, run, one.sequence, rule, verdict);
    }
    for (const each of broken) {
      if (!one.found.includes(each.rule)) reportBreach(belief, run, one.sequence, each, atMs, verdict);
    }
    one.found = broken.map(({ rule }) => rule);
    broken.length = 0;
    if (lower.isHeadOpen) storeInHead(lower, one);
  }
  if (upper.isHeadOpen) return;
  const { context } = upper;
  // Where the upper one knows all of itself, nothing is unknown between the two.
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

/** Joins two stretches with numbers missing between them: nothing is known of what came before the upper one. */
export function joinOverMissing(lower: Stretch, upper: Stretch): void {
  lower.context = upper.context;
  lower.isHeadOpen = false;
}

/** A number of the run came again with other content, so that neither is evidence. */
export function markDoubtful(belief: Belief, run: Run, { sequence, timeMs }: Uplink, verdict: Verdict): void {
  const resting = run.standing.filter((each) => restsOn(each, sequence, timeMs));
  for (const { rule, sequence: about } of resting) withdrawFinding(belief, run, about, rule, verdict);
  const span = run.spans.find(({ low, high }) => low <= sequence && sequence <= high);
  if (span === undefined) return;
  for (const one of span.stretch.head) {
    if (one.sequence === sequence) one.isDoubtful = true;
    one.found = one.found.filter(
      (rule) => !resting.some((each) => each.rule === rule && each.sequence === one.sequence),
    );
  }
  forgetUpTo(span.stretch.context, sequence, timeMs);
  if (span.high === sequence) forgetLast(span);
}

function forgetLast({ stretch: { context } }: Span): void {
  context.lastMs = NEVER;
  context.state = null;
  context.isReset = false;
}

function restsOn(standing: StandingFinding, sequence: number, timeMs: number): boolean {
  if (sequence > standing.sequence) return false;
  return standing.fromSequence < 0 ? timeMs >= standing.fromMs : sequence >= standing.fromSequence;
}

function reportBreach(belief: Belief, run: Run, sequence: number, each: Breach, atMs: number, verdict: Verdict): void {
  const { rule, fromSequence, fromMs, message } = each;
  const isKnown = run.standing.some((one) => one.rule === rule && one.sequence === sequence);
  // A finding is withdrawn by its rule and its uplink, so there is one of each.
  if (isKnown) return;
  run.standing.push({ rule, sequence, fromSequence, fromMs });
  // In the order of numbers, so that a belief does not depend on the order of arrival.
  run.standing.sort((a, b) => a.sequence - b.sequence || (a.rule < b.rule ? -1 : 1));
  if (run.standing.length > MAX_STANDING) run.standing.shift();
  verdict.findings.push(finding(rule, belief.mac, keyIn(run, sequence), atMs, message));
}

function withdrawFinding(belief: Belief, run: Run, sequence: number, rule: InOrderRule, verdict: Verdict): void {
  const index = run.standing.findIndex((one) => one.rule === rule && one.sequence === sequence);
  if (index === -1) return;
  run.standing.splice(index, 1);
  const about = keyIn(run, sequence);
  // An uplink that joins two stretches may cause a finding at the first join and take it back at the second.
  const made = verdict.findings.findIndex((one) => {
    return one.rule === rule && one.about !== null && compareKeys(one.about, about) === 0;
  });
  if (made === -1) verdict.withdrawn.push({ rule, mac: belief.mac, about });
  else verdict.findings.splice(made, 1);
}

function keyIn({ credential, life, boot }: Run, sequence: number): UplinkKey {
  return uplinkKey(credential, life, boot, sequence);
}

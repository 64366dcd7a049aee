/**
 * sequence-gap (protocol.md §3): which numbers are missing within a boot, and for how long one waits for them.
 *
 * Patience with a hole ends after 100 uplinks (the one that showed it is the first), after 24 h, or at once at a
 * close-connection ping with nothing kept, because then nothing made earlier is still to come. From there on its
 * numbers are missing, and a finding tells of them where the lock has not dropped as many. Numbers before the first one
 * seen don't count. A hole that is filled later counts no longer.
 *
 * A lock keeps what it made across a boot, and counts what it drops since the boot that it is in (protocol.md §1). So
 * numbers of an earlier boot may be among those that it tells to have dropped in a later one.
 */

import { FIRST_LIFE } from '../../wire/uplink-life.js';
import type { PowerModel } from '../model.js';
import { BELIEF_LIMITS, type Belief, orderOfRun, type Run, type Span } from './belief.js';
import { finding, type UplinkEvent, type UplinkKey, type Verdict } from './event.js';
import { joinOverHole } from './span.js';
import { NEVER } from './state.js';

/** A hole opened below `span`. Sets when patience with it ends. */
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
 * Looks for holes with which patience is over, and reports what is newly missing.
 *
 * @param about the uplink at which this is found; null where it is time that passed
 */
export function judgeGaps(
  model: PowerModel,
  belief: Belief,
  atMs: number,
  about: UplinkKey | null,
  out: Verdict,
): void {
  const { gapPatience, gapPatienceUplinks } = model.bounds;
  belief.gapDueUplinks = NEVER;
  belief.gapDueMs = NEVER;
  for (const run of belief.runs) {
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
  for (const run of belief.runs) reportMissing(belief, run, atMs, about, out);
}

/** A close-connection ping with nothing kept: nothing made before it is still to come. */
export function endPatience(belief: Belief, event: UplinkEvent, about: UplinkKey, out: Verdict): void {
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
  for (const run of belief.runs) reportMissing(belief, run, event.atMs, about, out);
}

function reportMissing(belief: Belief, run: Run, atMs: number, about: UplinkKey | null, out: Verdict): void {
  const told = run.dropped + droppedLater(belief, run);
  const unexplained = missing(run) - told;
  if (unexplained <= run.reported) return;
  run.reported = unexplained;
  const dropped = told === 0 ? '' : `, and the lock says that it dropped only ${told}`;
  const message = `Of boot ${run.boot}, ${describeMissing(run)}${dropped}.`;
  out.findings.push(finding('sequence-gap', belief.mac, about, atMs, message));
}

/** How many uplinks the lock says to have dropped in later boots beyond what is missing there. */
function droppedLater(belief: Belief, run: Run): number {
  let spare = 0;
  for (let index = belief.runs.length - 1; index >= 0; index--) {
    const later = belief.runs[index] as Run;
    if (later === run) break;
    spare = Math.max(0, spare + later.dropped - missing(later));
  }
  return spare;
}

/** How many numbers are missing for which nobody waits any longer. */
function missing(run: Run): number {
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
  const count = missing(run);
  const which = named === '' ? '' : ` (${holes.length > BELIEF_LIMITS.holesNamed ? '…, ' : ''}${named})`;
  return `${count} sequence number${count === 1 ? ' is' : 's are'} missing${which}`;
}

/** After a late uplink: what has come is missing no longer, and may be reported again should more be lost. */
export function forgiveFilled(belief: Belief, run: Run): void {
  const told = run.dropped + droppedLater(belief, run);
  run.reported = Math.min(run.reported, Math.max(0, missing(run) - told));
}

/** Lets go of the lowest holes: those too old for the latest of uplinks, and those beyond the limit. */
export function forgetHoles(model: PowerModel, belief: Belief, run: Run, atMs: number, out: Verdict): void {
  while (run.spans.length > 1) {
    const [lowest, next] = run.spans as [Span, Span];
    const isTooOld = next.isHoleOverdue && atMs - next.holeSinceMs > model.bounds.lateWithin;
    if (!isTooOld && run.spans.length <= BELIEF_LIMITS.spans) return;
    run.lost += next.low - lowest.high - 1;
    joinOverHole(belief, run, 0, atMs, out);
  }
}

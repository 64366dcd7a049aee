/**
 * The numbers of uplinks, boot by boot: which have come, and what neighbours say of each other (protocol.md §3).
 *
 * A late uplink fills a hole and is compared with both its neighbours, whichever of the three came first. So the
 * findings are those of the set of uplinks, not of their arrival. A finding on two neighbours is about the later one in
 * order.
 */

import { FIRST_LIFE } from '../../wire/uplink-life.js';
import type { PowerModel } from '../model.js';
import { judgeHeads } from './airplane.js';
import {
  BELIEF_LIMITS,
  type Belief,
  isAfter,
  isSame,
  newRun,
  orderOfRun,
  type Run,
  type Span,
  setKey,
} from './belief.js';
import { isBack, judgeBoots } from './boots.js';
import { keyOf } from './content.js';
import { type UplinkEvent, uplinkKey, type Verdict } from './event.js';
import { endPatience, forgetHoles, forgiveFilled, judgeGaps, noticeHole } from './gap.js';
import { comparableBits, joinNeighbours, reportUnchanged, singleSpan, statePingBits } from './span.js';

/** Takes an uplink of the lock, other than a repeat, into the numbers, with the findings on it and its neighbours. */
export function judgeSequence(model: PowerModel, belief: Belief, event: UplinkEvent, out: Verdict): void {
  const { uplink, credential, life = FIRST_LIFE } = event;
  belief.uplinks += 1;
  if (uplink.dropped > 0 && !belief.hasDropped) doubtFirst(belief, out);
  if (!isAfter(belief.first, credential, life, uplink.boot, uplink.sequence)) judgeFirst(belief, event, out);
  const last = belief.runs[belief.runs.length - 1];
  const top = last?.spans[last.spans.length - 1];
  if (
    last !== undefined &&
    top !== undefined &&
    uplink.sequence === top.high + 1 &&
    last.boot === uplink.boot &&
    last.life === life &&
    last.credential === credential &&
    !uplink.power.airplane
  ) {
    noteDropped(last, event);
    judgeBoots(model, belief, last, event, out);
    extendTop(model, belief, top, event, out);
  } else insert(model, belief, event, out);
  if (belief.uplinks >= belief.gapDueUplinks) judgeGaps(model, belief, event.atMs, keyOf(event), out);
  if (uplink.body.kind === 'close_connection' && uplink.kept === 0) endPatience(belief, event, keyOf(event), out);
}

function noteDropped(run: Run, event: UplinkEvent): void {
  if (event.uplink.dropped > run.dropped) run.dropped = event.uplink.dropped;
}

/** The usual case, without a new object: the next number of the newest boot, airplane off. */
function extendTop(model: PowerModel, belief: Belief, top: Span, event: UplinkEvent, out: Verdict): void {
  const { uplink } = event;
  const repeated = top.highState & statePingBits(uplink);
  if (repeated !== 0) reportUnchanged(belief, repeated, keyOf(event), event.atMs, out);
  top.high = uplink.sequence;
  top.highState = comparableBits(model, uplink);
  top.hasAirplaneOff = true;
  top.hasTailClose = false;
}

function insert(model: PowerModel, belief: Belief, event: UplinkEvent, out: Verdict): void {
  const { uplink, atMs } = event;
  const run = runOf(model, belief, event);
  if (run === undefined) return;
  noteDropped(run, event);
  judgeBoots(model, belief, run, event, out);
  forgetHoles(model, belief, run, atMs, out);
  const { spans } = run;
  const found = spans.findIndex((span) => span.high >= uplink.sequence);
  const index = found === -1 ? spans.length : found;
  const above = spans[index];
  const below = spans[index - 1];
  // A number that came before: the second content of a conflict is nobody's neighbour.
  if (above !== undefined && above.low <= uplink.sequence) return;
  const span = singleSpan(model, uplink);
  spans.splice(index, 0, span);
  if (above !== undefined && below !== undefined) {
    // A hole becomes two, both as old as it was.
    span.holeSinceMs = above.holeSinceMs;
    span.holeSinceUplinks = above.holeSinceUplinks;
    span.isHoleOverdue = above.isHoleOverdue;
  } else if (above !== undefined && span.high + 1 < above.low) noticeHole(model, belief, above, atMs);
  else if (below !== undefined && below.high + 1 < span.low) noticeHole(model, belief, span, atMs);
  if (above !== undefined && span.high + 1 === above.low) joinNeighbours(belief, run, index, atMs, out);
  if (below !== undefined && below.high + 1 === span.low) joinNeighbours(belief, run, index - 1, atMs, out);
  if (run.reported > 0) forgiveFilled(belief, run);
  judgeHeads(belief, atMs, out);
}

/** The run of the uplink's boot; undefined where all that are kept are newer and there is no room for it. */
function runOf(model: PowerModel, belief: Belief, event: UplinkEvent): Run | undefined {
  const { credential, life = FIRST_LIFE } = event;
  const { boot } = event.uplink;
  const { runs } = belief;
  let index = runs.length;
  for (; index > 0; index--) {
    const run = runs[index - 1] as Run;
    const order = orderOfRun(run, credential, life, boot);
    if (order === 0) return run;
    if (order < 0) break;
  }
  if (runs.length >= BELIEF_LIMITS.runs) {
    // The lowest is the oldest, unless the counter went back: then it is the newest, and must not go unseen.
    if (index === 0 && !isBack(model, belief, event)) return undefined;
    runs.shift();
    index = Math.max(index - 1, 0);
  }
  const run = newRun(credential, life, boot);
  runs.splice(index, 0, run);
  return run;
}

/**
 * Before any uplink there is the lock state that the trace's header or the store knew. Only the first uplink in order
 * is compared with it, so when an earlier one comes late, what was found on that ground is withdrawn. The same where
 * the lock says that it has dropped some: one of those may have told of a change.
 */
function judgeFirst(belief: Belief, event: UplinkEvent, out: Verdict): void {
  const { first, initialLockState } = belief;
  const { body, boot, sequence } = event.uplink;
  const { credential, life = FIRST_LIFE } = event;
  if (isSame(first, credential, life, boot, sequence)) return;
  if (belief.isFirstReported) withdrawFirst(belief, out);
  setKey(first, credential, life, boot, sequence);
  const bits = statePingBits(event.uplink);
  belief.isFirstReported =
    !belief.hasDropped && bits !== 0 && body.kind === 'cellular' && body.lockState === initialLockState;
  if (belief.isFirstReported) reportUnchanged(belief, bits, keyOf(event), event.atMs, out);
}

function doubtFirst(belief: Belief, out: Verdict): void {
  belief.hasDropped = true;
  if (!belief.isFirstReported) return;
  belief.isFirstReported = false;
  withdrawFirst(belief, out);
}

function withdrawFirst({ mac, first }: Belief, out: Verdict): void {
  const about = uplinkKey(first.credential, first.life, first.boot, first.sequence);
  out.withdrawn.push({ rule: 'state-unchanged', mac, about });
}

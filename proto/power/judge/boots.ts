/**
 * boot-back (protocol.md §3): two boots of one life, of which the higher has an uplink made over 5 min before one of
 * the lower. A boot counter that goes back has lost its flash, and everything new passes for late data.
 *
 * There is one finding for each lower boot, about its lowest sequence where that was made so much later, else about the
 * uplink that was made last: that is the same in whatever order the uplinks come.
 */

import { isDatable } from '../../wire/ping-json.js';
import { FIRST_LIFE, PLAUSIBLE_FROM_MS } from '../../wire/uplink-life.js';
import type { PowerModel } from '../model.js';
import type { Belief, Run } from './belief.js';
import { finding, type UplinkEvent, type UplinkKey, uplinkKey, type Verdict } from './event.js';
import { NEVER } from './state.js';
import { describeSpan, describeTime } from './words.js';

/** Takes the time of an uplink of `run`, one of the belief's. */
export function judgeBoots(model: PowerModel, belief: Belief, run: Run, event: UplinkEvent, out: Verdict): void {
  const { timeMs, sequence } = event.uplink;
  if (!counts(timeMs)) return;
  const isEarliest = timeMs < run.earliestMs;
  if (isEarliest) run.earliestMs = timeMs;
  if (timeMs > run.latestMs || (timeMs === run.latestMs && sequence < run.latestSequence)) {
    run.latestMs = timeMs;
    run.latestSequence = sequence;
  }
  if (sequence < run.firstSequence || (sequence === run.firstSequence && timeMs > run.firstMs)) {
    run.firstSequence = sequence;
    run.firstMs = timeMs;
  }
  const { runs } = belief;
  const index = runs[runs.length - 1] === run ? runs.length - 1 : runs.indexOf(run);
  if (index < runs.length - 1) judgeBoot(model, belief, index, event.atMs, out);
  if (!isEarliest) return;
  for (let lower = index - 1; lower >= 0 && isOneLife(runs[lower] as Run, run); lower--)
    judgeBoot(model, belief, lower, event.atMs, out);
}

/** Whether an uplink was made over 5 min after one of a higher boot of its life. */
export function isBack({ bounds }: PowerModel, { runs }: Belief, event: UplinkEvent): boolean {
  const { credential, life = FIRST_LIFE, uplink } = event;
  if (!counts(uplink.timeMs)) return false;
  return runs.some((run) => {
    const isHigher = run.credential === credential && run.life === life && run.boot > uplink.boot;
    return isHigher && uplink.timeMs - run.earliestMs > bounds.bootBackOver;
  });
}

/** A clock that was never set, and a time that is none, say nothing of the order of boots. */
function counts(timeMs: number): boolean {
  return timeMs >= PLAUSIBLE_FROM_MS && isDatable(timeMs);
}

function isOneLife(one: Run, other: Run): boolean {
  return one.credential === other.credential && one.life === other.life;
}

/** Holds the run at `index` against the higher boots of its life. */
function judgeBoot({ bounds }: PowerModel, belief: Belief, index: number, atMs: number, out: Verdict): void {
  const { runs } = belief;
  const run = runs[index] as Run;
  let earliestMs = NEVER;
  for (let next = index + 1; next < runs.length && isOneLife(runs[next] as Run, run); next++)
    earliestMs = Math.min(earliestMs, (runs[next] as Run).earliestMs);
  const afterMs = earliestMs === NEVER ? NEVER : earliestMs + bounds.bootBackOver;
  if (run.latestMs <= afterMs) return;
  const isFirst = run.firstMs > afterMs;
  const sequence = isFirst ? run.firstSequence : run.latestSequence;
  if (sequence === run.backSequence) return;
  if (run.backSequence >= 0) out.withdrawn.push({ rule: 'boot-back', mac: belief.mac, about: backOf(run) });
  run.backSequence = sequence;
  const message = backMessage(belief, index, isFirst ? run.firstMs : run.latestMs, bounds.bootBackOver);
  out.findings.push(finding('boot-back', belief.mac, backOf(run), atMs, message));
}

function backOf({ credential, life, boot, backSequence }: Run): UplinkKey {
  return uplinkKey(credential, life, boot, backSequence);
}

/** Names the highest boot that had been in use by then. */
function backMessage({ runs }: Belief, index: number, timeMs: number, over: number): string {
  const run = runs[index] as Run;
  const higher = runs.findLast((each) => isOneLife(each, run) && timeMs - each.earliestMs > over) as Run;
  const before = describeSpan(timeMs - higher.earliestMs);
  return (
    `The boot counter went back: boot ${run.boot} made an uplink at ${describeTime(timeMs)}, ${before} after boot ` +
    `${higher.boot} had made one.`
  );
}

/**
 * When the lower boot of a standing boot-back began to be used, by the lock's clock, ms since the epoch: of the newest
 * life, the latest such beginning's first. Undefined where there is none.
 */
export function backSinceMs({ runs, powerFrom }: Belief): number | undefined {
  let sinceMs: number | undefined;
  for (const run of runs) {
    if (run.backSequence < 0 || run.credential !== powerFrom.credential || run.life !== powerFrom.life) continue;
    const runSinceMs = run.backSequence === run.firstSequence ? run.firstMs : run.latestMs;
    sinceMs = Math.min(sinceMs ?? NEVER, runSinceMs);
  }
  return sinceMs;
}

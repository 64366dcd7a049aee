/**
 * The rule boot-back (protocol.md §3): a boot made an uplink over 5 min after a higher boot of the same life had made
 * one. Then the lock has lost its flash and counts boots from 1 again, so all its new uplinks look like late data. (A
 * *life* is the time between two wipes of the flash that the operator has marked.) No I/O: changes only the given
 * belief (what the judge knows of the lock) and verdict (its findings). A `BootRecord` is what the belief has of one
 * boot.
 *
 * There is one finding for each lower boot. It is about the boot's uplink with the lowest sequence if that was made
 * over 5 min after an uplink of a higher boot, else about its uplink that was made last. This does not depend on the
 * order of arrival.
 */

import { isDatable } from '../../wire/ping-json.js';
import { FIRST_LIFE, PLAUSIBLE_FROM_MS } from '../../wire/uplink-life.js';
import type { PowerModel } from '../model.js';
import type { Belief, BootRecord } from './belief.js';
import { finding, type UplinkEvent, type UplinkKey, uplinkKey, type Verdict } from './event.js';
import { NEVER } from './state.js';
import { describeSpan, describeTime } from './words.js';

/** Judges the time of an uplink of the boot to which `record`, a member of `belief.runs`, belongs. */
export function judgeBoots(
  model: PowerModel,
  belief: Belief,
  record: BootRecord,
  event: UplinkEvent,
  verdict: Verdict,
): void {
  const { timeMs, sequence } = event.uplink;
  if (!isUsableTime(timeMs)) return;
  const isEarliest = timeMs < record.earliestMs;
  if (isEarliest) record.earliestMs = timeMs;
  if (timeMs > record.latestMs || (timeMs === record.latestMs && sequence < record.latestSequence)) {
    record.latestMs = timeMs;
    record.latestSequence = sequence;
  }
  if (sequence < record.firstSequence || (sequence === record.firstSequence && timeMs > record.firstMs)) {
    record.firstSequence = sequence;
    record.firstMs = timeMs;
  }
  const { runs } = belief;
  const index = runs[runs.length - 1] === record ? runs.length - 1 : runs.indexOf(record);
  if (index < runs.length - 1) judgeBoot(model, belief, index, event.atMs, verdict);
  // Lower boots are compared with this boot's earliest time, so only a new one can change their findings.
  if (!isEarliest) return;
  for (let lower = index - 1; lower >= 0 && isSameLife(runs[lower] as BootRecord, record); lower--)
    judgeBoot(model, belief, lower, event.atMs, verdict);
}

/** Whether the uplink was made over 5 min after an uplink of a higher boot of its life. */
export function isBootBack({ bounds }: PowerModel, { runs }: Belief, event: UplinkEvent): boolean {
  const { credential, life = FIRST_LIFE, uplink } = event;
  if (!isUsableTime(uplink.timeMs)) return false;
  return runs.some((record) => {
    const isHigher = record.credential === credential && record.life === life && record.boot > uplink.boot;
    return isHigher && uplink.timeMs - record.earliestMs > bounds.bootBackOver;
  });
}

/** Whether the time shows when a boot was in use: it is a valid date, by a clock that has been set. */
function isUsableTime(timeMs: number): boolean {
  return timeMs >= PLAUSIBLE_FROM_MS && isDatable(timeMs);
}

function isSameLife(a: BootRecord, b: BootRecord): boolean {
  return a.credential === b.credential && a.life === b.life;
}

/** Compares the boot at `index` of `belief.runs` with the higher boots of its life. */
function judgeBoot({ bounds }: PowerModel, belief: Belief, index: number, atMs: number, verdict: Verdict): void {
  const { runs } = belief;
  const record = runs[index] as BootRecord;
  let earliestMs = NEVER;
  for (let next = index + 1; next < runs.length && isSameLife(runs[next] as BootRecord, record); next++)
    earliestMs = Math.min(earliestMs, (runs[next] as BootRecord).earliestMs);
  const afterMs = earliestMs === NEVER ? NEVER : earliestMs + bounds.bootBackOver;
  if (record.latestMs <= afterMs) return;
  const isAboutFirst = record.firstMs > afterMs;
  const sequence = isAboutFirst ? record.firstSequence : record.latestSequence;
  if (sequence === record.backSequence) return;
  if (record.backSequence >= 0)
    verdict.withdrawn.push({ rule: 'boot-back', mac: belief.mac, about: bootBackKey(record) });
  record.backSequence = sequence;
  const message = bootBackMessage(belief, index, isAboutFirst ? record.firstMs : record.latestMs, bounds.bootBackOver);
  verdict.findings.push(finding('boot-back', belief.mac, bootBackKey(record), atMs, message));
}

function bootBackKey({ credential, life, boot, backSequence }: BootRecord): UplinkKey {
  return uplinkKey(credential, life, boot, backSequence);
}

/** The sentence of the finding. It names the highest boot that had been in use by then. */
function bootBackMessage({ runs }: Belief, index: number, timeMs: number, bootBackOver: number): string {
  const record = runs[index] as BootRecord;
  // There is one, or there would be no finding.
  const higher = runs.findLast(
    (each) => isSameLife(each, record) && timeMs - each.earliestMs > bootBackOver,
  ) as BootRecord;
  const before = describeSpan(timeMs - higher.earliestMs);
  return (
    `The boot counter went back: boot ${record.boot} made an uplink at ${describeTime(timeMs)}, ${before} after boot ` +
    `${higher.boot} had made one.`
  );
}

/**
 * Since when the boot counter has been back, by the lock's clock, ms since the epoch: the earliest time of the uplinks
 * with a boot-back finding in the newest life. Undefined if there is no such finding.
 */
export function bootBackSinceMs({ runs, powerFrom }: Belief): number | undefined {
  let sinceMs: number | undefined;
  for (const record of runs) {
    if (record.backSequence < 0 || record.credential !== powerFrom.credential || record.life !== powerFrom.life)
      continue;
    const runSinceMs = record.backSequence === record.firstSequence ? record.firstMs : record.latestMs;
    sinceMs = Math.min(sinceMs ?? NEVER, runSinceMs);
  }
  return sinceMs;
}

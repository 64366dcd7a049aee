/** Explains what the gateway refused from a lock before a given time: a sentence each, newest first. Pure. */

import { SECTIONS, step, type WhyStep } from '../../proto/why/step.js';
import { formatDate } from '../../proto/wire/ping-json.js';
import type { RefusalReason } from '../mqtt/refusals/refusal-reason.js';
import type { Refusal } from '../store/contract/devices/refusal-store.js';

const MAX_SHOWN_REFUSALS = 3;

/** Why a CONNECT was refused, worded to follow "because". Other reasons use the stored sentence. */
export const CONNECT_WHY: Readonly<Partial<Record<RefusalReason, string>>> = Object.freeze({
  'wrong-secret': 'the password was wrong',
  revoked: 'its password belongs to a revoked credential',
  expired: 'its password belongs to an expired credential',
  'merchant-closed': 'its merchant is closed',
  will: 'it carried a will message, which no lock has',
  identity: 'client id and user name were not both the MAC as 12 upper-case hex digits',
  'unknown-lock': 'there was no such lock',
});

/** What was refused, worded to follow "The last". */
const SUBJECTS: Readonly<Record<Exclude<Refusal['what'], 'connect'>, string>> = Object.freeze({
  publish: 'PUBLISH that was refused',
  subscribe: 'SUBSCRIBE that was refused',
  packet: 'packet that was refused',
  connection: 'connection that was closed',
});

/**
 * The steps for the latest refusals up to `atMs`, by the run's clock (wall-clock time, except in a sped-up simulation).
 */
export function refusalSteps(refusals: readonly Refusal[], atMs: number): WhyStep[] {
  const startedBefore = refusals.filter(({ firstAtMs }) => firstAtMs <= atMs);
  return startedBefore.slice(0, MAX_SHOWN_REFUSALS).map((refusal) => {
    const { what, reason, lastAtMs, firstAtMs } = refusal;
    // Repeats of a refusal share one record. If its last occurrence is after the time, only the first is certain.
    const shownMs = lastAtMs <= atMs ? lastAtMs : firstAtMs;
    const sentence = `${sentenceOf(refusal, shownMs)}${timesText(refusal, atMs)}.`;
    return step('refused', `${what}-${reason}`, SECTIONS.wire, sentence, shownMs);
  });
}

function sentenceOf({ source, what, reason, why, address }: Refusal, atMs: number): string {
  const senderText = source === 'phone' ? ' of a phone' : '';
  const timeAndAddress = `${formatDate(atMs)}, from ${address}`;
  if (what !== 'connect') return `The last ${SUBJECTS[what]}${senderText} came at ${timeAndAddress}: ${why}`;
  const plainReason = CONNECT_WHY[reason as RefusalReason];
  const because = plainReason === undefined ? `: ${why}` : `, because ${plainReason}`;
  return `The last CONNECT${senderText} was refused at ${timeAndAddress}${because}`;
}

/** How often this was refused. The store has only the first and the last time, and the total. */
function timesText({ count, firstAtMs, lastAtMs }: Refusal, atMs: number): string {
  if (count === 1) return '';
  if (lastAtMs > atMs) return ' (and again after that time)';
  return ` (${count.toLocaleString('en')} times for this reason since ${formatDate(firstAtMs)})`;
}

/** What was refused of a lock before a moment, newest first: a sentence each, with its reason in plain words. Pure. */

import { SECTIONS, step, type WhyStep } from '../../proto/why/step.js';
import { toDate } from '../../proto/wire/ping-json.js';
import type { RefusalReason } from '../mqtt/refusals/refusal-reason.js';
import type { Refusal } from '../store/contract/refusal-store.js';

/** Refusals that are shown, at the most. */
const REFUSALS_TOLD = 3;

/** Why a CONNECT was refused, where the sentence for operators would not read on behind "because". */
export const CONNECT_WHY: Readonly<Partial<Record<RefusalReason, string>>> = Object.freeze({
  'wrong-secret': 'the password was wrong',
  revoked: 'its password was that of a credential that is revoked',
  expired: 'its password was that of a credential that has expired',
  will: 'it carried a will, and no lock has one',
  identity: 'client id and user name were not both the MAC as 12 upper-case hex digits',
  'unknown-lock': 'there was no such lock',
});

const NAMES: Readonly<Record<Exclude<Refusal['what'], 'connect'>, string>> = Object.freeze({
  publish: 'PUBLISH that was refused',
  subscribe: 'SUBSCRIBE that was refused',
  packet: 'packet that was refused',
  connection: 'connection that was cut',
});

/** The steps for what was refused up to a moment, by the run's clock. */
export function refusalSteps(refusals: readonly Refusal[], atMs: number): WhyStep[] {
  const before = refusals.filter(({ firstAtMs }) => firstAtMs <= atMs);
  return before.slice(0, REFUSALS_TOLD).map((refusal) => {
    const { what, reason, lastAtMs, firstAtMs } = refusal;
    const shownMs = lastAtMs <= atMs ? lastAtMs : firstAtMs;
    const sentence = `${sentenceOf(refusal, shownMs)}${timesText(refusal, atMs)}.`;
    return step('refused', `${what}-${reason}`, SECTIONS.wire, sentence, shownMs);
  });
}

function sentenceOf({ source, what, reason, why, address }: Refusal, atMs: number): string {
  const whose = source === 'phone' ? ' of a phone' : '';
  const where = `${toDate(atMs)}, from ${address}`;
  if (what !== 'connect') return `The last ${NAMES[what]}${whose} came at ${where}: ${why}`;
  const plain = CONNECT_WHY[reason as RefusalReason];
  const because = plain === undefined ? `: ${why}` : `, because ${plain}`;
  return `The last CONNECT${whose} was refused at ${where}${because}`;
}

/** How often the same was refused; of a moment in between only since when is known. */
function timesText({ count, firstAtMs, lastAtMs }: Refusal, atMs: number): string {
  if (count === 1) return '';
  if (lastAtMs > atMs) return ' (and again behind that moment)';
  return ` (${count.toLocaleString('en')} times for this reason since ${toDate(firstAtMs)})`;
}

/**
 * Parses the subject of a "why" question, as an operator types or pastes it: an event, a delivery, an uplink by its
 * boot and sequence, a finding, a command, a quarantined message, or a lock. Pure.
 */
import { LockgateError } from '../../proto/errors.js';
import { type Mac, parseMac } from '../../proto/wire/mac.js';
import { type EventKey, parseEventId } from '../webhooks/event-id.js';

export type Subject =
  | { readonly kind: 'event'; readonly id: string; readonly key: EventKey; readonly urlId?: number }
  /** The id of a test webhook, which is no event. */
  | { readonly kind: 'test-webhook'; readonly id: string }
  | { readonly kind: 'uplink'; readonly mac: Mac; readonly boot: number; readonly sequence: number }
  | { readonly kind: 'finding' | 'command' | 'quarantine'; readonly id: number }
  | { readonly kind: 'lock'; readonly mac: Mac };

const EXPECTED_FORMS =
  'evt_… (an event), evt_…/1 (its delivery to URL 1), finding:12, command:7, quarantine:3, a MAC with 41/12 (an ' +
  'uplink by boot and sequence), or only a MAC';

/** Longer than any valid subject. */
const MAX_SUBJECT_CHARS = 200;
/** How much of a text that is not understood the error quotes. */
const MAX_QUOTED_CHARS = 60;

/** An event's id, with a URL's id after `/` or `@` for its delivery to this URL. */
const DELIVERY_FORM = /^(?:delivery[: ]\s*)?(evt_[0-9A-Za-z_]+)(?:[/@](\d{1,9}))?$/;
/** Such as `finding:12` or `command #7`. */
const NUMBERED_FORM = /^(finding|command|quarantine)[: ]\s*#?(\d{1,15})$/i;
/** A MAC, and boot and sequence of one of its uplinks, such as `A4:C1:38:F0:E1:D2 41/12`. */
const UPLINK_FORM = /^(.+?)[\s#]+(\d{1,10})\/(\d{1,10})$/;

/** @throws LockgateError `input-why`, which names the accepted forms */
export function parseSubject(text: string): Subject {
  const given = text.trim().replace(/\s+/g, ' ');
  const delivery = DELIVERY_FORM.exec(given);
  if (given.length <= MAX_SUBJECT_CHARS && delivery !== null) return parseEvent(given, delivery[1] ?? '', delivery[2]);
  const numbered = NUMBERED_FORM.exec(given);
  if (numbered !== null)
    return { kind: numbered[1]?.toLowerCase() as 'finding' | 'command' | 'quarantine', id: Number(numbered[2]) };
  const uplink = UPLINK_FORM.exec(given);
  const mac = parseMac(uplink === null ? given : (uplink[1] ?? ''));
  if (!mac.ok) throw notUnderstood(given);
  if (uplink === null) return { kind: 'lock', mac: mac.value };
  return { kind: 'uplink', mac: mac.value, boot: Number(uplink[2]), sequence: Number(uplink[3]) };
}

function parseEvent(given: string, id: string, url: string | undefined): Subject {
  if (id.startsWith('evt_test_')) return { kind: 'test-webhook', id };
  const key = parseEventId(id);
  if (key === undefined) throw notUnderstood(given);
  return { kind: 'event', id, key, ...(url !== undefined && { urlId: Number(url) }) };
}

function notUnderstood(given: string): LockgateError {
  const shown = given.length > MAX_QUOTED_CHARS ? `${given.slice(0, MAX_QUOTED_CHARS)}…` : given;
  if (/^#?\d+$/.test(given)) {
    const id = given.replace('#', '');
    const choices = `finding:${id}, command:${id} or quarantine:${id}`;
    return new LockgateError('input-why', `${shown} is ambiguous: use ${choices}`);
  }
  if (/^#?\d+\/\d+$/.test(given)) {
    const example = `A4:C1:38:F0:E1:D2 ${given.replace('#', '')}`;
    return new LockgateError(
      'input-why',
      `${shown} names an uplink but no lock: put the MAC before it, such as ${example}`,
    );
  }
  return new LockgateError('input-why', `${JSON.stringify(shown)} can't be explained: expected ${EXPECTED_FORMS}`);
}

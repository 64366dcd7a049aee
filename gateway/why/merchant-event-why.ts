/** Says what an event for merchants that is not a ping is about, as a step of a "why" answer. Pure. */
import { SECTIONS, step, type WhyStep } from '../../proto/why/step.js';
import type { StoredUplink } from '../store/contract/log/stored-uplink.js';
import { merchantEventBody } from '../webhooks/payload/merchant-event-body.js';
import type { MerchantEventPayload } from '../webhooks/payload/merchant-event-schema.js';

/** What happened. */
export function merchantEventStep(stored: StoredUplink): WhyStep {
  const sentence = stored.isDamaged ? 'Its stored content is damaged.' : sentenceOf(merchantEventBody(stored));
  return step('message', stored.isDamaged ? 'damaged' : 'event', SECTIONS.events, sentence, stored.receivedAtMs);
}

function sentenceOf(body: MerchantEventPayload): string {
  const notPing = 'It is no ping, and goes only to URLs that are set to get such events (webhook set --events).';
  if (body.type === 'command') {
    const detail = body.detail === '' ? '' : `, ${body.detail}`;
    return `Command ${body.command_id} (${body.command}) ended: ${body.state}${detail}. ${notPing}`;
  }
  if (body.type === 'battery') return `The battery is ${body.battery}, at ${body.battery_percent} %. ${notPing}`;
  const since = body.late_since;
  return body.presence === 'late'
    ? `The lock has been late since ${since}. ${notPing}`
    : `The lock, late since ${since}, is back. ${notPing}`;
}

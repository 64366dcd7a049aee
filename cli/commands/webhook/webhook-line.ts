/** Formats a received webhook as one line, for `webhook listen` and the demo. */
import { paint, sanitizeLine } from '../../terminal/output.js';
import { cutToWidth } from '../../terminal/text-width.js';
import type { ReceivedWebhook } from './receiver-answer.js';

/** The line, cut to `width` columns if given. `answer` is the receiver's answer, or empty to leave it out. */
export function webhookLine(webhook: ReceivedWebhook, width?: number, answer = ''): string {
  const body = parse(webhook.body);
  // `verified` is undefined if the receiver has no secret to verify with.
  const verdict = {
    true: ['green', 'verified'],
    false: ['red', 'NOT VERIFIED'],
    undefined: ['yellow', 'unverified'],
  } as const;
  const [style, word] = verdict[`${webhook.verified}`];
  // `06:00:00` of `2026-11-20T06:00:00.120Z`.
  const timeOfDay = typeof body.received_at === 'string' ? body.received_at.slice(11, 19) : '--:--:--';
  const mac = typeof body.mac_addr === 'string' ? body.mac_addr : '?';
  const head = `${timeOfDay} ${mac.padEnd(17)} `;
  const test = body.test === true ? 'test' : '';
  const words = [test, body.reason, body.lock_state, `${body.battery_percent}%`, webhook.why ?? '', answer, webhook.id];
  const text = sanitizeLine(words.filter((part) => part !== '').join(' '));
  const room = width === undefined ? Number.POSITIVE_INFINITY : width - head.length - 'hook  '.length - word.length - 1;
  return `${head}${paint('magenta', 'hook')}  ${paint(style, word)} ${cutToWidth(text, room)}`;
}

function parse(text: string): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

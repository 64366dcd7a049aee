import { oneLine, paint } from './output.js';
import type { ReceivedWebhook } from './receiver.js';

/** One readable line for a webhook that came in. */
export function webhookLine(webhook: ReceivedWebhook, width?: number): string {
  const body = parse(webhook.body);
  const verdict = {
    true: ['green', 'verified'],
    false: ['red', 'NOT VERIFIED'],
    undefined: ['yellow', 'unverified'],
  } as const;
  const [style, word] = verdict[`${webhook.verified}`];
  const at = typeof body.received_at === 'string' ? body.received_at.slice(11, 19) : '--:--:--';
  const mac = typeof body.mac_addr === 'string' ? body.mac_addr : '?';
  const head = `${at} ${mac.padEnd(17)} `;
  const what = [body.reason, body.lock_state, `${body.battery_percent}%`, webhook.why ?? '', webhook.id];
  const text = oneLine(what.filter((part) => part !== '').join(' '));
  const room = width === undefined ? Number.POSITIVE_INFINITY : width - head.length - 5 - word.length - 2;
  const letters = [...text];
  const shown = letters.length > room ? `${letters.slice(0, Math.max(room - 1, 0)).join('')}…` : text;
  return `${head}${paint('magenta', 'hook')}  ${paint(style, word)} ${shown}`;
}

function parse(text: string): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Makes the bodies of many events, in slices between which other work runs. */
import type { StoredUplink } from '../store/contract/log/stored-uplink.js';
import { webhookBody } from './payload/body.js';
import type { WebhookPayload } from './payload/schema.js';

/** Bodies that are made in one turn of the event loop, which takes some 0.5 ms. */
const BODIES_PER_TURN = 20;

/**
 * Returns the body of each ping. A damaged ping is left out, as webhooks leave it out.
 *
 * @param turns waits for other work; rejects if the signal is aborted
 */
export async function eventBodies(
  pings: readonly StoredUplink[],
  turns: { next(signal?: AbortSignal): Promise<void> },
  signal?: AbortSignal,
): Promise<WebhookPayload[]> {
  const bodies: WebhookPayload[] = [];
  for (const [index, ping] of pings.entries()) {
    if (index % BODIES_PER_TURN === 0) await turns.next(signal);
    const body = bodyOf(ping);
    if (body !== undefined) bodies.push(body);
  }
  return bodies;
}

function bodyOf(ping: StoredUplink): WebhookPayload | undefined {
  if (ping.isDamaged) return undefined;
  try {
    return webhookBody(ping);
  } catch {
    return undefined;
  }
}

/** Finds the lock or phone that a client id, a topic or a CSV cell names. Pure. */
import { type Mac, macFromWire, parseMac } from '../../proto/wire/mac.js';
import type { Source } from '../../proto/wire/ping.js';

/** A lock itself, or a phone that acts for it. */
export interface Sender {
  readonly mac: Mac;
  readonly source: Source;
}

/** The client id of a phone, such as `phone-A4C138F0E1D2-7f3a`: the MAC of its lock, and what names the phone. */
const PHONE = /^phone-([0-9A-F]{12})-[0-9A-Za-z]{1,32}$/;

/** The sender with this client id (protocol.md §1), or with a lock's MAC in any common spelling. */
export function senderOf(clientId: string): Sender | undefined {
  const phoneDigits = PHONE.exec(clientId)?.[1];
  const phoneMac = phoneDigits === undefined ? undefined : macFromWire(phoneDigits);
  if (phoneMac !== undefined) return { mac: phoneMac, source: 'phone' };
  const mac = parseMac(clientId);
  return mac.ok ? { mac: mac.value, source: 'lock' } : undefined;
}

/** The sender that a level of a topic names, such as `bikes/A4C138F0E1D2/up`. lockgate's own topics name none. */
export function senderInTopic(topic: string): Sender | undefined {
  for (const level of topic.split('/')) {
    const sender = senderOf(level);
    if (sender !== undefined) return sender;
  }
  return undefined;
}

/**
 * Whether a topic carries uplinks (messages of locks) or commands to locks: its last level is `up` or `down`; null for
 * any other topic.
 */
export function directionOf(topic: string): 'up' | 'down' | null {
  const lastLevel = topic.slice(topic.lastIndexOf('/') + 1);
  return lastLevel === 'up' || lastLevel === 'down' ? lastLevel : null;
}

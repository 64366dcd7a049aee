/**
 * Handles a SUBSCRIBE that names a topic filter more than once. The broker library answers only the last of equal
 * filters, but its SUBACK must have a return code for each filter (MQTT 3.1.1, 3.8.4-5). So all but the last are marked
 * with U+0000, which no topic filter may contain (MQTT 3.1.1, 4.7.3-2): the library then treats them as different.
 */
import type { ISubscribePacket, Packet } from 'mqtt-packet';

const MARK = '\0';

/** The library's parser, which its types do not declare. */
interface ClientWithParser {
  readonly _parser: { prependListener(name: 'packet', listener: (packet: Packet) => void): unknown };
}

/** Makes the library answer a client's repeated filters one by one. Call once, when the library has the CONNECT. */
export function answerRepeatedFilters(client: object): void {
  // Before the library's own listener, which starts to answer the packet.
  (client as ClientWithParser)._parser.prependListener('packet', markRepeated);
}

/** The topic filter that the client sent, without a mark. */
export function sentTopicFilter({ topic }: { readonly topic: string }): string {
  const end = topic.indexOf(MARK);
  return end === -1 ? topic : topic.slice(0, end);
}

function markRepeated(packet: Packet): void {
  if (packet.cmd !== 'subscribe' || packet.subscriptions.length === 1) return;
  const { subscriptions } = packet as ISubscribePacket;
  const seen = new Set<string>();
  for (let index = subscriptions.length - 1; index >= 0; index--) {
    const subscription = subscriptions[index] as (typeof subscriptions)[number];
    const { topic } = subscription;
    if (seen.has(topic)) subscription.topic = `${topic}${MARK}${index}`;
    else seen.add(topic);
  }
}

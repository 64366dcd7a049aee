/**
 * Defines the two topics and checks their use (protocol.md §1): a lock publishes to `up` and subscribes to `down`, a
 * phone publishes to `up`. Anything else is refused, with a sentence for operators. Pure.
 */
import type { Source } from '../../../proto/wire/ping.js';
import type { RefusalCause } from '../refusals/refusal-reason.js';

/** The topic of uplinks and the topic of downlinks. */
export const UP_TOPIC = 'up';
export const DOWN_TOPIC = 'down';

/** How much of a refused topic operators see. */
const SHOWN_TOPIC_CHARS = 64;

/** The header of a PUBLISH. */
export interface PublishHeader {
  readonly topic: string;
  readonly qos: number;
  readonly retain: boolean;
}

/** Why a publish is refused; undefined if it is allowed. */
export function publishFault({ topic, qos, retain }: PublishHeader): RefusalCause | undefined {
  if (topic !== UP_TOPIC)
    return { reason: 'topic', why: `topic ${shown(topic)}: a lock publishes only to ${JSON.stringify(UP_TOPIC)}` };
  if (qos === 2) return { reason: 'qos-2', why: 'QoS 2: a lock publishes at QoS 1 or 0' };
  return retain ? { reason: 'retained', why: 'a retained publish: the gateway retains no messages' } : undefined;
}

/** Why a subscription is refused; undefined if it is allowed. */
export function subscribeFault(source: Source, topic: string, qos: number): RefusalCause | undefined {
  if (source === 'phone') return { reason: 'phone', why: 'a phone may not subscribe' };
  if (topic !== DOWN_TOPIC) return { reason: 'topic', why: `topic ${shown(topic)}` };
  return qos === 2 ? { reason: 'qos-2', why: 'QoS 2: a lock subscribes at QoS 1 or 0' } : undefined;
}

function shown(topic: string): string {
  return JSON.stringify(topic.slice(0, SHOWN_TOPIC_CHARS));
}

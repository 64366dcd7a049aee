/**
 * The two topics, and what may be done with them (protocol.md §1): a lock publishes to `up` and subscribes to `down`, a
 * phone publishes to `up`. Whatever else is asked for is refused, with a sentence for operators.
 */
import type { Source } from '../../../proto/wire/ping.js';
import type { RefusalCause } from '../refusals/refusal-reason.js';

/** Uplinks travel on this topic, downlinks on the other; there are no more. */
export const UP_TOPIC = 'up';
export const DOWN_TOPIC = 'down';

/** What a stranger names is shown to operators, but not at any length. In characters. */
const SHOWN_TOPIC = 64;

/** What a PUBLISH says of itself. */
export interface Publishing {
  readonly topic: string;
  readonly qos: number;
  readonly retain: boolean;
}

/** Why a publish is not taken; undefined when it is. */
export function publishFault({ topic, qos, retain }: Publishing): RefusalCause | undefined {
  if (topic !== UP_TOPIC)
    return { reason: 'topic', why: `topic ${shown(topic)}: a lock publishes to ${JSON.stringify(UP_TOPIC)} alone` };
  if (qos === 2) return { reason: 'qos-2', why: 'QoS 2: a lock publishes at QoS 1, or 0' };
  return retain ? { reason: 'retained', why: 'a retained publish: nothing is retained here' } : undefined;
}

/** Why a subscription is not granted; undefined when it is. */
export function subscribeFault(source: Source, topic: string, qos: number): RefusalCause | undefined {
  if (source === 'phone') return { reason: 'phone', why: 'a phone subscribes to nothing' };
  if (topic !== DOWN_TOPIC) return { reason: 'topic', why: `topic ${shown(topic)}` };
  return qos === 2 ? { reason: 'qos-2', why: 'QoS 2: a lock subscribes at QoS 1, or 0' } : undefined;
}

function shown(topic: string): string {
  return JSON.stringify(topic.slice(0, SHOWN_TOPIC));
}

/**
 * The two topics and what is allowed on them (protocol.md §1): a lock publishes to `up` and subscribes to `down`, a
 * phone publishes to `up`. Anything else is refused, with a sentence for operators.
 */
import type { Source } from '../../../proto/wire/ping.js';
import type { RefusalCause } from '../refusals/refusal-reason.js';

/** The topic of uplinks, and that of downlinks; there are no others. */
export const UP_TOPIC = 'up';
export const DOWN_TOPIC = 'down';

/** How much of a foreign topic operators are shown, in characters. */
const SHOWN_TOPIC = 64;

/** The header of a PUBLISH. */
export interface Publishing {
  readonly topic: string;
  readonly qos: number;
  readonly retain: boolean;
}

/** Why a publish is refused; undefined where it is not. */
export function publishFault({ topic, qos, retain }: Publishing): RefusalCause | undefined {
  if (topic !== UP_TOPIC)
    return { reason: 'topic', why: `topic ${shown(topic)}: a lock publishes to ${JSON.stringify(UP_TOPIC)} alone` };
  if (qos === 2) return { reason: 'qos-2', why: 'QoS 2: a lock publishes at QoS 1, or 0' };
  return retain ? { reason: 'retained', why: 'a retained publish: nothing is retained here' } : undefined;
}

/** Why a subscription is refused; undefined where it is not. */
export function subscribeFault(source: Source, topic: string, qos: number): RefusalCause | undefined {
  if (source === 'phone') return { reason: 'phone', why: 'a phone subscribes to nothing' };
  if (topic !== DOWN_TOPIC) return { reason: 'topic', why: `topic ${shown(topic)}` };
  return qos === 2 ? { reason: 'qos-2', why: 'QoS 2: a lock subscribes at QoS 1, or 0' } : undefined;
}

function shown(topic: string): string {
  return JSON.stringify(topic.slice(0, SHOWN_TOPIC));
}

/** The JSON Schema of each kind of event in a trace (protocol.md §4). Pure data. */
import type { DisconnectCause } from '../../power/judge/event.js';
import type { Source } from '../../wire/ping.js';
import type { TraceEvent } from '../trace.js';
import {
  closedObject,
  count,
  described,
  flag,
  type JsonSchema,
  nullable,
  number,
  oneWord,
  ref,
  text,
  words,
} from './json-schema.js';

const SOURCES = ['lock', 'phone'] as const satisfies readonly Source[];
/** The lock said goodbye, the network broke, the keepalive ran out, the lock connected anew, the gateway ended it. */
const CAUSES = ['closed', 'dropped', 'keepalive', 'takeover', 'gateway'] as const satisfies readonly DisconnectCause[];

const AT = described('date', 'When it happened, or when an uplink was received. It never goes back from line to line.');
const SOURCE = words(SOURCES, 'Who did it: the lock, or a phone that acts for it. Default lock.');

type Members = Readonly<Record<string, JsonSchema>>;

function event(name: TraceEvent['event'], members: Members, required: readonly string[], says: string): JsonSchema {
  const properties = { at: AT, event: oneWord(name, 'The kind of event.'), ...members };
  return closedObject(properties, ['at', 'event', ...required], says);
}

const OF_LOCK = { mac: ref('mac') };

/** An object with the member `raw`: the encoded bytes of an uplink. */
const HAS_BYTES: JsonSchema = { type: 'object', properties: { raw: true }, required: ['raw'] };

/**
 * The event of a ping or an acknowledgement: either all its members, or `raw` and any of them. `raw` may be a member of
 * the line or of the object `ping` or `ack`.
 */
function uplinkEvent(name: 'ping' | 'ack', says: string): JsonSchema {
  const members = {
    ...OF_LOCK,
    source: SOURCE,
    credential: ref('credential'),
    raw: described('base64', 'The bytes of the uplink. They take precedence; a member that differs is an error.'),
    [name]: { type: 'object', description: `The ${name === 'ping' ? 'ping' : 'acknowledgement'}.` },
  };
  return {
    ...event(name, members, ['mac'], says),
    if: { anyOf: [HAS_BYTES, { type: 'object', properties: { [name]: HAS_BYTES }, required: [name] }] },
    // biome-ignore lint/suspicious/noThenProperty: it is a keyword of JSON Schema, and nothing awaits this object.
    then: { properties: { [name]: ref(`${name}_beside_bytes`) } },
    else: { required: [name], properties: { [name]: ref(name) } },
  };
}

const FIX = closedObject(
  {
    latitude: number('Degrees north.'),
    longitude: number('Degrees east.'),
    speed: number('Metres per second. Default 0.'),
    direction: number('Degrees clockwise from north. Default 0.'),
  },
  ['latitude', 'longitude'],
  'Where the lock truly was, and how it moved.',
);

const WORLD_MEMBERS: Members = {
  boot: { description: 'The lock booted: its boot counter, or true.', anyOf: [count(''), { const: true }] },
  moving: flag('Whether the lock is in motion.'),
  lock_state: words(['locked', 'unlocked'], 'The state of the shackle.'),
  coverage: flag('Whether the network reaches the lock.'),
  sky: flag('Whether the receiver sees enough of the sky for a fix.'),
  battery_percent: count('The battery, in percent.'),
  ebike_voltage: nullable(number('The voltage of the e-bike’s battery, in volts; null if none is connected.')),
  tether_state: words(['attached', 'detached', 'unknown'], 'Whether the tether is plugged into the lock.'),
  power: described('changed_power', 'The settings that were changed at the lock itself.'),
  modem_reset: { const: true, description: 'The modem restarted.' },
  fix: FIX,
};

/** An open object: a test bench may add members of its own. */
const WORLD: JsonSchema = {
  ...event(
    'world',
    { mac: described('mac', 'The lock; left out if the event is not about one.'), ...WORLD_MEMBERS },
    [],
    'What truly happened around a lock. The judge never reads it; `trace check --world` does.',
  ),
  additionalProperties: true,
};

/** The definitions of events, by the names of their kinds with `_event`. */
export const EVENT_DEFINITIONS: Readonly<Record<`${TraceEvent['event']}_event`, JsonSchema>> = {
  connect_event: event('connect', { ...OF_LOCK, source: SOURCE }, ['mac'], 'A lock or a phone connected.'),
  disconnect_event: event(
    'disconnect',
    { ...OF_LOCK, source: SOURCE, cause: words(CAUSES, 'How the connection ended.') },
    ['mac', 'cause'],
    'A connection ended.',
  ),
  ping_event: uplinkEvent('ping', 'A ping was received.'),
  ack_event: uplinkEvent('ack', 'The acknowledgement of a command was received.'),
  command_event: event('command', { ...OF_LOCK, command: ref('command') }, ['mac', 'command'], 'A command was sent.'),
  tick_event: event('tick', { note: text('A remark for people.') }, [], 'Time passed, and nothing was received.'),
  gateway_event: event(
    'gateway',
    { state: words(['start', 'stop'], 'Whether the gateway started or stopped listening.') },
    ['state'],
    'The gateway started or stopped listening.',
  ),
  world_event: WORLD,
};

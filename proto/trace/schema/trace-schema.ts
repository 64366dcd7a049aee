/**
 * The JSON Schema of the trace format (docs/trace.schema.json, described in docs/traces.md): one schema for each line
 * of a trace. It says what a line may be by itself. What a line may be after other lines only the reader can say, such
 * as that `at` never goes back. test/proto/trace/schema.test.ts compares the schema with the reader in both directions.
 */
import type { LockState } from '../../wire/ping.js';
import { MAX_REFLASH_MARKS } from '../../wire/uplink-life.js';
import { MAX_COMMANDS_BEFORE } from '../header-reader.js';
import { TRACE_NAME, TRACE_VERSION } from '../trace.js';
import { EVENT_DEFINITIONS } from './event-schema.js';
import {
  closedObject,
  described,
  flag,
  type JsonSchema,
  MAC_PATTERN,
  nullable,
  ref,
  text,
  VALUE_DEFINITIONS,
  words,
} from './json-schema.js';
import { SETTINGS_DEFINITIONS } from './settings-schema.js';
import { UPLINK_DEFINITIONS } from './uplink-schema.js';

const LOCK_STATES = ['locked', 'unlocked', 'unknown'] as const satisfies readonly LockState[];

const HEADER_LOCK = closedObject(
  {
    power: described('header_power', 'The power settings. Left out: mode MID, switches off.'),
    high_window: described('high_window', 'The high window. Left out: 07:00 to 19:00, UTC.'),
    lock_state: words(LOCK_STATES, 'The lock state. Left out: unknown.'),
    connected: flag('Whether the lock is connected. Default false.'),
    last_period: nullable(described('date', 'When its last daily ping was made. Left out or null: not known.')),
    reflashed: {
      type: 'array',
      maxItems: MAX_REFLASH_MARKS,
      items: ref('date'),
      description: 'When its flash was wiped, so that its boots counted from 1 again. Left out: never.',
    },
    commands: {
      type: 'array',
      maxItems: MAX_COMMANDS_BEFORE,
      items: ref('earlier_command'),
      description: 'What it was sent in the 24 h before, or had not expired. Left out: not known.',
    },
  },
  [],
  'What is known of a lock before the first event. Every member may be left out.',
);

const HEADER = closedObject(
  {
    trace: { const: TRACE_NAME, description: 'The name of the format.' },
    version: { const: TRACE_VERSION, description: 'The version of the format.' },
    note: text('A remark for people.'),
    locks: {
      type: 'object',
      propertyNames: { pattern: MAC_PATTERN },
      additionalProperties: ref('header_lock'),
      description: 'Locks by their MACs. One that is not named here starts with every member left out.',
    },
  },
  ['trace', 'version'],
  'The first line of a trace.',
);

/** The schema. */
export const TRACE_SCHEMA: JsonSchema = Object.freeze({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'TraceLine',
  description:
    'One line of a trace of lockgate. The first line is a header, each further line an event; empty lines are ' +
    'skipped. The format is described in docs/traces.md.',
  oneOf: [ref('header'), ref('event')],
  $defs: {
    header: HEADER,
    event: { description: 'Any event.', oneOf: Object.keys(EVENT_DEFINITIONS).map((name) => ref(name)) },
    ...EVENT_DEFINITIONS,
    header_lock: HEADER_LOCK,
    ...UPLINK_DEFINITIONS,
    ...SETTINGS_DEFINITIONS,
    ...VALUE_DEFINITIONS,
  },
});

/** The text of docs/trace.schema.json. */
export function traceSchemaText(): string {
  return `${JSON.stringify(TRACE_SCHEMA, null, 2)}\n`;
}

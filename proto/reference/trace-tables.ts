/**
 * The tables of docs/traces.md: the members of each kind of line, from the JSON Schema of the trace format. So a member
 * of the schema, which test/proto/trace/schema.test.ts compares with the reader, is always in the document. Pure.
 */

import type { JsonSchema } from '../trace/schema/json-schema.js';
import { TRACE_SCHEMA } from '../trace/schema/trace-schema.js';
import { PING_FIELD_ROWS } from '../wire/ping-fields.js';
import { type GeneratedParts, markdownTable } from './generated-parts.js';

// The type of a schema's members is unknown. The casts below say what they are in the schema of traces.
type Members = Readonly<Record<string, JsonSchema>>;

const DEFINITIONS = TRACE_SCHEMA.$defs as Members;

/** What a definition is called in a table, if not by its name. */
const KIND_NAMES: Readonly<Record<string, string>> = {
  mac: 'MAC',
  header_lock: '[lock](#a-lock-of-the-header)',
  header_power: '[power](#power)',
  changed_power: '[power](#power)',
  power: '[power](#power)',
  high_window: '[high window](#high-window)',
  command: '[command](#command)',
  earlier_command: '[command](#command)',
  time_of_day: 'HH:MM',
  credential: 'integer, 1 to 65,535',
  reason: '[reason](protocol.md#reasons)',
};

function definition(name: string): JsonSchema {
  const found = DEFINITIONS[name];
  if (found === undefined) throw new Error(`the schema has no definition ${name}`);
  return found;
}

function membersOf(name: string): Members {
  return (definition(name).properties ?? {}) as Members;
}

/** The kind of value that a member takes, in a few words. */
function kindOf(schema: JsonSchema): string {
  const { $ref, anyOf, type, minimum } = schema;
  if (typeof $ref === 'string') {
    const name = $ref.replace('#/$defs/', '');
    return KIND_NAMES[name] ?? name;
  }
  if ('const' in schema) return `\`${JSON.stringify(schema.const)}\``;
  if (Array.isArray(schema.enum)) return schema.enum.map((word) => `\`"${word}"\``).join(', ');
  if (Array.isArray(anyOf)) return anyOf.map((each: JsonSchema) => kindOf(each)).join(' or ');
  if (type === 'array') return `list of ${kindOf(schema.items as JsonSchema)}, at most ${schema.maxItems}`;
  if (type === 'integer') return minimum === 0 ? 'integer, 0 to 2³²−1' : 'integer';
  if (type === 'string') return 'text';
  if (type === 'boolean') return 'true or false';
  return String(type);
}

function meaningOf(schema: JsonSchema): string {
  if (typeof schema.description === 'string') return schema.description;
  const target = typeof schema.$ref === 'string' ? definition(schema.$ref.replace('#/$defs/', '')) : {};
  return String(target.description ?? '');
}

/** A table of the members of a definition, or of those in `only`. */
function memberTable(name: string, only?: readonly string[]): string {
  return objectTable(definition(name), only);
}

function objectTable(object: JsonSchema, only?: readonly string[]): string {
  const required = (object.required ?? []) as readonly string[];
  const members = Object.entries((object.properties ?? {}) as Members);
  const listed = members.filter(([member]) => only === undefined || only.includes(member));
  const rows = listed.map(([member, schema]) => [
    `\`${member}\``,
    kindOf(schema),
    required.includes(member) ? 'yes' : 'no',
    meaningOf(schema),
  ]);
  return markdownTable(['member', 'value', 'required', 'meaning'], rows);
}

/** The members of pings besides their envelopes, and which type of ping has them. */
function pingTable(): string {
  const pings = ['cellular_ping', 'gps_ping', 'close_connection_ping'];
  const names = ['ping_type', ...PING_FIELD_ROWS.map(([, field]) => field.json)];
  const rows = names.map((member) => {
    const carriers = pings.filter((ping) => membersOf(ping)[member] !== undefined);
    // `ping_type` has one value in each type of ping; where a ping is beside its bytes (`raw`), it has any of them.
    const schema =
      member === 'ping_type'
        ? (membersOf('ping_beside_bytes').ping_type as JsonSchema)
        : (membersOf(carriers[0] as string)[member] as JsonSchema);
    const presence = pings.map((ping) => {
      if (!carriers.includes(ping)) return '–';
      return ((definition(ping).required ?? []) as readonly string[]).includes(member) ? 'yes' : 'optional';
    });
    return [`\`${member}\``, kindOf(schema), ...presence, meaningOf(schema)];
  });
  return markdownTable(['member', 'value', 'cellular', 'gps', 'close_connection', 'meaning'], rows);
}

/** The members of an acknowledgement that are its envelope: all that a ping has too. */
const ENVELOPE = Object.keys(membersOf('ack')).filter((member) => membersOf('cellular_ping')[member] !== undefined);

/** The parameters of each type of command. */
function commandTable(): string {
  const variants = definition('command').oneOf as readonly JsonSchema[];
  const rows = variants.map(({ properties }) => {
    const { id: _id, type, expires: _expires, ...parameters } = properties as Members;
    const listed = Object.entries(parameters).map(([member, schema]) => `\`${member}\` (${kindOf(schema)})`);
    return [`\`${(type as JsonSchema).const}\``, listed.length === 0 ? 'none' : listed.join(', ')];
  });
  return markdownTable(['type', 'parameters, all optional'], rows);
}

function eventTable(): string {
  const rows = Object.entries(DEFINITIONS)
    .filter(([name]) => name.endsWith('_event'))
    .map(([name, { description }]) => {
      const event = name.replace(/_event$/, '');
      return [`[\`${event}\`](#${event})`, String(description)];
    });
  return markdownTable(['event', 'says that'], rows);
}

/** The generated parts of docs/traces.md. */
export function traceParts(): GeneratedParts {
  return {
    events: eventTable(),
    header: memberTable('header'),
    'header-lock': memberTable('header_lock'),
    power: memberTable('power'),
    'high-window': memberTable('high_window'),
    connect: memberTable('connect_event'),
    disconnect: memberTable('disconnect_event'),
    ping: memberTable('ping_event'),
    'ping-members': pingTable(),
    envelope: memberTable('ack', ENVELOPE),
    ack: memberTable('ack_event'),
    'ack-members': memberTable(
      'ack',
      Object.keys(membersOf('ack')).filter((member) => !ENVELOPE.includes(member)),
    ),
    command: memberTable('command_event'),
    'command-types': commandTable(),
    tick: memberTable('tick_event'),
    gateway: memberTable('gateway_event'),
    world: memberTable('world_event'),
    fix: objectTable(membersOf('world_event').fix as JsonSchema),
  };
}

/**
 * The JSON Schema of a trace's pings and acknowledgements (protocol.md §1, §4). The members of a ping come from the
 * table of ping fields (wire/ping-fields.ts), so that a new field is in the schema too. Pure data.
 */
import type { CommandResult } from '../../wire/ping.js';
import { PING_FIELD_ROWS, type PingField, type PingType } from '../../wire/ping-fields.js';
import { REASONS } from '../../wire/reasons.js';
import { FIRST_CREDENTIAL, MAX_CREDENTIAL } from '../trace.js';
import {
  closedObject,
  count,
  described,
  type JsonSchema,
  nullable,
  number,
  oneWord,
  ref,
  text,
  words,
} from './json-schema.js';

const PING_TYPES: readonly PingType[] = ['cellular', 'gps', 'close_connection'];
const RESULTS = ['ok', 'rejected', 'failed'] as const satisfies readonly CommandResult[];
const KNOWN_NUMBERS = REASONS.map((row) => row.number).join('|');

const REASON: JsonSchema = {
  description: 'Why a ping was sent. REASON_UNRECOGNIZED_ and a number is a reason that this version does not know.',
  anyOf: [
    { enum: REASONS.map((row) => row.name) },
    {
      type: 'string',
      pattern: '^REASON_UNRECOGNIZED_(0|-?[1-9]\\d{0,9})$',
      not: { pattern: `^REASON_UNRECOGNIZED_(${KNOWN_NUMBERS})$` },
    },
  ],
};

const CREDENTIAL: JsonSchema = {
  type: 'integer',
  minimum: FIRST_CREDENTIAL,
  maximum: MAX_CREDENTIAL,
  description: 'Which of the source’s credentials sent the uplink: 1 for its oldest in the trace. Default 1.',
};

/** The members that each uplink has besides those of its ping or acknowledgement. */
const ENVELOPE: Readonly<Record<string, JsonSchema>> = {
  boot: count('The lock’s boot counter. Left out: the boot of the uplink before, at first 1.'),
  sequence: count('The uplink’s number since that boot. Left out: one more than the greatest number of that boot.'),
  date: described('date', 'When the lock made the uplink, by its own clock. Left out: `at`.'),
  time_ms: {
    type: 'integer',
    description: 'Instead of `date` if the lock’s time is outside the years 1970–9999: ms since the epoch.',
  },
  power: described('power', 'The power settings that the lock had. Left out: those that were last in force.'),
  kept: count('How many uplinks made earlier still waited in the lock. Default 0.'),
  dropped: count('How many uplinks the lock has discarded since that boot. Default 0.'),
  raw: described('base64', 'The bytes of the uplink; see the member `raw` of the line.'),
  credential: ref('credential'),
};

function fieldSchema(field: PingField, pingType: PingType): JsonSchema {
  const { value, presence, doc } = field;
  if (value.kind === 'reason' && pingType === 'close_connection')
    return oneWord('REASON_CLOSE_CONNECTION', 'May be left out: the type of ping implies it.');
  if (value.kind === 'reason') return described('reason', doc);
  // The first word, which stands for an unknown number, is listed last. The table has words for each such field.
  if (value.kind === 'word') return words([...value.words.slice(1), value.words[0] as string], doc);
  if (value.kind === 'count') return count(doc);
  if (value.kind === 'text') return text(doc);
  return presence === 'nullable' ? nullable(number(doc)) : number(doc);
}

function isCarried(field: PingField, pingType: PingType): boolean {
  return field.wire.numbers[pingType] !== undefined;
}

/** Whether a trace's ping of that type must have the field. A position is required in GPS pings only. */
function isRequired(field: PingField, pingType: PingType): boolean {
  if (field.presence === 'position') return pingType === 'gps';
  return field.presence === 'always' && field.jsonDefault === undefined;
}

function pingSchema(pingType: PingType): JsonSchema {
  const properties: Record<string, JsonSchema> = { ping_type: oneWord(pingType, 'The type of ping.') };
  const required = ['ping_type'];
  if (pingType === 'close_connection') properties.reason = fieldSchema(reasonField(), pingType);
  for (const [, field] of PING_FIELD_ROWS) {
    if (!isCarried(field, pingType)) continue;
    properties[field.json] = fieldSchema(field, pingType);
    if (isRequired(field, pingType)) required.push(field.json);
  }
  const title = pingType === 'gps' ? 'GPS' : pingType.replace('_', '-');
  const ping = closedObject({ ...properties, ...ENVELOPE }, required, `A ${title} ping with its envelope.`);
  if (pingType !== 'cellular') return ping;
  return { ...ping, dependentRequired: { latitude: ['longitude'], longitude: ['latitude'] } };
}

function reasonField(): PingField {
  const row = PING_FIELD_ROWS.find(([, field]) => field.value.kind === 'reason');
  if (row === undefined) throw new Error('the table of ping fields has no reason');
  return row[1];
}

/** A ping beside `raw`, whose bytes supply what is left out. */
function pingBesideBytes(): JsonSchema {
  const properties: Record<string, JsonSchema> = { ping_type: words(PING_TYPES, 'The type of ping.') };
  for (const [, field] of PING_FIELD_ROWS) {
    // Any type that carries the field will do, and each field is carried by one at least.
    const pingType = PING_TYPES.find((type) => isCarried(field, type)) as PingType;
    properties[field.json] = fieldSchema(field, pingType);
  }
  return closedObject({ ...properties, ...ENVELOPE }, [], 'A ping beside `raw`. The bytes supply what is left out.');
}

const ACK_MEMBERS: Readonly<Record<string, JsonSchema>> = {
  id: count('The id of the command.'),
  result: words(RESULTS, 'Whether the lock carried the command out.'),
  detail: text('A few words on why. Default empty.'),
  high_window: nullable(described('high_window', 'After a set-power: the window now in force.')),
  ...ENVELOPE,
};

/** The definitions of pings and acknowledgements. */
export const UPLINK_DEFINITIONS: Readonly<Record<string, JsonSchema>> = {
  reason: REASON,
  credential: CREDENTIAL,
  cellular_ping: pingSchema('cellular'),
  gps_ping: pingSchema('gps'),
  close_connection_ping: pingSchema('close_connection'),
  ping: {
    description: 'A ping that is written in full.',
    oneOf: PING_TYPES.map((type) => ref(`${type}_ping`)),
  },
  ping_beside_bytes: pingBesideBytes(),
  ack: closedObject(ACK_MEMBERS, ['id', 'result'], 'A command’s acknowledgement with its envelope.'),
  ack_beside_bytes: closedObject(
    ACK_MEMBERS,
    [],
    'An acknowledgement beside `raw`. The bytes supply what is left out.',
  ),
};

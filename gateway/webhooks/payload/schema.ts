/**
 * Defines a webhook's body (interfaces.md §3) in one schema. The JSON Schema and the TypeScript types for merchants
 * (documents.ts) and the table in docs/webhooks.md derive from it. The members of the ping itself come from the table
 * of ping fields (proto/wire/ping-fields.ts).
 *
 * The schema describes every body that can arrive, not only sensible ones: the gateway passes a lock's values on
 * unchanged, in range or not, so numbers have only the bounds of the wire format. Readers must ignore unknown members:
 * a later version may add members, but neither removes nor changes any.
 */
import { type Static, type TSchema, Type } from 'typebox';
import { PING_FIELD_ROWS, type PingField, type PingType, type PingValue } from '../../../proto/wire/ping-fields.js';
import type { CellularPingJson, CloseConnectionPingJson, GpsPingJson } from '../../../proto/wire/ping-json.js';
import { REASONS } from '../../../proto/wire/reasons.js';

const UINT32 = { minimum: 0, maximum: 2 ** 32 - 1 };
/** RFC 3339 in UTC with milliseconds, the years 1970–9999. */
export const DATE = { format: 'date-time', pattern: String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$` };

/** The members before the ping's own. */
export const head = {
  event_id: Type.String({
    description: 'Identifies the event. The same on every attempt, and the same as the header webhook-id.',
    pattern: '^evt_[0-9A-Za-z_]+$',
  }),
  mac_addr: Type.String({
    description: 'The lock’s hardware address, upper-case hex with colons.',
    pattern: '^([0-9A-F]{2}:){5}[0-9A-F]{2}$',
  }),
};

const date = {
  date: Type.String({
    description:
      'When the lock made the ping, by its clock; if outside the years 1970–9999, when lockgate received it.',
    ...DATE,
  }),
};

/** The members after the ping's own. */
const tail = {
  received_at: Type.String({ description: 'When lockgate received the ping.', ...DATE }),
  boot: Type.Integer({ description: 'Counts the boots of the lock.', ...UINT32 }),
  sequence: Type.Integer({ description: 'Counts the messages of the lock since that boot.', ...UINT32 }),
  buffered: Type.Boolean({ description: 'The ping arrived over 60 s after the lock made it.' }),
  test: Type.Boolean({ description: 'Sent by a test or a story (a scripted series of pings), not by a lock.' }),
  simulated: Type.Boolean({ description: 'The lock is simulated.' }),
};

/** The schema of every value that the wire format can carry. */
function valueSchema(value: PingValue, annotation: { readonly description?: string }): TSchema {
  switch (value.kind) {
    case 'reason': {
      const unrecognized = { type: 'string', pattern: '^REASON_UNRECOGNIZED_-?[0-9]+$' };
      return Type.Unsafe({
        title: 'Reason',
        ...annotation,
        anyOf: [{ enum: REASONS.map(({ name }) => name) }, unrecognized],
      });
    }
    case 'word': {
      // The first word, which stands for an unknown number on the wire, is listed last.
      const [unknown = '', ...words] = value.words;
      return Type.Enum([...words, unknown], annotation);
    }
    case 'count':
      return Type.Integer({ ...annotation, ...UINT32 });
    case 'text':
      return Type.String(annotation);
    case 'number': {
      const options = { ...annotation, ...(value.signed ? {} : { minimum: 0 }) };
      return value.perUnit === 1 ? Type.Integer(options) : Type.Number(options);
    }
  }
}

/** The schema of a member of a ping type's JSON. */
function memberSchema({ presence, value, doc: description }: PingField, type: PingType): TSchema {
  if (presence === 'nullable') return Type.Union([valueSchema(value, {}), Type.Null()], { description });
  const schema = valueSchema(value, { description });
  return presence === 'optional' || (presence === 'position' && type === 'cellular') ? Type.Optional(schema) : schema;
}

/** The members of a position. A cellular ping has either all or none of them. */
const POSITION_MEMBERS = PING_FIELD_ROWS.flatMap(([, { presence, json }]) => (presence === 'position' ? [json] : []));

/** The schema of the body for a ping type: the type, the reason, the date, then the other members of the ping. */
function payloadSchema(type: PingType, options: { readonly title: string; readonly description: string }) {
  const members = PING_FIELD_ROWS.filter(([, { wire }]) => wire.numbers[type] !== undefined).map(
    ([, field]) => [field.json, memberSchema(field, type)] as const,
  );
  // A close-connection ping has no reason on the wire: its type says it.
  const { reason = CLOSE_REASON, ...others } = Object.fromEntries(members);
  const ping_type = Type.Literal(type, { description: 'Determines the other members.' });
  return Type.Object({ ...head, ping_type, reason, ...date, ...others, ...tail }, options);
}

const CLOSE_REASON = Type.Literal('REASON_CLOSE_CONNECTION', { description: 'Always this reason.' });

/** The body of a webhook, by its ping type. */
export const PAYLOAD_SCHEMAS = [
  payloadSchema('cellular', {
    title: 'CellularWebhook',
    description: 'A cellular ping. With REASON_CELL_PING and PHONE it has a position: all three of its members.',
    // In a spread, since typebox's type of these options lacks the keyword.
    ...{ dependentRequired: eachRequiresOthers(POSITION_MEMBERS) },
  }),
  payloadSchema('gps', { title: 'GpsWebhook', description: 'A GPS ping: the lock had a fix.' }),
  payloadSchema('close_connection', {
    title: 'CloseConnectionWebhook',
    description: 'The lock disconnects from the network.',
  }),
] as const;

/** JSON Schema's `dependentRequired`: each of the members requires all others. */
function eachRequiresOthers(members: readonly string[]): Record<string, string[]> {
  return Object.fromEntries(members.map((member) => [member, members.filter((other) => other !== member)]));
}

const CommonMembers = Type.Object({ ...head, ...date, ...tail });

/** The body of a webhook. */
export type WebhookPayload = Static<typeof CommonMembers> & (CellularPingJson | GpsPingJson | CloseConnectionPingJson);

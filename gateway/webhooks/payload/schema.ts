/**
 * The one definition of a webhook's body (interfaces.md §3): a schema, from which come our types, the JSON Schema and
 * the TypeScript types that merchants get (documents.ts), and the table in docs/webhooks.md.
 *
 * It says what can arrive, not what should: what a lock sends is passed on as it is, out of range or not, so numbers
 * have no more bounds here than the wire gives them. Readers must let pass members that they don't know: a later
 * version may add some. It takes none away and changes none.
 */
import { type Static, Type } from 'typebox';
import { REASONS, type Reason } from '../../../proto/wire/reasons.js';

const UINT32 = { minimum: 0, maximum: 2 ** 32 - 1 };
/** RFC 3339 in UTC with milliseconds, the years 1970–9999. */
const DATE = { format: 'date-time', pattern: String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$` };

const head = {
  event_id: Type.String({
    description: 'Names the event. The same on every attempt; the header webhook-id has it too.',
    pattern: '^evt_[0-9A-Za-z_]+$',
  }),
  mac_addr: Type.String({
    description: 'The lock’s hardware address, upper-case hex with colons.',
    pattern: '^([0-9A-F]{2}:){5}[0-9A-F]{2}$',
  }),
};

const reason = {
  reason: Type.Unsafe<Reason>({
    title: 'Reason',
    description:
      'Why it was sent. A reason that this version doesn’t know comes as REASON_UNRECOGNIZED_ and its number.',
    anyOf: [{ enum: REASONS.map(({ name }) => name) }, { type: 'string', pattern: '^REASON_UNRECOGNIZED_-?[0-9]+$' }],
  }),
};

const state = {
  date: Type.String({
    description: 'When it was made, by the sender’s clock; where that is outside the years 1970–9999, when received.',
    ...DATE,
  }),
  lock_state: Type.Enum(['locked', 'unlocked', 'unknown'], {
    description: 'Whether the lock is locked; unknown where it doesn’t say.',
  }),
  battery_percent: Type.Integer({ description: 'The lock’s battery, in percent; 0 to 100 in a sane lock.', ...UINT32 }),
};

const equipment = {
  ebike_voltage: Type.Union([Type.Number({ minimum: 0 }), Type.Null()], {
    description: 'Voltage of the e-bike’s battery, in volts; null where no e-bike is connected.',
  }),
  tether_state: Type.Enum(['attached', 'detached', 'unknown'], {
    description: 'Whether the tether is plugged into the lock; unknown where it doesn’t say.',
  }),
};

const latitude = Type.Number({ description: 'Degrees north, −90 to 90 in a sane ping.' });
const longitude = Type.Number({ description: 'Degrees east, −180 to 180 in a sane ping.' });
const uncertainty = Type.Integer({ description: 'Radius around the position, in whole metres.' });

const tail = {
  received_at: Type.String({ description: 'When lockgate received it.', ...DATE }),
  boot: Type.Integer({ description: 'Counts the boots of its sender.', ...UINT32 }),
  sequence: Type.Integer({ description: 'Counts the messages of its sender since that boot.', ...UINT32 }),
  buffered: Type.Boolean({ description: 'It arrived over 60 s after it was made.' }),
  test: Type.Boolean({ description: 'Sent by a test or a story, not by a lock.' }),
  simulated: Type.Boolean({ description: 'Of a lock that a simulator plays.' }),
};

const CellularPayload = Type.Object(
  {
    ...head,
    ping_type: Type.Literal('cellular', { description: 'Which members there are.' }),
    ...reason,
    ...state,
    firmware_version: Type.String({ description: 'Of the lock. Any text, the empty one too.' }),
    ...equipment,
    latitude: Type.Optional(latitude),
    longitude: Type.Optional(longitude),
    uncertainty: Type.Optional(uncertainty),
    ...tail,
  },
  {
    title: 'CellularWebhook',
    description: 'A cellular ping. A position, all three members of it, is there with REASON_CELL_PING and PHONE.',
    dependentRequired: {
      latitude: ['longitude', 'uncertainty'],
      longitude: ['latitude', 'uncertainty'],
      uncertainty: ['latitude', 'longitude'],
    },
  },
);

const GpsPayload = Type.Object(
  {
    ...head,
    ping_type: Type.Literal('gps', { description: 'Which members there are.' }),
    ...reason,
    ...state,
    ...equipment,
    latitude,
    longitude,
    speed: Type.Number({ description: 'Metres per second.' }),
    direction: Type.Number({ description: 'Of the motion: degrees clockwise from north, [0, 360) in a sane ping.' }),
    uncertainty,
    ...tail,
  },
  { title: 'GpsWebhook', description: 'A GPS ping: the lock had a fix.' },
);

const CloseConnectionPayload = Type.Object(
  {
    ...head,
    ping_type: Type.Literal('close_connection', { description: 'Which members there are.' }),
    reason: Type.Literal('REASON_CLOSE_CONNECTION', { description: 'Always this one.' }),
    ...state,
    ...tail,
  },
  { title: 'CloseConnectionWebhook', description: 'The lock disconnects from the network.' },
);

/** The body of a webhook, by its ping type. */
export const PAYLOAD_SCHEMAS = [CellularPayload, GpsPayload, CloseConnectionPayload] as const;

/** The body of a webhook. */
export type WebhookPayload =
  | Static<typeof CellularPayload>
  | Static<typeof GpsPayload>
  | Static<typeof CloseConnectionPayload>;

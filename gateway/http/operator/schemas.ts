/**
 * Schemas that several of the operators' routes use. They validate requests (check-request.ts) and generate the
 * document (document.ts), and a test compares every answer with them.
 */
import { type TProperties, type TSchema, Type } from 'typebox';
import { TROUBLES } from '../../../proto/power/troubles.js';
import { BelievedSchema } from '../merchant/own-data/lock-json.js';

/** A merchant's name. */
export const Name = Type.String({ minLength: 1, maxLength: 200 });

/** The schema of a body or a query string, which refuses unknown members. */
export function Exact<Members extends TProperties>(members: Members) {
  return Type.Object(members, { additionalProperties: false });
}

/** The schema of one of these words. */
export function OneOf<Word extends string>(words: readonly Word[], description?: string) {
  return Type.Unsafe<Word>({ type: 'string', enum: [...words], ...(description !== undefined && { description }) });
}

/** The `limit` of a list, in a query string. */
export function Limit(max: number, defaultLimit: number) {
  return Type.Optional(Type.Integer({ minimum: 1, maximum: max, default: defaultLimit }));
}

/** The given schema, or null. */
export function OrNull<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()]);
}

/** A MAC in a request, in any common spelling. */
export const MacText = Type.String({ description: '12 hex digits, such as A4:C1:38:F0:E1:D2.' });
/** A MAC in a query string. */
export const OneMac = Type.Optional(MacText);
/** Several MACs in a query string: `?mac=…&mac=…`. */
export const Macs = Type.Optional(Type.Array(MacText, { description: 'Only these locks; can be repeated.' }));
/** A time in a request. */
export const DateText = Type.String({ description: 'A date and time, such as 2026-11-20T06:00:00Z.' });
/** A time in an answer: RFC 3339, UTC, with ms. */
export const Time = Type.String({ format: 'date-time' });
export const MaybeTime = OrNull(Time);
export const Month = Type.String({ description: 'A calendar month (UTC), such as 2026-11.' });
export const MaybeText = OrNull(Type.String());
export const Count = Type.Integer({ minimum: 0 });
const MaybeNumber = OrNull(Type.Number());

/** The schema of an object whose members are documented elsewhere. */
export function Described(description: string) {
  return Type.Object({}, { additionalProperties: true, description });
}

const Ping = Described('A ping, as in traces (proto/README.md).');

/** A lock's presence. The value of `presence` determines which other members exist. */
const presence = {
  presence: OneOf(['online', 'asleep', 'late', 'low-battery', 'airplane', 'never-seen']),
  since: Type.Optional(Time),
  due: Type.Optional(MaybeTime),
  rule: Type.Optional(Type.String()),
};

/** Since when a lock is not judged, the judge's error, and the version of lockgate. */
export const unjudged = { since: Time, why: Type.String(), version: Type.String() };

const DeviceState = Type.Object({
  received_at: MaybeTime,
  power_state: MaybeText,
  power: Described('Mode, ride tracking, airplane and recovery.'),
  high_window: Described('From, to, and the offset from UTC in minutes.'),
  ping_type: MaybeText,
  reason: MaybeText,
  lock_state: MaybeText,
  battery_percent: MaybeNumber,
  firmware_version: MaybeText,
  latitude: MaybeNumber,
  longitude: MaybeNumber,
  uncertainty: MaybeNumber,
  position_date: MaybeTime,
});

/** Labels by key. */
export const LabelMap = Type.Unsafe<Readonly<Record<string, string>>>({
  type: 'object',
  additionalProperties: { type: 'string' },
  description: 'Up to 16 labels by key.',
});

const device = {
  mac: Type.String(),
  name: MaybeText,
  labels: LabelMap,
  merchant: Type.String(),
  simulated: Type.Boolean(),
  created_at: Time,
  sim: Type.Object({ state: OneOf(['inactive', 'active']), activated_at: MaybeTime }),
  trouble: OneOf(TROUBLES, 'What needs attention most; `theft`: the latest ping reports one.'),
  unjudged: OrNull(Type.Object(unjudged, { description: 'The judge failed; the lock’s state is as of that time.' })),
  ...presence,
  state: OrNull(DeviceState),
};

/** A lock in lists. */
export const DeviceAnswer = Type.Object(device);
export const NewDeviceAnswer = Type.Object({ ...device, secret: Type.String() });

/** The billed counts. */
export const counts = {
  messages: Count,
  messages_up: Count,
  messages_down: Count,
  connections: Count,
  bytes: Count,
  bytes_up: Count,
  bytes_down: Count,
};

/** A finding about a lock. */
export const Finding = Type.Object({
  id: Type.Integer({ description: 'For `GET /why`: `finding:` and this number.' }),
  rule: Type.String(),
  severity: Type.String(),
  message: Type.String(),
  at: Time,
  uplink: OrNull(Type.Object({ credential: Type.Integer(), boot: Type.Integer(), sequence: Type.Integer() })),
});

const Uplink = Type.Object({
  received_at: Time,
  boot: Type.Integer(),
  sequence: Type.Integer(),
  buffered: Type.Boolean(),
  date: MaybeTime,
  event_id: Type.Optional(Type.String()),
  ping: Type.Optional(Ping),
  ack: Type.Optional(Described('An acknowledgement.')),
});

/** A lock with its history. */
export const DeviceDetailAnswer = Type.Object({
  ...device,
  believed: BelievedSchema,
  usage: Type.Object({ month: Type.String(), ...counts }),
  twin: Type.Object({
    wanted: Described('The power settings requested by commands.'),
    reported: OrNull(Described('The power settings reported by the lock.')),
    differs: Type.Array(Type.String()),
  }),
  over_budget: Type.Array(
    Type.Object({ source: OneOf(['lock', 'phone']), limit: OneOf(['rate', 'day']), since: Time, why: Type.String() }),
    { description: 'The exceeded budgets of the lock and its phones, which are therefore read more slowly.' },
  ),
  uplinks: Type.Array(Uplink),
  phone_uplinks: Type.Array(Uplink),
  findings: Type.Array(Finding),
  refusals: Type.Array(
    Type.Object({
      source: OneOf(['lock', 'phone']),
      what: OneOf(['connect', 'publish', 'subscribe', 'packet', 'connection']),
      reason: Type.String({ description: 'The kind, as in lockgate_refusals_total.' }),
      why: Type.String(),
      address: Type.String({ description: 'The source of the latest refusal.' }),
      count: Type.Integer({ minimum: 1 }),
      first_at: Time,
      last_at: Time,
    }),
    { description: 'Refusals in the last 14 days, latest first; repeats are counted together.' },
  ),
  quarantine: Type.Array(
    Type.Object({ received_at: Time, code: Type.String(), message: Type.String(), raw: Type.String() }),
  ),
});

/** Path parameters by name. */
export const PATH_MEMBERS: Readonly<Record<string, TSchema>> = {
  mac: MacText,
  id: Type.String({ description: 'An id, as in lists.' }),
  name: Type.String({ description: 'A name.' }),
};

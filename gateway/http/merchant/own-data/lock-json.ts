/** A lock in answers to merchants: its schemas, and the JSON of a lock (interfaces.md §2). Pure. */
import { type TSchema, Type } from 'typebox';
import { NEVER } from '../../../../proto/power/judge/state.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import { TROUBLES } from '../../../../proto/power/troubles.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { formatDate, highWindowToJson, isDatable, powerToJson } from '../../../../proto/wire/ping-json.js';
import type { Twin } from '../../../commands/twin.js';
import type { ListedLock } from '../../../locks/list/listed-lock.js';
import { PRESENCES } from '../../../locks/list/lock-filter.js';
import { troubleOf } from '../../../locks/list/lock-order.js';

/** A member that may be null. */
export function nullable<Type>(schema: Readonly<Record<string, unknown>>, description: string) {
  return Type.Unsafe<Type | null>({ anyOf: [schema, { type: 'null' }], description });
}

const TIME = { type: 'string', format: 'date-time' };
const STATES = POWER_MODEL.states.map(({ state }) => state);
const words = (list: readonly string[], description: string) =>
  Type.Unsafe<string>({ type: 'string', enum: [...list], description });

const Position = {
  type: 'object',
  properties: {
    latitude: { type: 'number' },
    longitude: { type: 'number' },
    uncertainty: { type: 'number', description: 'In metres.' },
    date: { anyOf: [TIME, { type: 'null' }], description: 'When the lock was there, by its clock.' },
  },
  required: ['latitude', 'longitude', 'uncertainty', 'date'],
};

export const LabelsSchema = Type.Unsafe<Readonly<Record<string, string>>>({
  type: 'object',
  additionalProperties: { type: 'string' },
  description: 'Up to 16 labels: a key of up to 40 letters, digits and . _ / -, and a value of up to 60 characters.',
});

const MEMBERS = {
  mac_addr: Type.String({ description: 'The lock’s hardware address, upper-case hex with colons.' }),
  name: nullable<string>({ type: 'string' }, 'The name that you gave it.'),
  labels: LabelsSchema,
  simulated: Type.Boolean(),
  trouble: words(TROUBLES, 'What needs attention most; `theft`: its latest ping reports one.'),
  presence: words(PRESENCES, 'Whether it is connected, silent as expected, or late.'),
  since: nullable<string>(TIME, 'Since when it has this presence, as far as is known.'),
  due: nullable<string>(TIME, 'When it is next expected to connect, if it is asleep.'),
  power_state: nullable<string>({ type: 'string', enum: STATES }, 'Null for a lock that never sent anything.'),
  lock_state: nullable<string>({ type: 'string', enum: ['locked', 'unlocked', 'unknown'] }, 'As last reported.'),
  battery_percent: nullable<number>({ type: 'number' }, 'As last reported.'),
  firmware_version: nullable<string>({ type: 'string' }, 'As last reported.'),
  position: nullable<object>(Position, 'Its last plausible position.'),
  last_reason: nullable<string>({ type: 'string' }, 'The reason of its latest ping.'),
  received_at: nullable<string>(TIME, 'When its last message was received.'),
  sim: Type.Object({
    state: words(['inactive', 'active'], 'Active from the lock’s first connection on.'),
    activated_at: nullable<string>(TIME, 'Since when it is active.'),
  }),
};

export const LockSchema = Type.Object(MEMBERS, { title: 'Lock', description: 'A lock with its present state.' });

const settings: Record<string, TSchema> = {
  mode: Type.Optional(Type.String()),
  ride_tracking: Type.Optional(Type.Boolean()),
  airplane: Type.Optional(Type.Boolean()),
  recovery: Type.Optional(Type.Boolean()),
  high_window: Type.Optional(
    Type.Object({ from: Type.String(), to: Type.String(), utc_offset_minutes: Type.Integer() }),
  ),
};
const reported = Type.Object(settings);

/** What the gateway believes of a lock. */
export const BelievedSchema = nullable<object>(
  {
    type: 'object',
    properties: {
      power_state: { type: 'string', enum: STATES },
      power_state_since: { anyOf: [TIME, { type: 'null' }] },
      is_doubtful: { type: 'boolean', description: 'The lock dropped messages: its state may have changed.' },
      connected: { type: 'boolean' },
      connected_since: { anyOf: [TIME, { type: 'null' }] },
      offline_since: { anyOf: [TIME, { type: 'null' }] },
      last_period_ping_at: { anyOf: [TIME, { type: 'null' }] },
      messages: { type: 'integer', description: 'Received since the lock became yours; repeats excluded.' },
      power: reported,
    },
    required: ['power_state', 'is_doubtful', 'connected', 'messages', 'power'],
  },
  'What the gateway believes of the lock; null for a lock that never sent anything.',
);

export const LockDetailSchema = Type.Object(
  {
    ...MEMBERS,
    believed: BelievedSchema,
    twin: Type.Object(
      {
        wanted: Type.Object(settings, { description: 'The power settings that commands asked for.' }),
        reported: Type.Unsafe<object | null>({
          anyOf: [reported, { type: 'null' }],
          description: 'The settings that the lock reported last.',
        }),
        differs: Type.Array(Type.String(), { description: 'Wanted settings that are not reported yet.' }),
      },
      { description: 'Wanted beside reported settings.' },
    ),
  },
  { title: 'LockDetail', description: 'A lock, with what is believed of it and its twin.' },
);

/** The lock as lists show it. @param activatedAtMs since when its SIM is active; null if it is not */
export function lockJson(lock: ListedLock, activatedAtMs: number | null) {
  const { device, state, presence } = lock;
  const belief = state?.belief;
  const position = belief?.position ?? null;
  return {
    mac_addr: formatMac(device.mac),
    name: device.name,
    labels: device.labels,
    simulated: device.simulated,
    trouble: troubleOf(lock),
    presence: presence.presence,
    since: dateOrNull(sinceMs(lock)),
    due: presence.presence === 'asleep' ? dateOrNull(presence.dueMs) : null,
    power_state: belief?.state ?? null,
    lock_state: belief?.lockState ?? null,
    battery_percent: belief?.batteryPercent ?? null,
    firmware_version: state?.firmware?.version ?? null,
    position: position && {
      latitude: position.latitudeDegrees,
      longitude: position.longitudeDegrees,
      uncertainty: position.uncertaintyMeters,
      date: dateOrNull(position.timeMs),
    },
    last_reason: state?.ping?.reason ?? null,
    received_at: dateOrNull(state?.receivedAtMs),
    sim: { state: activatedAtMs === null ? 'inactive' : 'active', activated_at: dateOrNull(activatedAtMs) },
  };
}

/** The lock with what is believed of it and its twin. */
export function lockDetailJson(lock: ListedLock, activatedAtMs: number | null, twin: Twin) {
  return { ...lockJson(lock, activatedAtMs), believed: believedJson(lock), twin };
}

/** What is believed of a lock; null for a lock that never sent anything. */
export function believedJson({ state }: Pick<ListedLock, 'state'>) {
  if (state === null) return null;
  const { belief } = state;
  return {
    power_state: belief.state,
    power_state_since: dateOrNull(belief.stateSinceMs),
    is_doubtful: belief.isStateDoubtful,
    connected: belief.isConnected,
    connected_since: belief.isConnected ? dateOrNull(belief.connectedSinceMs) : null,
    offline_since: belief.isConnected ? null : dateOrNull(belief.offlineSinceMs),
    last_period_ping_at: dateOrNull(belief.lastPeriodMs),
    messages: belief.uplinks,
    power: { ...powerToJson(belief.power), high_window: highWindowToJson(belief.highWindow) },
  };
}

/** Since when a lock has its presence; null if it is not known. */
function sinceMs({ state, presence: now }: ListedLock): number | null | undefined {
  if (now.presence === 'online' || now.presence === 'late') return now.sinceMs;
  if (now.presence === 'asleep') return state?.belief.offlineSinceMs;
  // Low battery and airplane mode are power states.
  return now.presence === 'never-seen' ? null : state?.belief.stateSinceMs;
}

/** A time as text; null for an unknown one, which the judge writes as ±NEVER. */
function dateOrNull(timeMs: number | null | undefined): string | null {
  return timeMs === null || timeMs === undefined || Math.abs(timeMs) >= NEVER || !isDatable(timeMs)
    ? null
    : formatDate(timeMs);
}

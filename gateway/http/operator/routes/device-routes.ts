/**
 * The operators' routes that change locks and their phones: credentials, ownership, names, removal, erasure, judging,
 * and reflash marks (times from which a lock's boot counter starts again).
 */
import { type Static, Type } from 'typebox';
import { type Clock, Seconds } from '../../../../proto/clock.js';
import { DATE_EXPECTED, parseDate } from '../../../../proto/date.js';
import { LockgateError } from '../../../../proto/errors.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { formatDate, isDatable } from '../../../../proto/wire/ping-json.js';
import type { Phone } from '../../../store/contract/devices/device.js';
import { DeviceListQuery, listDevices } from '../device-list.js';
import { countOf, pick } from '../json/audit-terms.js';
import { deviceJson } from '../json/device.js';
import { readExpiry } from '../query.js';
import { type OperatorParts, type Route, type RouteRequest, readMac, withBody } from '../routes.js';
import {
  Count,
  DateText,
  DeviceAnswer,
  Exact,
  LabelMap,
  MacText,
  MaybeText,
  MaybeTime,
  Name,
  OneOf,
  Time,
} from '../schemas.js';

/** Enough for some 100,000 locks with the names of their merchants. */
const MAX_IMPORT_BYTES = 32 * 1024 * 1024;

const description = { name: Type.Optional(Type.String()), labels: Type.Optional(LabelMap) };
const Import = Exact({
  devices: Type.Array(Exact({ mac: Type.String(), merchant: Type.Optional(Name), ...description })),
  merchant: Type.Optional(Name),
  simulated: Type.Optional(Type.Boolean()),
});
const Change = Exact({
  merchant: Type.Optional(Name),
  simulated: Type.Optional(Type.Boolean()),
  ...description,
});
/** The body may also be empty. */
const Rotate = Type.Union([Exact({ keep_old_seconds: Type.Optional(Type.Integer({ minimum: 0 })) }), Type.Null()]);
/** The body may also be empty. */
const Reflashed = Type.Union([Exact({ at: Type.Optional(DateText) }), Type.Null()]);
const NewPhone = Exact({ name: Type.String(), expires_at: Type.Optional(DateText) });

const phone = {
  name: Type.String(),
  state: OneOf(['active', 'expired', 'revoked']),
  created_at: Time,
  expires_at: MaybeTime,
  revoked_at: MaybeTime,
};
const Imported = Type.Object({ mac: MacText, merchant: Type.String(), secret: Type.String() });
const Erased = Type.Object({
  mac: MacText,
  uplinks: Count,
  findings: Count,
  quarantined: Count,
  lock_events: Count,
  refusals: Count,
  pending_deliveries: Count,
});

/** The lock that a path names. @throws LockgateError `input-mac` */
function macOf({ params }: RouteRequest) {
  return readMac(params.mac ?? '');
}

/** What the audit log records of a lock before a change: its owner, whether it is simulated, its name and labels. */
async function ownerBefore({ store }: OperatorParts, request: RouteRequest) {
  const reading = await store.findDevice(macOf(request));
  if (reading === null) return null;
  const { merchantName: merchant, simulated, name, labels } = reading.device;
  return { merchant, simulated, ...(name !== null && { name }), ...(Object.keys(labels).length > 0 && { labels }) };
}

export const DEVICE_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/devices',
    operation: 'device.list',
    summary: 'Lists locks with their latest state, filtered and sorted, page by page; by default trouble first.',
    success: 200,
    query: DeviceListQuery,
    answer: Type.Object({ devices: Type.Array(DeviceAnswer), next_cursor: MaybeText }),
    handle: async (parts, { query }) => await listDevices(parts, query),
  },
  {
    method: 'POST',
    path: '/devices/import',
    operation: 'device.import',
    summary: 'Adds many locks, all or none; returns their secrets, once.',
    success: 201,
    answer: Type.Object({ devices: Type.Array(Imported) }),
    audit: {
      object: ({ body }) => (body as Static<typeof Import>).merchant ?? '',
      after: ({ body }) => ({ locks: countOf(body as never, 'devices'), ...pick(body, 'simulated') }),
    },
    bodyLimit: MAX_IMPORT_BYTES,
    ...withBody(Import, async ({ accounts }, { devices, merchant, simulated }) => {
      const imported = await accounts.importDevices(devices, { merchant, simulated });
      return {
        devices: imported.map(({ mac, merchant: owner, secret }) => ({ mac: formatMac(mac), merchant: owner, secret })),
      };
    }),
  },
  {
    method: 'PATCH',
    path: '/devices/:mac',
    operation: 'device.set',
    summary:
      'Moves a lock to another merchant or marks it as simulated or not, which closes its connection; names it and ' +
      'labels it.',
    success: 200,
    answer: DeviceAnswer,
    audit: {
      object: (request) => formatMac(macOf(request)),
      before: ownerBefore,
      after: ({ body }, answer) => pick(answer ?? body, 'merchant', 'simulated', 'name', 'labels'),
    },
    body: Change,
    handle: async (parts, request) => {
      const change = request.body as Static<typeof Change>;
      return deviceJson(await parts.accounts.devices.change(macOf(request), change), parts, parts.clock.now());
    },
  },
  {
    method: 'DELETE',
    path: '/devices/:mac',
    operation: 'device.remove',
    summary: 'Takes a lock out of service; its history stays until it expires.',
    success: 200,
    answer: Type.Object({ mac: MacText, removed: Type.Literal(true) }),
    audit: {
      object: (request) => formatMac(macOf(request)),
      before: ownerBefore,
    },
    handle: async ({ accounts }, request) => {
      const mac = macOf(request);
      await accounts.devices.remove(mac);
      return { mac: formatMac(mac), removed: true };
    },
  },
  {
    method: 'POST',
    path: '/devices/:mac/erase',
    operation: 'device.erase',
    summary: 'Erases a lock’s history, including its positions, for good.',
    success: 200,
    answer: Erased,
    audit: {
      object: (request) => formatMac(macOf(request)),
      after: (_request, answer) => pick(answer, 'uplinks', 'findings', 'quarantined', 'lock_events', 'refusals'),
    },
    handle: async ({ accounts }, request) => {
      const mac = macOf(request);
      const erased = await accounts.devices.erase(mac);
      const { uplinks, findings, quarantined, lockEvents, refusals, pendingDeliveries } = erased;
      return {
        mac: formatMac(mac),
        uplinks,
        findings,
        quarantined,
        lock_events: lockEvents,
        refusals,
        pending_deliveries: pendingDeliveries,
      };
    },
  },
  {
    method: 'POST',
    path: '/devices/:mac/rejudge',
    operation: 'device.rejudge',
    summary: 'Resumes judging a lock for which the judge failed: its state is rebuilt from its log.',
    success: 200,
    answer: Type.Object({ mac: MacText, judged: Type.Boolean() }),
    audit: { object: (request) => formatMac(macOf(request)) },
    handle: async ({ accounts }, request) => {
      const mac = macOf(request);
      await accounts.devices.rejudge(mac);
      return { mac: formatMac(mac), judged: true };
    },
  },
  {
    method: 'POST',
    path: '/devices/:mac/reflashed',
    operation: 'device.reflashed',
    summary: 'Marks a lock as reflashed at a time, by default now: its boot counter starts again from then on.',
    success: 200,
    answer: Type.Object({ mac: MacText, reflashed: Type.Array(Time) }),
    audit: {
      object: (request) => formatMac(macOf(request)),
      before: async ({ store }, request) => {
        const deviceId = await store.findDeviceId(macOf(request));
        return deviceId === null ? null : { reflashed: (await store.marks.read(deviceId)).map(formatDate) };
      },
      after: ({ body }, answer) => ({ ...pick(body, 'at'), ...pick(answer, 'reflashed') }),
    },
    body: Reflashed,
    handle: async ({ accounts }, request) => {
      const mac = macOf(request);
      const { at } = (request.body ?? {}) as { at?: string };
      const marks = await accounts.devices.reflash(mac, at === undefined ? undefined : readAt(at));
      return { mac: formatMac(mac), reflashed: marks.map(formatDate) };
    },
  },
  {
    method: 'POST',
    path: '/devices/:mac/rotate-secret',
    operation: 'device.rotate-secret',
    summary: 'Gives a lock a new secret; returns it, once. The old one may stay valid for a while.',
    success: 200,
    answer: Type.Object({ mac: MacText, secret: Type.String() }),
    audit: {
      object: (request) => formatMac(macOf(request)),
      after: ({ body }) => pick(body, 'keep_old_seconds'),
    },
    body: Rotate,
    handle: async ({ accounts }, request) => {
      const mac = macOf(request);
      const { keep_old_seconds: seconds = 0 } = (request.body ?? {}) as { keep_old_seconds?: number };
      return { mac: formatMac(mac), secret: await accounts.devices.rotateSecret(mac, Seconds(seconds)) };
    },
  },
  {
    method: 'POST',
    path: '/devices/:mac/phones',
    operation: 'device.add-phone',
    summary: 'Adds a phone that acts for a lock; returns its credential, once.',
    success: 201,
    answer: Type.Object({ mac: MacText, ...phone, secret: Type.String() }),
    audit: {
      object: (request) => formatMac(macOf(request)),
      after: ({ body }) => pick(body, 'name', 'expires_at'),
    },
    body: NewPhone,
    handle: async ({ accounts, wallClock }, request) => {
      const mac = macOf(request);
      const { name, expires_at: expiresAt } = request.body as { name: string; expires_at?: string };
      const expiresAtMs = expiresAt === undefined ? null : readExpiry(expiresAt);
      const { phone, secret } = await accounts.devices.addPhone({ mac, name, expiresAtMs });
      return { mac: formatMac(mac), ...phoneJson(phone, wallClock), secret };
    },
  },
  {
    method: 'GET',
    path: '/devices/:mac/phones',
    operation: 'device.list-phones',
    summary: 'Lists the phones of a lock, including revoked ones.',
    success: 200,
    answer: Type.Object({ mac: MacText, phones: Type.Array(Type.Object(phone)) }),
    handle: async ({ store, wallClock }, request) => {
      const mac = macOf(request);
      const phones = await store.listPhones(mac);
      return { mac: formatMac(mac), phones: phones.map((phone) => phoneJson(phone, wallClock)) };
    },
  },
  {
    method: 'DELETE',
    path: '/devices/:mac/phones/:name',
    operation: 'device.revoke-phone',
    summary: 'Revokes a phone’s credential and closes its connections.',
    success: 200,
    answer: Type.Object({ mac: MacText, name: Type.String(), revoked: Type.Literal(true) }),
    audit: {
      object: (request) => formatMac(macOf(request)),
      after: ({ params }) => pick(params, 'name'),
    },
    handle: async ({ accounts }, request) => {
      const mac = macOf(request);
      const name = request.params.name ?? '';
      await accounts.devices.revokePhone(mac, name);
      return { mac: formatMac(mac), name, revoked: true };
    },
  },
];

/** The time of a reflash, ms since the epoch. @throws LockgateError `input-at` */
function readAt(text: string): number {
  const timeMs = parseDate(text);
  if (!Number.isNaN(timeMs) && isDatable(timeMs)) return timeMs;
  throw new LockgateError('input-at', `at is ${JSON.stringify(text)}: expected ${DATE_EXPECTED}`);
}

function phoneJson({ name, createdAtMs, expiresAtMs, revokedAtMs }: Phone, clock: Clock) {
  const isExpired = expiresAtMs !== null && expiresAtMs <= clock.now();
  return {
    name,
    state: revokedAtMs !== null ? 'revoked' : isExpired ? 'expired' : 'active',
    created_at: formatDate(createdAtMs),
    expires_at: expiresAtMs === null ? null : formatDate(expiresAtMs),
    revoked_at: revokedAtMs === null ? null : formatDate(revokedAtMs),
  };
}

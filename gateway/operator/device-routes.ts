/**
 * The operator's routes that change locks and the phones that act for them: who may connect, whose a lock is, and what
 * is forgotten of it. A row each, as in routes.ts.
 */
import { Type } from 'typebox';
import { type Clock, Seconds } from '../../proto/clock.js';
import { DATE_EXPECTED, parseDate } from '../../proto/date.js';
import { LockgateError } from '../../proto/errors.js';
import { formatMac } from '../../proto/mac.js';
import { isDatable, toDate } from '../../proto/ping-json.js';
import type { Phone } from '../store/store.js';
import { deviceJson, Name, type Route, type RouteRequest, readMac, withBody } from './routes.js';

/** Some 100,000 locks with the names of their merchants. */
const IMPORT_BYTES = 32 * 1024 * 1024;

const Import = Type.Object({
  devices: Type.Array(Type.Object({ mac: Type.String(), merchant: Type.Optional(Name) })),
  merchant: Type.Optional(Name),
  simulated: Type.Optional(Type.Boolean()),
});
const Change = Type.Object({ merchant: Type.Optional(Name), simulated: Type.Optional(Type.Boolean()) });
/** Or no body at all. */
const Rotate = Type.Union([
  Type.Object({ keep_old_seconds: Type.Optional(Type.Integer({ minimum: 0 })) }),
  Type.Null(),
]);
const NewPhone = Type.Object({ name: Type.String(), expires_at: Type.Optional(Type.String()) });

/** The lock that a path names. @throws LockgateError `input-mac` */
function macOf({ params }: RouteRequest) {
  return readMac(params.mac ?? '');
}

export const DEVICE_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/devices/import',
    summary: 'Adds many locks, all or none; answers their secrets, once.',
    success: 201,
    bodyLimit: IMPORT_BYTES,
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
    summary: 'Moves a lock to another merchant, or says whether a simulator plays it. Its connection ends.',
    success: 200,
    body: Change,
    handle: async ({ accounts, usage, clock }, request) => {
      const change = request.body as { merchant?: string; simulated?: boolean };
      return deviceJson(await accounts.devices.change(macOf(request), change), usage, clock.now());
    },
  },
  {
    method: 'DELETE',
    path: '/devices/:mac',
    summary: 'Takes a lock out of service; its history stays until it is too old.',
    success: 200,
    handle: async ({ accounts }, request) => {
      const mac = macOf(request);
      await accounts.devices.remove(mac);
      return { mac: formatMac(mac), removed: true };
    },
  },
  {
    method: 'POST',
    path: '/devices/:mac/erase',
    summary: 'Erases what is known of a lock, its positions above all, for good.',
    success: 200,
    handle: async ({ accounts }, request) => {
      const mac = macOf(request);
      const { uplinks, findings, quarantined, lockEvents, pendingDeliveries } = await accounts.devices.erase(mac);
      return {
        mac: formatMac(mac),
        uplinks,
        findings,
        quarantined,
        lock_events: lockEvents,
        pending_deliveries: pendingDeliveries,
      };
    },
  },
  {
    method: 'POST',
    path: '/devices/:mac/rotate-secret',
    summary: 'Gives a lock a new secret; answers it, once. The old one may go on for a while.',
    success: 200,
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
    summary: 'Adds a phone that acts for a lock; answers its credential, once.',
    success: 201,
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
    summary: 'The phones that act, or acted, for a lock.',
    success: 200,
    handle: async ({ store, wallClock }, request) => {
      const mac = macOf(request);
      const phones = await store.listPhones(mac);
      return { mac: formatMac(mac), phones: phones.map((phone) => phoneJson(phone, wallClock)) };
    },
  },
  {
    method: 'DELETE',
    path: '/devices/:mac/phones/:name',
    summary: 'Revokes a phone credential; its connections end.',
    success: 200,
    handle: async ({ accounts }, request) => {
      const mac = macOf(request);
      const name = request.params.name ?? '';
      await accounts.devices.revokePhone(mac, name);
      return { mac: formatMac(mac), name, revoked: true };
    },
  },
];

function readExpiry(text: string): number {
  const timeMs = parseDate(text);
  if (!Number.isNaN(timeMs) && isDatable(timeMs)) return timeMs;
  throw new LockgateError('input-expiry', `expires_at is ${JSON.stringify(text)}: expected ${DATE_EXPECTED}`);
}

function phoneJson({ name, createdAtMs, expiresAtMs, revokedAtMs }: Phone, clock: Clock) {
  const isExpired = expiresAtMs !== null && expiresAtMs <= clock.now();
  return {
    name,
    state: revokedAtMs !== null ? 'revoked' : isExpired ? 'expired' : 'active',
    created_at: toDate(createdAtMs),
    expires_at: expiresAtMs === null ? null : toDate(expiresAtMs),
    revoked_at: revokedAtMs === null ? null : toDate(revokedAtMs),
  };
}

/**
 * Reads the query of `GET /deliveries`, and makes the answer: each delivery of an event to a URL, with its attempts.
 */
import { Type } from 'typebox';
import { decodeUplink } from '../../../../proto/wire/codec.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { isPingUplink } from '../../../../proto/wire/ping.js';
import { toDate } from '../../../../proto/wire/ping-json.js';
import { noSuchDevice, noSuchWebhook } from '../../../store/contract/errors.js';
import type { StoredUplink } from '../../../store/contract/store.js';
import {
  DELIVERY_STATES,
  type DeliveryFilter,
  type DeliveryReading,
  type StoredAttempt,
} from '../../../store/contract/webhook-store.js';
import { eventId } from '../../../webhooks/event-id.js';
import type { Webhooks } from '../../../webhooks/webhooks.js';
import { limitOf, readDate, readId, textOf, wordOf } from '../query.js';
import { type OperatorParts, type Query, readMac } from '../routes.js';
import { DateText, Exact, Limit, MacText, MaybeText, MaybeTime, OneMac, OneOf, OrNull, Time } from '../schemas.js';

/** The number of deliveries in one answer: by default, and at most. */
const DEFAULT_LISTED = 50;
const MAX_LISTED = 500;

/** The schema of the query. */
export const DeliveryQuery = Exact({
  url: Type.Optional(Type.String({ description: 'The id of a webhook URL.' })),
  state: Type.Optional(OneOf(DELIVERY_STATES)),
  mac: OneMac,
  since: Type.Optional(DateText),
  until: Type.Optional(DateText),
  limit: Limit(MAX_LISTED, DEFAULT_LISTED),
});

const MaybeInteger = OrNull(Type.Integer());

/** The schema of the answer of {@link showDeliveries}. */
export const DeliveriesAnswer = Type.Object({
  deliveries: Type.Array(
    Type.Object({
      event_id: Type.String(),
      url_id: Type.Integer(),
      mac: MacText,
      reason: MaybeText,
      received_at: Time,
      state: OneOf(DELIVERY_STATES),
      /** Whether the stored ping no longer matches its checksum, whatever its state. */
      damaged: Type.Boolean(),
      next_attempt_at: MaybeTime,
      attempts: Type.Array(
        Type.Object({
          number: Type.Integer(),
          at: Time,
          status: MaybeInteger,
          duration_ms: Type.Number(),
          error: MaybeText,
          answer: MaybeText,
        }),
      ),
    }),
  ),
});

/** @throws LockgateError `input-…`, `no-such-device`, `no-such-webhook` */
export async function readDeliveryQuery({ store }: OperatorParts, query: Query): Promise<DeliveryFilter> {
  const sinceMs = readDate('since', textOf(query, 'since'));
  const untilMs = readDate('until', textOf(query, 'until'));
  const urls = await store.listWebhookUrls();
  const urlText = textOf(query, 'url');
  const urlId = urlText === undefined ? undefined : readId(urlText);
  if (urlId !== undefined && urls.every(({ id }) => id !== urlId)) throw noSuchWebhook(urlId);
  const state = wordOf(query, 'state', DELIVERY_STATES);
  const mac = textOf(query, 'mac');
  const device = mac === undefined ? undefined : await findDevice(store, mac);
  return {
    urlIds: urlId === undefined ? urls.map(({ id }) => id) : [urlId],
    states: state === undefined ? DELIVERY_STATES : [state],
    deviceId: device?.device.id,
    fromId: sinceMs === undefined ? 0 : await store.webhooks.findFirstUplinkFrom(sinceMs),
    toId: untilMs === undefined ? Number.MAX_SAFE_INTEGER : (await store.webhooks.findFirstUplinkFrom(untilMs)) - 1,
    limit: limitOf(query, DEFAULT_LISTED),
  };
}

/** @throws LockgateError `input-mac`, `no-such-device` */
async function findDevice(store: OperatorParts['store'], text: string) {
  const mac = readMac(text);
  const device = await store.findDevice(mac);
  if (device === null) throw noSuchDevice(mac);
  return device;
}

/** The answer to `GET /deliveries`. */
export async function showDeliveries({ store, webhooks }: OperatorParts, filter: DeliveryFilter): Promise<unknown> {
  const deliveries = await store.webhooks.readDeliveries(filter);
  return { deliveries: deliveries.map((reading) => deliveryJson(reading, webhooks)) };
}

function deliveryJson(reading: DeliveryReading, webhooks: Webhooks) {
  const { urlId, uplink, state, attempts } = reading;
  const nextAtMs = webhooks.nextAttemptAtMs(reading);
  return {
    event_id: eventId(uplink),
    url_id: urlId,
    mac: formatMac(uplink.mac),
    reason: reasonOf(uplink),
    received_at: toDate(uplink.receivedAtMs),
    state,
    damaged: uplink.isDamaged,
    next_attempt_at: nextAtMs === null ? null : toDate(nextAtMs),
    attempts: attempts.map(attemptJson),
  };
}

/** The reason of a stored ping; null if the ping is damaged. */
function reasonOf({ bytes, isDamaged }: StoredUplink): string | null {
  if (isDamaged) return null;
  const decoded = decodeUplink(bytes);
  return decoded.ok && isPingUplink(decoded.value) ? decoded.value.body.reason : null;
}

function attemptJson({ number, atMs, durationMs, status, error, answer }: StoredAttempt) {
  return { number, at: toDate(atMs), status, duration_ms: durationMs, error, answer };
}

/**
 * Reads the query of `GET /deliveries`, and makes the answer: each delivery of an event to a URL, with its attempts.
 */
import { Type } from 'typebox';
import { decodeUplink } from '../../../../proto/wire/codec.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { isPingUplink } from '../../../../proto/wire/ping.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { noSuchDevice, noSuchWebhook } from '../../../store/contract/errors.js';
import type { StoredUplink } from '../../../store/contract/log/stored-uplink.js';
import { DELIVERY_STATES, type DeliveryReading, type StoredAttempt } from '../../../store/contract/webhook-store.js';
import { EVENT_TYPES, eventTypeOf } from '../../../store/contract/webhooks/merchant-event.js';
import {
  afterEvent,
  type DeliveryPageTerms,
  type DeliveryPosition,
  readDeliveryPage,
} from '../../../webhooks/delivery-page.js';
import { eventId } from '../../../webhooks/event-id.js';
import { traceParent } from '../../../webhooks/payload/trace-context.js';
import type { Webhooks } from '../../../webhooks/webhooks.js';
import { NextCursor, nextCursor, type Page, pageQuery, readPage } from '../page.js';
import { readDate, readId, textOf, wordOf } from '../query.js';
import { type OperatorParts, type Query, readMac } from '../routes.js';
import { DateText, Exact, MacText, MaybeText, MaybeTime, OneMac, OneOf, OrNull, Time } from '../schemas.js';

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
  ...pageQuery(MAX_LISTED, DEFAULT_LISTED),
});

const MaybeInteger = OrNull(Type.Integer());

/** The schema of the answer of {@link showDeliveries}. */
export const DeliveriesAnswer = Type.Object({
  deliveries: Type.Array(
    Type.Object({
      event_id: Type.String(),
      url_id: Type.Integer(),
      mac: MacText,
      type: OneOf(EVENT_TYPES),
      /** The reason of a ping; null if the ping is damaged, and for other events. */
      reason: MaybeText,
      received_at: Time,
      state: OneOf(DELIVERY_STATES),
      /** Whether the stored event no longer matches its checksum, whatever the delivery's state. */
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
          /** The header that the attempt was sent with: its trace and parent id (W3C Trace Context). */
          traceparent: Type.String(),
        }),
      ),
    }),
  ),
  next_cursor: NextCursor,
});

/** What a query selects. */
interface DeliveryQueryTerms extends Omit<DeliveryPageTerms, 'nextTurn'> {
  /** Ties a cursor to the query's filters: `readPage` refuses a cursor that was made with another key. */
  readonly listKey: string;
}

/** @throws LockgateError `input-…`, `no-such-device`, `no-such-webhook` */
export async function readDeliveryQuery({ store }: OperatorParts, query: Query): Promise<DeliveryQueryTerms> {
  const sinceMs = readDate('since', textOf(query, 'since'));
  const untilMs = readDate('until', textOf(query, 'until'));
  const urls = await store.listWebhookUrls();
  const urlText = textOf(query, 'url');
  const urlId = urlText === undefined ? undefined : readId(urlText);
  if (urlId !== undefined && urls.every(({ id }) => id !== urlId)) throw noSuchWebhook(urlId);
  const state = wordOf(query, 'state', DELIVERY_STATES);
  const mac = textOf(query, 'mac');
  const device = mac === undefined ? undefined : await findDevice(store, mac);
  const deviceId = device?.device.id;
  // Without `since` and `until`: they only cut the list off at its ends, so a cursor's position keeps its meaning.
  const listKey = `deliveries ${JSON.stringify([urlId ?? null, state ?? null, deviceId ?? null])}`;
  const { limit, after } = readPage(query, listKey, ['number', 'number'], DEFAULT_LISTED);
  const untilId = untilMs === undefined ? undefined : await store.webhooks.findFirstUplinkFrom(untilMs);
  return {
    listKey,
    urlIds: urlId === undefined ? urls.map(({ id }) => id) : [urlId],
    states: state === undefined ? DELIVERY_STATES : [state],
    deviceId,
    fromId: sinceMs === undefined ? undefined : await store.webhooks.findFirstUplinkFrom(sinceMs),
    after: startOf(after, untilId),
    limit,
  };
}

/** Where a page starts, newest first: after the cursor's position, or after all events that are too new for `until`. */
function startOf(cursor: Page['after'], untilId: number | undefined): DeliveryPosition | undefined {
  const [uplinkId, urlId] = (cursor ?? []) as number[];
  if (uplinkId !== undefined && urlId !== undefined && (untilId === undefined || uplinkId < untilId))
    return { uplinkId, urlId };
  return untilId === undefined ? undefined : afterEvent(untilId);
}

/** @throws LockgateError `input-mac`, `no-such-device` */
async function findDevice(store: OperatorParts['store'], text: string) {
  const mac = readMac(text);
  const device = await store.findDevice(mac);
  if (device === null) throw noSuchDevice(mac);
  return device;
}

/** The answer to `GET /deliveries`. */
export async function showDeliveries(
  { store, webhooks, merchants }: OperatorParts,
  { listKey, ...terms }: DeliveryQueryTerms,
): Promise<unknown> {
  // The turns of merchants' long reads: only together can all long reads be kept from delaying pings.
  const nextTurn = (): Promise<void> => merchants.ownData.readTurns.next();
  const { deliveries, next } = await readDeliveryPage(store, { ...terms, nextTurn });
  return {
    deliveries: deliveries.map((reading) => deliveryJson(reading, webhooks)),
    next_cursor: nextCursor(listKey, next && [next.uplinkId, next.urlId]),
  };
}

function deliveryJson(reading: DeliveryReading, webhooks: Webhooks) {
  const { urlId, uplink, state, attempts } = reading;
  const nextAtMs = webhooks.nextAttemptWallClockMs(reading);
  const id = eventId(uplink);
  return {
    event_id: id,
    url_id: urlId,
    mac: formatMac(uplink.mac),
    type: eventTypeOf(uplink.kind),
    reason: reasonOf(uplink),
    received_at: formatDate(uplink.receivedAtMs),
    state,
    damaged: uplink.isDamaged,
    next_attempt_at: nextAtMs === null ? null : formatDate(nextAtMs),
    attempts: attempts.map((attempt) => attemptJson(id, urlId, attempt)),
  };
}

/** The reason of a stored ping; null if the ping is damaged, and of other events. */
function reasonOf({ kind, bytes, isDamaged }: StoredUplink): string | null {
  if (isDamaged || eventTypeOf(kind) !== 'ping') return null;
  const decoded = decodeUplink(bytes);
  return decoded.ok && isPingUplink(decoded.value) ? decoded.value.body.reason : null;
}

function attemptJson(id: string, urlId: number, attempt: StoredAttempt) {
  const { number, atMs, durationMs, status, error, answer } = attempt;
  const traceparent = traceParent({ eventId: id, urlId, number, atMs });
  return { number, at: formatDate(atMs), status, duration_ms: durationMs, error, answer, traceparent };
}

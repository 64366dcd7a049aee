/** Deliveries as the operator's interface lists them: which, and each with its attempts. */
import { decodeUplink } from '../../proto/codec.js';
import { LockgateError } from '../../proto/errors.js';
import { formatMac } from '../../proto/mac.js';
import { isPingUplink } from '../../proto/ping.js';
import { toDate } from '../../proto/ping-json.js';
import { eventId } from '../event-id.js';
import { noSuchDevice } from '../store/registry-tables.js';
import { noSuchWebhook } from '../store/webhook-sqlite.js';
import {
  DELIVERY_STATES,
  type DeliveryFilter,
  type DeliveryReading,
  type DeliveryState,
  type StoredAttempt,
} from '../store/webhook-store.js';
import { readDate, readId, textOf } from './query.js';
import { type OperatorParts, type Query, readMac } from './routes.js';

/** Deliveries in one answer, where nobody says otherwise, and at the most. */
const LISTED = 50;
const LISTED_MOST = 500;

/** @throws LockgateError `input-…`, `no-such-device`, `no-such-webhook` */
export async function readDeliveryQuery({ store }: OperatorParts, query: Query): Promise<DeliveryFilter> {
  const sinceMs = readDate('since', textOf(query, 'since'));
  const untilMs = readDate('until', textOf(query, 'until'));
  const urls = await store.listWebhookUrls();
  const urlText = textOf(query, 'url');
  const urlId = urlText === undefined ? undefined : readId(urlText);
  if (urlId !== undefined && urls.every(({ id }) => id !== urlId)) throw noSuchWebhook(urlId);
  const mac = textOf(query, 'mac');
  const device = mac === undefined ? undefined : await findDevice(store, mac);
  return {
    urlIds: urlId === undefined ? urls.map(({ id }) => id) : [urlId],
    states: readStates(textOf(query, 'state')),
    deviceId: device?.device.id,
    fromId: sinceMs === undefined ? 0 : await store.webhooks.findFirstUplinkFrom(sinceMs),
    toId: untilMs === undefined ? Number.MAX_SAFE_INTEGER : (await store.webhooks.findFirstUplinkFrom(untilMs)) - 1,
    limit: readLimit(textOf(query, 'limit')),
  };
}

async function findDevice(store: OperatorParts['store'], text: string) {
  const mac = readMac(text);
  const device = await store.findDevice(mac);
  if (device === null) throw noSuchDevice(mac);
  return device;
}

function readStates(text: string | undefined): readonly DeliveryState[] {
  if (text === undefined) return DELIVERY_STATES;
  const state = DELIVERY_STATES.find((each) => each === text);
  if (state !== undefined) return [state];
  throw new LockgateError('input-state', `state is ${JSON.stringify(text)}: expected ${DELIVERY_STATES.join(', ')}`);
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return LISTED;
  const limit = Number(text);
  if (/^\d{1,6}$/.test(text) && limit >= 1 && limit <= LISTED_MOST) return limit;
  throw new LockgateError('input-limit', `limit is ${JSON.stringify(text)}: expected a number, 1 to ${LISTED_MOST}`);
}

/** The answer to `GET /deliveries`. */
export async function showDeliveries({ store }: OperatorParts, filter: DeliveryFilter): Promise<unknown> {
  return { deliveries: (await store.webhooks.readDeliveries(filter)).map(deliveryJson) };
}

function deliveryJson({ urlId, uplink, state, nextAttemptAtMs, attempts }: DeliveryReading) {
  return {
    event_id: eventId(uplink),
    url_id: urlId,
    mac: formatMac(uplink.mac),
    reason: reasonOf(uplink.bytes),
    received_at: toDate(uplink.receivedAtMs),
    state,
    next_attempt_at: nextAttemptAtMs === null ? null : toDate(nextAttemptAtMs),
    attempts: attempts.map(attemptJson),
  };
}

/** Null where the stored ping is damaged. */
function reasonOf(bytes: Buffer): string | null {
  const decoded = decodeUplink(bytes);
  return decoded.ok && isPingUplink(decoded.value) ? decoded.value.body.reason : null;
}

function attemptJson({ number, atMs, durationMs, status, error, answer }: StoredAttempt) {
  return { number, at: toDate(atMs), status, duration_ms: durationMs, error, answer };
}

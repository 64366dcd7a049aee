/**
 * A merchant's webhook URLs and deliveries as its interface shows them. URLs, headers and secrets are the operator's
 * (specification): of a URL only its origin is shown, of a delivery no answer of the receiver.
 */
import { type TSchema, Type } from 'typebox';
import { decodeUplink } from '../../../../proto/wire/codec.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { isPingUplink } from '../../../../proto/wire/ping.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { DELIVERY_STATES, type DeliveryReading, type StoredAttempt } from '../../../store/contract/webhook-store.js';
import type { AttemptFigures, AttemptSummary } from '../../../store/contract/webhooks/attempt-figures.js';
import { EVENT_TYPES, eventTypeOf } from '../../../store/contract/webhooks/merchant-event.js';
import type { DeliveryHour } from '../../../webhooks/delivery-hours.js';
import { eventId } from '../../../webhooks/event-id.js';
import { traceParent } from '../../../webhooks/payload/trace-context.js';
import { ADDRESS_REFUSED } from '../../../webhooks/sending/attempt.js';
import type { WebhookReading } from '../../../webhooks/webhook-settings.js';
import { filterJson } from '../../shared/filter-json.js';

/** How many of a URL's newest attempts its figures sum up. */
export const SUMMED_ATTEMPTS = 500;

const TIME = Type.String({ format: 'date-time' });

function orNull<T>(schema: TSchema, description: string) {
  return Type.Unsafe<T | null>({ anyOf: [schema, { type: 'null' }], description });
}

const word = <Word extends string>(words: readonly Word[], description: string) =>
  Type.Unsafe<Word>({ type: 'string', enum: [...words], description });

const Failure = Type.Object({
  at: TIME,
  status: orNull<number>(Type.Integer(), 'The status of the answer; null if there was none.'),
  error: Type.String({ description: 'A sentence for people.' }),
});

export const WebhookSchema = Type.Object(
  {
    id: Type.Integer(),
    origin: Type.String({ description: 'Scheme, host and port; the rest of the URL is not shown.' }),
    state: word(['active', 'disabled'], 'A disabled URL gets nothing; its events are stored.'),
    disabled_why: orNull<string>(Type.String(), 'A sentence; null if it is active.'),
    ordered: Type.Boolean({ description: 'Whether a lock’s later events wait while an earlier one fails.' }),
    events: Type.Array(word(EVENT_TYPES, 'A type of events.'), { description: 'The types of events that it gets.' }),
    reasons: orNull<readonly string[]>(Type.Array(Type.String()), 'It gets pings with these reasons; null: all.'),
    ping_types: orNull<readonly string[]>(Type.Array(Type.String()), 'It gets pings of these types; null: all.'),
    labels: orNull<object>(
      Type.Record(Type.String(), Type.String()),
      'It gets pings of locks with all these labels; null: of all locks.',
    ),
    circuit: word(['open', 'closed'], 'Open after repeated failures: one attempt in a while, until one succeeds.'),
    held_until: orNull<string>(TIME, 'The receiver asked for this by Retry-After: nothing is sent until then.'),
    failing_since: orNull<string>(TIME, 'Since when every attempt has failed; null if the last one succeeded.'),
    attempts: Type.Integer({
      minimum: 0,
      description: `How many attempts the figures below sum up: the newest, at most ${SUMMED_ATTEMPTS}.`,
    }),
    success_rate: orNull<number>(Type.Number(), 'The share of them that was answered with 2xx, 0 to 1.'),
    p95_ms: orNull<number>(Type.Integer(), '95 % of them took at most this long.'),
    last_success_at: orNull<string>(TIME, 'When the last of them that succeeded was made.'),
    last_error: orNull<object>(Failure, 'The last of them that failed.'),
    created_at: TIME,
  },
  { title: 'Webhook', description: 'A webhook URL with its state and how its newest attempts went.' },
);

export const WEBHOOK_EXAMPLE = {
  id: 1,
  origin: 'https://hooks.example.com',
  state: 'active',
  disabled_why: null,
  ordered: false,
  events: ['ping', 'command'],
  reasons: ['REASON_THEFT'],
  ping_types: null,
  labels: { city: 'Hamburg' },
  circuit: 'closed',
  held_until: null,
  failing_since: null,
  attempts: 500,
  success_rate: 0.998,
  p95_ms: 180,
  last_success_at: '2026-11-20T06:30:00.000Z',
  last_error: { at: '2026-11-20T04:11:09.310Z', status: 503, error: 'the receiver answered 503' },
  created_at: '2026-03-02T09:12:44.000Z',
};

export const DeliveryStateWord = word(
  DELIVERY_STATES,
  'pending: will be sent; delivered; dead: every attempt failed; kept: stored while the URL was disabled; ' +
    'damaged: its stored ping is damaged.',
);

export const DeliverySchema = Type.Object(
  {
    event_id: Type.String(),
    mac_addr: Type.String(),
    type: word(EVENT_TYPES, 'The type of the event.'),
    ping_type: orNull<string>(Type.String(), 'Null if the stored ping is damaged, and for other events.'),
    reason: orNull<string>(Type.String(), 'Null if the stored ping is damaged, and for other events.'),
    received_at: TIME,
    state: DeliveryStateWord,
    next_attempt_at: orNull<string>(TIME, 'Null if no attempt is planned.'),
    attempts: Type.Array(
      Type.Object({
        number: Type.Integer(),
        at: TIME,
        status: orNull<number>(Type.Integer(), 'The status of the answer; null if there was none.'),
        duration_ms: orNull<number>(Type.Integer(), 'Null if the address is not allowed.'),
        error: orNull<string>(Type.String(), 'A sentence; null if the answer was 2xx.'),
        traceparent: Type.String({ description: 'The header that it was sent with (W3C Trace Context).' }),
      }),
      { description: 'Oldest first.' },
    ),
  },
  { title: 'Delivery', description: 'An event at a webhook URL, with the attempts to deliver it.' },
);

export const DELIVERY_EXAMPLE = {
  event_id: 'evt_A4C138F0E1D2_1_41_12_8f3a52c07d91be64',
  mac_addr: 'A4:C1:38:F0:E1:D2',
  type: 'ping',
  ping_type: 'close_connection',
  reason: 'REASON_CLOSE_CONNECTION',
  received_at: '2026-11-20T06:30:00.000Z',
  state: 'pending',
  next_attempt_at: '2026-11-20T06:30:05.120Z',
  attempts: [
    {
      number: 1,
      at: '2026-11-20T06:30:00.020Z',
      status: 503,
      duration_ms: 41,
      error: 'the receiver answered 503',
      traceparent: '00-e45d9ca6ef8ccb379ac437e5a453b951-accfc0c0936882f0-01',
    },
  ],
};

export const DeliveryHourSchema = Type.Object(
  {
    from: Type.String({ format: 'date-time', description: 'The start of the hour.' }),
    delivered: Type.Integer({ minimum: 0 }),
    failed_attempts: Type.Integer({ minimum: 0, description: 'Failed attempts at all events of the hour.' }),
    dead: Type.Integer({ minimum: 0, description: 'Events that were given up, or whose stored ping is damaged.' }),
    waiting: Type.Integer({ minimum: 0, description: 'Events that are not delivered yet.' }),
    estimated: Type.Boolean({ description: 'Whether the hour had so many events that the counts are extrapolated.' }),
  },
  { title: 'DeliveryHour', description: 'What became of the events that were received in an hour.' },
);

export const DELIVERY_HOUR_EXAMPLE = {
  from: '2026-11-20T06:00:00.000Z',
  delivered: 1204,
  failed_attempts: 3,
  dead: 0,
  waiting: 2,
  estimated: false,
};

export function deliveryHourJson({ fromMs, delivered, failedAttempts, dead, waiting, isEstimate }: DeliveryHour) {
  return { from: formatDate(fromMs), delivered, failed_attempts: failedAttempts, dead, waiting, estimated: isEstimate };
}

/** A URL for its merchant. */
export function webhookJson(reading: WebhookReading, figures: AttemptFigures) {
  const { url, isCircuitOpen, heldUntilMs } = reading;
  const { attempts, successRate, p95Ms, lastSuccessAtMs, lastError } = figures;
  return {
    id: url.id,
    origin: new URL(url.url).origin,
    state: url.state,
    disabled_why: url.disabledWhy,
    ordered: url.ordered,
    ...filterJson(url),
    circuit: isCircuitOpen ? 'open' : 'closed',
    held_until: dateOrNull(heldUntilMs),
    failing_since: dateOrNull(url.failingSinceMs),
    attempts,
    success_rate: successRate,
    p95_ms: p95Ms === null ? null : Math.round(p95Ms),
    last_success_at: dateOrNull(lastSuccessAtMs),
    last_error: lastError && failureJson(lastError),
    created_at: formatDate(url.createdAtMs),
  };
}

function failureJson({ atMs, status, error }: AttemptSummary) {
  return { at: formatDate(atMs), status, error };
}

/** A delivery for its merchant. @param nextAtMs when its next attempt is planned; null if none is */
export function deliveryJson({ urlId, uplink, state, attempts }: DeliveryReading, nextAtMs: number | null) {
  const id = eventId(uplink);
  const type = eventTypeOf(uplink.kind);
  const decoded = uplink.isDamaged || type !== 'ping' ? undefined : decodeUplink(uplink.bytes);
  const ping = decoded?.ok && isPingUplink(decoded.value) ? decoded.value.body : undefined;
  return {
    event_id: id,
    mac_addr: formatMac(uplink.mac),
    type,
    ping_type: ping?.kind ?? null,
    reason: ping?.reason ?? null,
    received_at: formatDate(uplink.receivedAtMs),
    state,
    next_attempt_at: dateOrNull(nextAtMs),
    attempts: attempts.map((attempt) => attemptJson(id, urlId, attempt)),
  };
}

/** An attempt. The duration for a refused address is left out: it would reveal what listens there. */
function attemptJson(id: string, urlId: number, { number, atMs, status, durationMs, error }: StoredAttempt) {
  const duration_ms = error === ADDRESS_REFUSED ? null : Math.round(durationMs);
  const traceparent = traceParent({ eventId: id, urlId, number, atMs });
  return { number, at: formatDate(atMs), status, duration_ms, error, traceparent };
}

function dateOrNull(timeMs: number | null): string | null {
  return timeMs === null ? null : formatDate(timeMs);
}

/**
 * Makes an attempt to deliver one event (a stored ping, or another event of the log) to one URL: builds body, headers
 * and signatures, sends them, and turns the result into the record for the store and the `delivery` event of the
 * gateway.
 */
import type { StoredUplink } from '../../store/contract/log/stored-uplink.js';
import type { AttemptRecord } from '../../store/contract/webhooks/delivery.js';
import { eventTypeOf } from '../../store/contract/webhooks/merchant-event.js';
import type { WebhookUrl } from '../../store/contract/webhooks/webhook-url.js';
import type { DeliveryAttempted } from '../../webhook-events.js';
import { eventId } from '../event-id.js';
import { webhookBody } from '../payload/body.js';
import { merchantEventBody } from '../payload/merchant-event-body.js';
import { signHeaders } from '../payload/signature.js';
import { traceParent } from '../payload/trace-context.js';
import type { DeliveryClock } from '../url/delivery-clock.js';
import { retryDelay } from '../url/schedule.js';
import { type AttemptResult, attemptDelivery } from './attempt.js';
import type { GuardedConnections } from './guarded-connections.js';

/** A URL's secrets, unsealed. */
export interface UrlSecrets {
  /** The secrets that sign its attempts, newest first. */
  readonly signing: readonly SigningSecret[];
  /** Its custom headers. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A secret that signs until `validUntilMs`, in wall-clock time; without an end if undefined. */
export interface SigningSecret {
  readonly secret: string;
  readonly validUntilMs?: number | undefined;
}

/** What {@link DeliverySender} uses from the rest of the gateway. */
export interface DeliverySenderParts {
  readonly connections: GuardedConnections;
  /** The clock that deliveries wait by; timestamps for receivers are from its wall clock. */
  readonly deliveryClock: DeliveryClock;
  readonly userAgent: string;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
}

/** What {@link DeliverySender.send} sends. */
export interface SentWebhook {
  /** The event's id. */
  readonly id: string;
  readonly body: string;
  /** The attempt's number, 1 for the first at this event. */
  readonly number: number;
  /** When the attempt starts, in wall-clock time. */
  readonly atMs: number;
}

/** An attempt that was made. */
export interface Attempted {
  readonly event: StoredUplink;
  /** The attempt's number, 1 for the first at this event. */
  readonly number: number;
  /** When it started, in wall-clock time. */
  readonly atMs: number;
  readonly result: AttemptResult;
}

export class DeliverySender {
  readonly #url: WebhookUrl;
  readonly #secrets: UrlSecrets;
  readonly #parts: DeliverySenderParts;

  constructor(url: WebhookUrl, secrets: UrlSecrets, parts: DeliverySenderParts) {
    this.#url = url;
    this.#secrets = secrets;
    this.#parts = parts;
  }

  /** Makes the attempt. Never rejects. Resolves with undefined if the stored event is damaged: nothing was sent. */
  async attempt(event: StoredUplink, number: number, signal: AbortSignal): Promise<Attempted | undefined> {
    const atMs = this.#parts.deliveryClock.wall.now();
    const body = bodyOf(event);
    if (body === undefined) return undefined;
    return { event, number, atMs, result: await this.send({ id: eventId(event), body, number, atMs }, signal) };
  }

  /** Sends a body, signed with every secret that is valid at the start of the attempt. */
  async send({ id, body, number, atMs }: SentWebhook, signal: AbortSignal): Promise<AttemptResult> {
    const { deliveryClock, connections, userAgent } = this.#parts;
    const { id: urlId, url, timeoutMs, ca } = this.#url;
    const secrets = this.#secrets.signing.filter(({ validUntilMs = Number.POSITIVE_INFINITY }) => validUntilMs > atMs);
    const headers = {
      ...this.#secrets.headers,
      'content-type': 'application/json',
      'user-agent': userAgent,
      traceparent: traceParent({ eventId: id, urlId, number, atMs }),
      ...signHeaders(
        secrets.map(({ secret }) => secret),
        id,
        atMs,
        body,
      ),
    };
    return await attemptDelivery(
      { url, headers, body, timeoutMs: timeoutMs ?? undefined, ca: ca ?? undefined },
      connections,
      deliveryClock.wall,
      signal,
    );
  }

  /**
   * The record for the store.
   *
   * @param attemptsBefore attempts made before an operator last had the event sent again
   * @param hasRow whether the store has a delivery row for the event at this URL, because an earlier attempt failed
   */
  attemptRecord({ event, number, atMs, result }: Attempted, attemptsBefore: number, hasRow: boolean): AttemptRecord {
    const { status, durationMs, error, answer } = result;
    const outcome = this.#outcome(number - attemptsBefore, result);
    return {
      urlId: this.#url.id,
      uplinkId: event.id,
      number,
      atMs,
      durationMs,
      status,
      error,
      answer,
      outcome,
      hasRow,
    };
  }

  /** The outcome of the attempt with this number in the retry schedule. */
  #outcome(scheduledNumber: number, result: AttemptResult): AttemptRecord['outcome'] {
    if (result.error === null) return { state: 'delivered' };
    if (result.status === 410) return { state: 'dead' };
    const delay = retryDelay(scheduledNumber, this.#parts.random(), result.retryAfter);
    if (delay === undefined) return { state: 'dead' };
    return { state: 'pending', nextAttemptAtMs: this.#parts.deliveryClock.now() + delay };
  }
}

/**
 * The gateway's event about an attempt; `atMs` by the run's clock (wall-clock time, except in a sped-up simulation).
 */
export function deliveryEvent(
  event: StoredUplink,
  attemptRecord: AttemptRecord,
  atMs: number,
  deliveryClock: DeliveryClock,
): DeliveryAttempted {
  const { urlId, number, status, durationMs, error, outcome } = attemptRecord;
  const nextAttemptAtMs = outcome.state === 'pending' ? deliveryClock.formatDate(outcome.nextAttemptAtMs) : null;
  const result = { number, status, durationMs, error, outcome: outcome.state, nextAttemptAtMs };
  return { atMs, urlId, mac: event.mac, eventId: eventId(event), ...result };
}

/** The text of the body; undefined if the stored event does not match its checksum or can't be decoded. */
function bodyOf(event: StoredUplink): string | undefined {
  if (event.isDamaged) return undefined;
  try {
    return JSON.stringify(eventTypeOf(event.kind) === 'ping' ? webhookBody(event) : merchantEventBody(event));
  } catch {
    return undefined;
  }
}

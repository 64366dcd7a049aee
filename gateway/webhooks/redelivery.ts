/**
 * Sends events again when an operator asks for it (interfaces.md §4: `resend`, `recover`). The events become due at the
 * start of the retry schedule and are sent like any retry, under their original ids.
 */
import type { Clock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { noSuchWebhook } from '../store/contract/errors.js';
import type { LogPosition } from '../store/contract/log/log-position.js';
import type { StoredUplink } from '../store/contract/log/stored-uplink.js';
import type { Store } from '../store/contract/store.js';
import type { ResendOutcome } from '../store/contract/webhook-store.js';
import { eventTypeOf } from '../store/contract/webhooks/merchant-event.js';
import type { WebhookUrl } from '../store/contract/webhooks/webhook-url.js';
import type { Dispatcher } from './dispatcher.js';
import { parseEventId } from './event-id.js';

/** Maximum number of events that one commit makes due. Pings wait while the commit runs, so it is small. */
const MAX_RECOVERED_PER_COMMIT = 500;

export interface RedeliveryParts {
  readonly store: Store;
  readonly dispatcher: Dispatcher;
  /** The clock that deliveries wait by. */
  readonly deliveryClock: Clock;
}

/**
 * Selects the events to recover: received at or after `sinceMs` and before `untilMs`, by the run's clock (wall-clock
 * time, except in a sped-up simulation).
 */
export interface RecoveryRange {
  readonly sinceMs: number;
  readonly untilMs?: number | undefined;
  /** Only at this URL; at every URL if undefined. */
  readonly urlId?: number | undefined;
}

/** How many events became due at a URL; null at a disabled URL, where none become due. */
export interface Recovered {
  readonly urlId: number;
  readonly events: number | null;
}

export class Redelivery {
  readonly #parts: RedeliveryParts;
  /** The URLs with a recovery under way that their merchants asked for. */
  readonly #recovering = new Set<number>();

  constructor(parts: RedeliveryParts) {
    this.#parts = parts;
  }

  /**
   * Sends an event again, whether it was delivered or not: to one URL, or to all active URLs of its merchant.
   *
   * @throws LockgateError `input-event`, `no-such-event`, `event-damaged`, `event-filtered`, `no-such-webhook`,
   * `webhook-disabled`, `no-webhook-url`
   */
  async resend(eventId: string, urlId?: number): Promise<{ urlId: number; became: ResendOutcome }[]> {
    return await this.#resend(await findEvent(this.#parts.store, eventId), eventId, urlId);
  }

  /**
   * Sends an event of a URL's merchant to that URL again, whether it was delivered or not.
   *
   * @throws LockgateError `no-such-event` (also for another merchant's event), `event-damaged`, `event-filtered`,
   * `no-such-webhook`, `webhook-disabled`
   */
  async resendOwn(eventId: string, { id, merchantId }: WebhookUrl): Promise<ResendOutcome> {
    const eventKey = parseEventId(eventId);
    const uplink = eventKey === undefined ? null : await this.#parts.store.webhooks.findEvent(eventKey);
    if (uplink?.merchantId !== merchantId) throw new LockgateError('no-such-event', 'there is no such event');
    const [resent] = await this.#resend(uplink, eventId, id);
    if (resent === undefined) throw noSuchWebhook(id);
    return resent.became;
  }

  async #resend(
    uplink: StoredUplink,
    eventId: string,
    urlId: number | undefined,
  ): Promise<{ urlId: number; became: ResendOutcome }[]> {
    const { store, dispatcher, deliveryClock } = this.#parts;
    if (uplink.isDamaged)
      throw new LockgateError(
        'event-damaged',
        `the stored ping of ${eventId} is not sent: it is damaged and does not match its checksum`,
      );
    const urls = await this.#urlsFor(uplink, urlId);
    const resent: { urlId: number; became: ResendOutcome }[] = [];
    for (const { id } of urls) {
      resent.push({ urlId: id, became: await store.webhooks.resend(id, uplink.id, deliveryClock.now()) });
      dispatcher.recheckDue(id);
    }
    return resent;
  }

  async #passes({ filter }: WebhookUrl, uplink: StoredUplink): Promise<boolean> {
    if (filter === null) return eventTypeOf(uplink.kind) === 'ping';
    return (await this.#parts.store.webhooks.selectPassing(filter, [uplink])).length > 0;
  }

  async #urlsFor(uplink: StoredUplink, urlId: number | undefined): Promise<WebhookUrl[]> {
    const urls = (await this.#parts.store.listWebhookUrls()).filter(
      ({ merchantId }) => merchantId === uplink.merchantId,
    );
    if (urlId === undefined) {
      const active: WebhookUrl[] = [];
      for (const url of urls) if (url.state === 'active' && (await this.#passes(url, uplink))) active.push(url);
      if (active.length === 0)
        throw new LockgateError('no-webhook-url', 'the lock’s merchant has no active webhook URL that gets this event');
      return active;
    }
    const url = urls.find(({ id }) => id === urlId);
    if (url === undefined) throw noSuchWebhook(urlId);
    if (!(await this.#passes(url, uplink)))
      throw new LockgateError(
        'event-filtered',
        `webhook URL ${url.id} does not get this event: it is not set to get such events`,
      );
    return [requireActive(url)];
  }

  /**
   * Sends all undelivered events of a time range again.
   *
   * @throws LockgateError `input-date`; `no-such-webhook`, `webhook-disabled` if `urlId` is given
   */
  async recover({ sinceMs, untilMs = Number.POSITIVE_INFINITY, urlId }: RecoveryRange): Promise<Recovered[]> {
    const { store } = this.#parts;
    if (untilMs <= sinceMs) throw new LockgateError('input-date', 'until is not after since');
    const urls = await store.listWebhookUrls();
    const wantedUrls = urls.filter(({ id }) => urlId === undefined || id === urlId);
    if (urlId !== undefined && wantedUrls.length === 0) throw noSuchWebhook(urlId);
    if (urlId !== undefined) wantedUrls.forEach(requireActive);
    // Uplinks are in the log in the order of receipt, so the time range is between two positions.
    const ranges = new Map<number, readonly [after: LogPosition, before: LogPosition]>();
    const recovered: Recovered[] = [];
    for (const url of wantedUrls) {
      const { id, merchantId, state } = url;
      if (state === 'active' && !ranges.has(merchantId))
        ranges.set(merchantId, [
          await store.webhooks.findPositionAt(merchantId, sinceMs),
          await store.webhooks.findPositionAt(merchantId, untilMs),
        ]);
      const range = state === 'active' ? ranges.get(merchantId) : undefined;
      recovered.push({ urlId: id, events: range ? await this.#recoverAt(url, ...range) : null });
    }
    return recovered;
  }

  /**
   * Like {@link recover}, for one URL, as its merchant asks for it: one recovery of a URL at a time. Returns how many
   * events became due.
   *
   * @throws LockgateError as {@link recover}, and `recovery-under-way`
   */
  async recoverOwn({ id }: WebhookUrl, range: Omit<RecoveryRange, 'urlId'>): Promise<number> {
    if (this.#recovering.has(id))
      throw new LockgateError('recovery-under-way', 'a recovery of this webhook URL is under way: wait for its end');
    this.#recovering.add(id);
    try {
      const [recovered] = await this.recover({ ...range, urlId: id });
      return recovered?.events ?? 0;
    } finally {
      this.#recovering.delete(id);
    }
  }

  /** Makes the URL's undelivered events between two positions due. Returns their number. */
  async #recoverAt({ id }: WebhookUrl, start: LogPosition, before: LogPosition): Promise<number> {
    const { store, dispatcher, deliveryClock } = this.#parts;
    let eventCount = 0;
    for (let after: LogPosition | null = start; after !== null; ) {
      const batch = { after, before, limit: MAX_RECOVERED_PER_COMMIT, nowMs: deliveryClock.now() };
      const { count, next } = await store.webhooks.recover(id, batch);
      eventCount += count;
      after = next;
      dispatcher.recheckDue(id);
    }
    // Events that were not sent since their stored pings were damaged, and whose pings have been repaired since.
    const range = { after: start, before, nowMs: deliveryClock.now() };
    const repairedCount = await store.webhooks.releaseRepaired(id, range);
    if (repairedCount > 0) dispatcher.recheckDue(id);
    return eventCount + repairedCount;
  }
}

/** The event with this id. @throws LockgateError `input-event`, `no-such-event` */
async function findEvent(store: Store, eventId: string): Promise<StoredUplink> {
  const key = parseEventId(eventId);
  if (key === undefined)
    throw new LockgateError(
      'input-event',
      `${JSON.stringify(eventId.slice(0, 80))} is not an event id: expected evt_…`,
    );
  const uplink = await store.webhooks.findEvent(key);
  if (uplink === null) throw new LockgateError('no-such-event', `there is no event ${eventId}`);
  return uplink;
}

/** @throws LockgateError `webhook-disabled` */
function requireActive(url: WebhookUrl): WebhookUrl {
  if (url.state === 'active') return url;
  throw new LockgateError('webhook-disabled', `webhook URL ${url.id} is disabled: enable it first`);
}

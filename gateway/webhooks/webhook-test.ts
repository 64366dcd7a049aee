/**
 * Sends test webhooks (interfaces.md §3): the lock's latest ping, a plausible ping, or a given ping, such as one of a
 * story (a scripted series of events). A test is sent and signed like every event, but is marked `test` and has a new
 * id, so that no receiver mistakes it for an event that the receiver has seen. The caller waits for the answers;
 * nothing is stored or retried.
 *
 * A test must not reveal what listens on an internal address: the result for a refused address is always the same error
 * and has no duration.
 */
import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { type Milliseconds, Minutes } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { decodeUplink } from '../../proto/wire/codec.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import { isPingUplink } from '../../proto/wire/ping.js';
import type { Keys } from '../data-folder/keys.js';
import { type BudgetName, OverBudget } from '../fairness/over-budget.js';
import type { Device } from '../store/contract/devices/device.js';
import { noSuchDevice, noSuchWebhook } from '../store/contract/errors.js';
import type { StoredUplink } from '../store/contract/log/stored-uplink.js';
import type { Store } from '../store/contract/store.js';
import type { WebhookUrl } from '../store/contract/webhooks/webhook-url.js';
import { unsealUrlSecrets } from './dispatcher.js';
import { webhookBody } from './payload/body.js';
import { DeliverySender, type DeliverySenderParts } from './sending/delivery-sender.js';
import { type GivenPing, givenPing, plausiblePing } from './test-ping.js';

/** Test webhooks that may be sent to one merchant per minute. */
export const TESTS_PER_MINUTE = 30;
/** Given pings that may be sent to one merchant per minute: enough for a few stories, too few for a load test. */
export const STORY_PINGS_PER_MINUTE = 120;
const BUDGET_WINDOW: Milliseconds = Minutes(1);
/** How many of the lock's latest uplinks are searched for a ping: many acknowledgements may follow the last ping. */
const SEARCHED_UPLINKS = 200;

export interface WebhookTesterParts extends DeliverySenderParts {
  readonly store: Store;
  readonly keys: Keys;
}

/** The result of a test at one URL. */
export interface TestDelivery {
  readonly urlId: number;
  /** Scheme, host and port. The path is left out, since it may hold a secret. */
  readonly origin: string;
  /** The HTTP status of the answer; null without a complete one. */
  readonly status: number | null;
  /** Null if the address is refused: a duration would reveal whether something listens there. */
  readonly durationMs: number | null;
  /** A sentence for people; null if the receiver answered 2xx. */
  readonly error: string | null;
}

export interface TestOutcome {
  readonly eventId: string;
  readonly deliveries: readonly TestDelivery[];
}

export class WebhookTester {
  readonly #parts: WebhookTesterParts;
  readonly #abort = new AbortController();
  /** Two budgets, so that operators' stories do not use up the merchants' own tests. */
  readonly #testBudget = new MinuteBudget(TESTS_PER_MINUTE, 'test-webhooks', 'test webhooks');
  readonly #storyBudget = new MinuteBudget(STORY_PINGS_PER_MINUTE, 'story-pings', 'pings of stories');

  constructor(parts: WebhookTesterParts) {
    this.#parts = parts;
    // Each attempt under way adds a listener, and a merchant may have many URLs: 0 turns Node's warning off.
    setMaxListeners(0, this.#abort.signal);
  }

  /** Aborts the running tests. */
  stop(): void {
    this.#abort.abort();
  }

  /**
   * Sends a test to all active URLs of the lock's merchant, or to one URL by its id, active or not. Waits for every
   * answer.
   *
   * @throws LockgateError `no-such-device`, `no-such-webhook`, `no-webhook-url`, `rate-limited`
   */
  async test(mac: Mac, urlId?: number): Promise<TestOutcome> {
    const { device, urls } = await this.#find(mac, urlId);
    this.#testBudget.count(device.merchantId, this.#parts.deliveryClock.wall.now());
    return await this.#sendTo(urls, await this.#latestPing(device));
  }

  /**
   * Like {@link test}, but sends a given ping, such as one of a story.
   *
   * @throws LockgateError as {@link test}, and `input-ping` if no lock could send the ping
   */
  async testGiven(mac: Mac, given: GivenPing, urlId?: number): Promise<TestOutcome> {
    const { device, urls } = await this.#find(mac, urlId);
    const ping = givenPing(device, given);
    this.#storyBudget.count(device.merchantId, this.#parts.deliveryClock.wall.now());
    return await this.#sendTo(urls, ping);
  }

  async #find(mac: Mac, urlId: number | undefined): Promise<{ device: Device; urls: WebhookUrl[] }> {
    const reading = await this.#parts.store.findDevice(mac);
    if (reading === null) throw noSuchDevice(mac);
    const { device } = reading;
    return { device, urls: await this.#findUrls(device, urlId) };
  }

  async #sendTo(urls: readonly WebhookUrl[], ping: StoredUplink): Promise<TestOutcome> {
    const id = `evt_test_${randomBytes(12).toString('hex')}`;
    const body = JSON.stringify({ ...webhookBody(ping), event_id: id, test: true });
    return { eventId: id, deliveries: await Promise.all(urls.map((url) => this.#send(url, id, body))) };
  }

  async #findUrls({ mac, merchantId }: Device, urlId: number | undefined): Promise<WebhookUrl[]> {
    const allUrls = await this.#parts.store.listWebhookUrls();
    const merchantUrls = allUrls.filter((url) => url.merchantId === merchantId);
    const wanted = merchantUrls.filter((url) => (urlId === undefined ? url.state === 'active' : url.id === urlId));
    if (wanted.length > 0) return wanted;
    if (urlId !== undefined) throw noSuchWebhook(urlId);
    throw new LockgateError('no-webhook-url', `the merchant of ${formatMac(mac)} has no active webhook URL`);
  }

  /** The lock's latest intact ping, or a plausible one. */
  async #latestPing(device: Device): Promise<StoredUplink> {
    const uplinks = await this.#parts.store.readUplinks(device.id, SEARCHED_UPLINKS);
    const latest = uplinks.find(({ bytes, isDamaged }) => {
      if (isDamaged) return false;
      const decoded = decodeUplink(bytes);
      return decoded.ok && isPingUplink(decoded.value);
    });
    return latest ?? plausiblePing(device, this.#parts.deliveryClock.wall.now());
  }

  async #send(url: WebhookUrl, id: string, body: string): Promise<TestDelivery> {
    const { store, keys, deliveryClock } = this.#parts;
    const atMs = deliveryClock.wall.now();
    const secrets = unsealUrlSecrets(keys, url, await store.webhooks.readOldSecrets(url.id, atMs));
    const sender = new DeliverySender(url, secrets, this.#parts);
    const result = await sender.send({ id, body, number: 1, atMs }, this.#abort.signal);
    const { status, error } = result;
    const durationMs = result.isAddressRefused ? null : result.durationMs;
    return { urlId: url.id, origin: new URL(url.url).origin, status, durationMs, error };
  }
}

/** Limits how many pings may be sent to each merchant within any minute. */
class MinuteBudget {
  readonly #limit: number;
  readonly #budget: BudgetName;
  readonly #limited: string;
  /** When each merchant's pings of the last minute were sent. */
  readonly #spentAtMs = new Map<number, number[]>();

  /** @param limited what the limit counts, in the plural, for the error sentence */
  constructor(limit: number, budget: BudgetName, limited: string) {
    this.#limit = limit;
    this.#budget = budget;
    this.#limited = limited;
  }

  /** Counts one ping of the merchant. @throws OverBudget `rate-limited` if the limit is reached */
  count(merchantId: number, nowMs: number): void {
    const times = (this.#spentAtMs.get(merchantId) ?? []).filter(
      (atMs) => atMs > nowMs - BUDGET_WINDOW && atMs <= nowMs,
    );
    this.#spentAtMs.set(merchantId, times);
    if (times.length >= this.#limit) {
      const message = `at most ${this.#limit} ${this.#limited} a minute; wait a little`;
      throw OverBudget.rate(this.#budget, message, (times[0] ?? nowMs) + BUDGET_WINDOW - nowMs);
    }
    times.push(nowMs);
  }
}

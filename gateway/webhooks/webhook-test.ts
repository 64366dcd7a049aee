/**
 * Test webhooks (interfaces.md §3): the lock's latest ping, a plausible one, or the pings of a story, sent and signed
 * like every ping, marked `test`, under a new id so that no receiver takes it for an event it has seen. The caller
 * waits for the answers; nothing is stored and nothing is retried.
 *
 * A test must not reveal what listens on an internal address: a refused address always has the same error, and no time.
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
import { noSuchDevice, noSuchWebhook } from '../store/contract/errors.js';
import type { Device, Store, StoredUplink, WebhookUrl } from '../store/contract/store.js';
import { openUrlSecrets } from './dispatcher.js';
import { webhookBody } from './payload/body.js';
import { DeliverySender, type DeliverySenderParts } from './sending/delivery-sender.js';
import { type GivenPing, givenPing, plausiblePing } from './test-ping.js';

/** Tests of one merchant a minute. */
export const TESTS_PER_MINUTE = 30;
/** Pings of stories for one merchant a minute: enough for a few stories, too few for a load test. */
export const GIVEN_PER_MINUTE = 120;
const WINDOW: Milliseconds = Minutes(1);
/** The lock's latest uplinks in which a ping is looked for: 100 acknowledgements may follow it. */
const UPLINKS_SEARCHED = 200;

export interface WebhookTesterParts extends DeliverySenderParts {
  readonly store: Store;
  readonly keys: Keys;
}

/** The result of a test at one URL. */
export interface TestDelivery {
  readonly urlId: number;
  /** Scheme, host and port. The path is left out, since it may hold a secret. */
  readonly origin: string;
  readonly status: number | null;
  /** Null where the address is refused: a time would reveal whether something listens there. */
  readonly durationMs: number | null;
  /** A sentence for people; null where the receiver answered 2xx. */
  readonly error: string | null;
}

export interface TestOutcome {
  readonly eventId: string;
  readonly deliveries: readonly TestDelivery[];
}

export class WebhookTester {
  readonly #parts: WebhookTesterParts;
  readonly #abort = new AbortController();
  /** Two budgets, so that stories of operators leave the merchants' own tests alone. */
  readonly #tests = new MinuteBudget(TESTS_PER_MINUTE, 'test-webhooks', 'test webhooks');
  readonly #given = new MinuteBudget(GIVEN_PER_MINUTE, 'story-pings', 'pings of stories');

  constructor(parts: WebhookTesterParts) {
    this.#parts = parts;
    // Each attempt under way adds a listener, and a merchant may have many URLs.
    setMaxListeners(0, this.#abort.signal);
  }

  /** Cuts off the tests under way. */
  stop(): void {
    this.#abort.abort();
  }

  /**
   * Sends a test and waits for every answer: to all active URLs of the lock's merchant, or to one URL by its id, active
   * or not.
   *
   * @throws LockgateError `no-such-device`, `no-such-webhook`, `no-webhook-url`, `rate-limited`
   */
  async test(mac: Mac, urlId?: number): Promise<TestOutcome> {
    const { device, urls } = await this.#find(mac, urlId);
    this.#tests.count(device.merchantId, this.#parts.waits.wall.now());
    return await this.#sendTo(urls, await this.#ping(device));
  }

  /**
   * Sends a given ping instead, such as one of a story.
   *
   * @throws LockgateError as {@link test}, and `input-ping` where no lock could send it
   */
  async testGiven(mac: Mac, given: GivenPing, urlId?: number): Promise<TestOutcome> {
    const { device, urls } = await this.#find(mac, urlId);
    const ping = givenPing(device, given);
    this.#given.count(device.merchantId, this.#parts.waits.wall.now());
    return await this.#sendTo(urls, ping);
  }

  async #find(mac: Mac, urlId: number | undefined): Promise<{ device: Device; urls: WebhookUrl[] }> {
    const reading = await this.#parts.store.findDevice(mac);
    if (reading === null) throw noSuchDevice(mac);
    const { device } = reading;
    return { device, urls: await this.#urlsOf(device, urlId) };
  }

  async #sendTo(urls: readonly WebhookUrl[], ping: StoredUplink): Promise<TestOutcome> {
    const id = `evt_test_${randomBytes(12).toString('hex')}`;
    const body = JSON.stringify({ ...webhookBody(ping), event_id: id, test: true });
    return { eventId: id, deliveries: await Promise.all(urls.map((url) => this.#send(url, id, body))) };
  }

  async #urlsOf({ mac, merchantId }: Device, urlId: number | undefined): Promise<WebhookUrl[]> {
    const all = await this.#parts.store.listWebhookUrls();
    const urls = all.filter((url) => url.merchantId === merchantId);
    const named = urls.filter((url) => (urlId === undefined ? url.state === 'active' : url.id === urlId));
    if (named.length > 0) return named;
    if (urlId !== undefined) throw noSuchWebhook(urlId);
    throw new LockgateError('no-webhook-url', `the merchant of ${formatMac(mac)} has no webhook URL that is active`);
  }

  /** The lock's latest intact ping, or one that it might send. */
  async #ping(device: Device): Promise<StoredUplink> {
    const uplinks = await this.#parts.store.readUplinks(device.id, UPLINKS_SEARCHED);
    const latest = uplinks.find(({ bytes, isDamaged }) => {
      if (isDamaged) return false;
      const decoded = decodeUplink(bytes);
      return decoded.ok && isPingUplink(decoded.value);
    });
    return latest ?? plausiblePing(device, this.#parts.waits.wall.now());
  }

  async #send(url: WebhookUrl, id: string, body: string): Promise<TestDelivery> {
    const { store, keys, waits } = this.#parts;
    const nowMs = waits.wall.now();
    const secrets = openUrlSecrets(keys, url, await store.webhooks.readOldSecrets(url.id, nowMs));
    const result = await new DeliverySender(url, secrets, this.#parts).send(id, body, nowMs, this.#abort.signal);
    const { status, error } = result;
    const durationMs = result.isAddressRefused ? null : result.durationMs;
    return { urlId: url.id, origin: new URL(url.url).origin, status, durationMs, error };
  }
}

/** A limit for each merchant in any minute. */
class MinuteBudget {
  readonly #most: number;
  readonly #budget: BudgetName;
  readonly #what: string;
  /** When each merchant spent some of it, within the last minute. */
  readonly #times = new Map<number, number[]>();

  constructor(most: number, budget: BudgetName, what: string) {
    this.#most = most;
    this.#budget = budget;
    this.#what = what;
  }

  /** Spends one. @throws OverBudget `rate-limited` where none is left */
  count(merchantId: number, nowMs: number): void {
    const times = (this.#times.get(merchantId) ?? []).filter((atMs) => atMs > nowMs - WINDOW && atMs <= nowMs);
    this.#times.set(merchantId, times);
    if (times.length >= this.#most) {
      const message = `at most ${this.#most} ${this.#what} a minute; wait a little`;
      throw OverBudget.rate(this.#budget, message, (times[0] ?? nowMs) + WINDOW - nowMs);
    }
    times.push(nowMs);
  }
}

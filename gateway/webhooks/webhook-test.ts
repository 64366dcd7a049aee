/**
 * Test webhooks (interfaces.md §3): the lock's latest ping, a plausible one, or the pings of a story, sent to the
 * merchant's URLs the way every ping goes, signed as every ping is, marked `test`, under an id of its own so that no
 * receiver takes it for one it has seen. Whoever asks waits for the answers; nothing is stored and nothing is tried
 * again.
 *
 * It must not tell what listens inside: a refused address has one error, whatever is there, and no time.
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
import { DeliverySender, type DeliverySenderParts } from './delivery-sender.js';
import { openUrlSecrets } from './dispatcher.js';
import { webhookBody } from './payload/body.js';
import { ADDRESS_REFUSED } from './sending/attempt.js';
import { type GivenPing, givenPing, plausiblePing } from './test-ping.js';

/** Tests of one merchant in any minute. */
export const TESTS_PER_MINUTE = 30;
/** Pings that operators give for one merchant in any minute: a few whole stories, and no load test. */
export const GIVEN_PER_MINUTE = 120;
const WINDOW: Milliseconds = Minutes(1);
/** How far back a ping is looked for among a lock's uplinks: 100 acknowledgements may follow it. */
const LOOKED_AT = 200;

export interface WebhookTesterParts extends DeliverySenderParts {
  readonly store: Store;
  readonly keys: Keys;
}

/** What came of a test at one URL. */
export interface TestDelivery {
  readonly urlId: number;
  /** Scheme, host and port: a path may hold what is nobody's business. */
  readonly origin: string;
  readonly status: number | null;
  /** Null where the address is refused. */
  readonly durationMs: number | null;
  /** A sentence for people; null where the answer was 2xx. */
  readonly error: string | null;
}

export interface TestOutcome {
  readonly eventId: string;
  readonly deliveries: readonly TestDelivery[];
}

export class WebhookTester {
  readonly #parts: WebhookTesterParts;
  readonly #abort = new AbortController();
  /** Apart, so that a story takes nothing from what merchants may ask for themselves. */
  readonly #tests = new Recent(TESTS_PER_MINUTE, 'test-webhooks', 'test webhooks');
  readonly #given = new Recent(GIVEN_PER_MINUTE, 'story-pings', 'pings of stories');

  constructor(parts: WebhookTesterParts) {
    this.#parts = parts;
    // Each attempt under way listens to it once, and a merchant may have many URLs.
    setMaxListeners(0, this.#abort.signal);
  }

  /** Cuts off what is under way. */
  stop(): void {
    this.#abort.abort();
  }

  /**
   * Sends a test and waits for every answer: to the active URLs of the lock's merchant, or to one of them by its id,
   * active or not.
   *
   * @throws LockgateError `no-such-device`, `no-such-webhook`, `no-webhook-url`, `rate-limited`
   */
  async test(mac: Mac, urlId?: number): Promise<TestOutcome> {
    const { device, urls } = await this.#find(mac, urlId);
    this.#tests.count(device.merchantId, this.#parts.waits.wall.now());
    return await this.#sendTo(urls, await this.#ping(device));
  }

  /**
   * The same with a ping that an operator gives: one of a story.
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

  /** The lock's latest ping that can be read, or one that it might send. */
  async #ping(device: Device): Promise<StoredUplink> {
    const uplinks = await this.#parts.store.readUplinks(device.id, LOOKED_AT);
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
    const durationMs = error === ADDRESS_REFUSED ? null : result.durationMs;
    return { urlId: url.id, origin: new URL(url.url).origin, status, durationMs, error };
  }
}

/** How much there was of something in any minute, merchant by merchant. */
class Recent {
  readonly #most: number;
  readonly #budget: BudgetName;
  readonly #what: string;
  /** When each merchant's of the last minute began. */
  readonly #times = new Map<number, number[]>();

  constructor(most: number, budget: BudgetName, what: string) {
    this.#most = most;
    this.#budget = budget;
    this.#what = what;
  }

  /** Counts one more. @throws OverBudget `rate-limited` where that is too many */
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

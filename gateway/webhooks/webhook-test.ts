/**
 * Test webhooks (interfaces.md §3): the lock's latest ping, or a plausible one, sent to the merchant's URLs the way
 * every ping goes, signed as every ping is, marked `test`, under an id of its own so that no receiver takes it for one
 * it has seen. Whoever asks waits for the answers; nothing is stored and nothing is tried again.
 *
 * It must not tell what listens inside: a refused address has one error, whatever is there, and no time.
 */
import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { type Milliseconds, Minutes } from '../../proto/clock.js';
import { decodeUplink, encodeUplink } from '../../proto/codec.js';
import { LockgateError } from '../../proto/errors.js';
import { formatMac, type Mac } from '../../proto/mac.js';
import { DEFAULT_POWER, isPingUplink } from '../../proto/ping.js';
import { digestOf } from '../event-id.js';
import type { Keys } from '../keys.js';
import { noSuchDevice } from '../store/registry-tables.js';
import type { Device, Store, StoredUplink, WebhookUrl } from '../store/store.js';
import { noSuchWebhook } from '../store/webhook-sqlite.js';
import { ADDRESS_REFUSED } from './attempt.js';
import { webhookBody } from './body.js';
import { Courier, type CourierParts } from './courier.js';
import { openUrlSecrets } from './dispatcher.js';

/** Tests of one merchant in any minute. */
export const TESTS_PER_MINUTE = 30;
const WINDOW: Milliseconds = Minutes(1);
/** How far back a ping is looked for among a lock's uplinks: acknowledgements are none. */
const LOOKED_AT = 20;

export interface WebhookTesterParts extends CourierParts {
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
  /** When each merchant's tests of the last minute began. */
  readonly #recent = new Map<number, number[]>();

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
    const { store } = this.#parts;
    const reading = await store.findDevice(mac);
    if (reading === null) throw noSuchDevice(mac);
    const { device } = reading;
    const urls = await this.#urlsOf(device, urlId);
    this.#count(device.merchantId);
    const id = `evt_test_${randomBytes(12).toString('hex')}`;
    const body = JSON.stringify({ ...webhookBody(await this.#ping(device)), event_id: id, test: true });
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

  #count(merchantId: number): void {
    const nowMs = this.#parts.clock.now();
    const recent = (this.#recent.get(merchantId) ?? []).filter((atMs) => atMs > nowMs - WINDOW && atMs <= nowMs);
    this.#recent.set(merchantId, recent);
    if (recent.length >= TESTS_PER_MINUTE)
      throw new LockgateError('rate-limited', `at most ${TESTS_PER_MINUTE} test webhooks a minute; wait a little`);
    recent.push(nowMs);
  }

  /** The lock's latest ping that can be read, or one that it might send. */
  async #ping(device: Device): Promise<StoredUplink> {
    const uplinks = await this.#parts.store.readUplinks(device.id, LOOKED_AT);
    const latest = uplinks.find(({ bytes }) => {
      const decoded = decodeUplink(bytes);
      return decoded.ok && isPingUplink(decoded.value);
    });
    return latest ?? plausiblePing(device, this.#parts.clock.now());
  }

  async #send(url: WebhookUrl, id: string, body: string): Promise<TestDelivery> {
    const { store, keys, clock } = this.#parts;
    const nowMs = clock.now();
    const secrets = openUrlSecrets(keys, url, await store.webhooks.readOldSecrets(url.id, nowMs));
    const result = await new Courier(url, secrets, this.#parts).send(id, body, nowMs, this.#abort.signal);
    const { status, error } = result;
    const durationMs = error === ADDRESS_REFUSED ? null : result.durationMs;
    return { urlId: url.id, origin: new URL(url.url).origin, status, durationMs, error };
  }
}

/** A locked lock's cellular ping of this moment: what a lock that never sent anything might send first. */
function plausiblePing(device: Device, nowMs: number): StoredUplink {
  const uplink = { boot: 1, sequence: 1, timeMs: nowMs, power: DEFAULT_POWER, kept: 0, dropped: 0 };
  const bytes = Buffer.from(
    encodeUplink({
      ...uplink,
      body: {
        kind: 'cellular',
        reason: 'REASON_STATE_PING',
        lockState: 'locked',
        batteryPercent: 80,
        firmwareVersion: '1.0.0',
        ebikeVolts: null,
        tetherState: 'detached',
        position: null,
      },
    }),
  );
  const { id: deviceId, merchantId, mac, simulated } = device;
  const who = { id: 0, deviceId, merchantId, mac, simulated, credentialId: 0, source: 'lock' as const };
  return { ...who, boot: 1, sequence: 1, digest: digestOf(bytes), bytes, receivedAtMs: nowMs, buffered: false };
}

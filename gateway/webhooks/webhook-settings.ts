/**
 * Changes the settings of a webhook URL for operators: its address, headers, order, filter and limits, whether it is
 * active, and its secrets. Each change is stored first; then the dispatcher follows the URL with the stored settings.
 */
import { type Clock, Days, Hours, type Milliseconds } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { checkUrl } from '../accounts/accounts.js';
import type { Keys } from '../data-folder/keys.js';
import type { GatewayEvents } from '../events.js';
import { merchantClosed, noSuchWebhook } from '../store/contract/errors.js';
import type { Store } from '../store/contract/store.js';
import type { WebhookChange } from '../store/contract/webhook-store.js';
import type { WebhookUrl } from '../store/contract/webhooks/webhook-url.js';
import type { UrlChanged } from '../webhook-events.js';
import type { Dispatcher } from './dispatcher.js';
import { changedFilter, type FilterChange } from './filter-input.js';
import { checkLimits, type LimitsChange } from './limit-input.js';
import { checkHeaderCount, checkHeaders, sealHeaders, unsealHeaders } from './payload/custom-headers.js';
import { makeWebhookSecret } from './payload/signature.js';
import type { DeliveryClock } from './url/delivery-clock.js';

/** How long a URL's older secrets stay valid after it gets a new one: default and maximum. */
const DEFAULT_SECRET_GRACE: Milliseconds = Hours(24);
const MAX_SECRET_GRACE: Milliseconds = Days(30);
/**
 * Maximum number of valid secrets of one URL. Each signs every webhook, which adds 48 bytes to the signature header.
 */
const MAX_VALID_SECRETS = 5;

/**
 * The stored reason of a URL that an operator disabled. It must not change: old stores contain this text, and
 * notices.ts compares with it.
 */
export const DISABLED_BY_OPERATOR = 'disabled by the operator';

export interface WebhookSettingsParts {
  readonly store: Store;
  readonly keys: Keys;
  readonly dispatcher: Dispatcher;
  /** The clock that deliveries wait by; the validity of secrets is by its wall clock. */
  readonly deliveryClock: DeliveryClock;
  readonly events: GatewayEvents;
  /** The run's clock (wall-clock time, except in a sped-up simulation), for events. */
  readonly runClock: Clock;
}

/** The settings to change; a setting that is undefined stays unchanged. */
export interface WebhookSettingsChange extends LimitsChange {
  readonly url?: string | undefined;
  /** Headers to add. A header replaces one of the same name, in upper or lower case. */
  readonly setHeaders?: Readonly<Record<string, string>> | undefined;
  readonly removeHeaders?: readonly string[] | undefined;
  readonly ordered?: boolean | undefined;
  /** Which events the URL gets from now on. */
  readonly filter?: FilterChange | undefined;
  readonly state?: 'active' | 'disabled' | undefined;
}

/** A URL with its state, for operators. */
export interface WebhookReading {
  readonly url: WebhookUrl;
  readonly isCircuitOpen: boolean;
  /** When its open circuit lets one attempt through, in wall-clock time; null while the circuit is closed. */
  readonly probeAtMs: number | null;
  /** Until when its receiver asked for no attempts (Retry-After), in wall-clock time; null if it asked for none. */
  readonly heldUntilMs: number | null;
  /** Until when each secret except the newest is valid, newest first; ms since the epoch. */
  readonly oldSecretsUntilMs: readonly number[];
}

export class WebhookSettings {
  readonly #parts: WebhookSettingsParts;

  constructor(parts: WebhookSettingsParts) {
    this.#parts = parts;
  }

  /** Reads the state of the URL. */
  async read(url: WebhookUrl): Promise<WebhookReading> {
    const { store, dispatcher, deliveryClock } = this.#parts;
    const oldSecrets = await store.webhooks.readOldSecrets(url.id, deliveryClock.wall.now());
    return {
      url,
      isCircuitOpen: dispatcher.isCircuitOpen(url.id),
      heldUntilMs: dispatcher.heldUntilMs(url.id),
      probeAtMs: dispatcher.probeAtMs(url.id),
      oldSecretsUntilMs: oldSecrets.map(({ validUntilMs }) => validUntilMs),
    };
  }

  /**
   * Changes settings.
   *
   * @throws LockgateError `no-such-webhook`, `input-webhook`, `input-url`, `input-header`, `input-filter`,
   * `merchant-closed`
   */
  async set(urlId: number, wanted: WebhookSettingsChange): Promise<WebhookReading> {
    const { store, keys, dispatcher } = this.#parts;
    const before = await this.#find(urlId);
    const { url, ordered, state } = wanted;
    const limits = checkLimits(wanted, this.#parts.deliveryClock.wall.now());
    const filter = changedFilter(wanted.filter ?? {}, before.filter ?? undefined);
    const headers = changedHeaders(before.id, unsealHeaders(keys, before.headersSealed), wanted);
    // In `disabledWhy`, undefined leaves the state as it is, and null makes the URL active.
    const change: WebhookChange = {
      url: url === undefined ? undefined : checkUrl(url),
      headersSealed: headers && sealHeaders(keys, headers),
      ordered,
      ...limits,
      filter,
      disabledWhy:
        state === undefined || state === before.state ? undefined : state === 'active' ? null : DISABLED_BY_OPERATOR,
    };
    if ([url, headers, ordered, filter, state, ...Object.values(limits)].every((each) => each === undefined))
      throw new LockgateError('input-webhook', 'nothing to change: name at least one setting');
    if (state === 'active') await this.#requireOpenMerchant(before);
    const after = await store.webhooks.change(urlId, change);
    // Not awaited: attempts with the old settings may run for seconds more.
    void dispatcher.reload(urlId);
    this.#reportChange(urlId, after.state);
    return await this.read(after);
  }

  /** Removes the URL: stops its deliveries and deletes them. @throws LockgateError `no-such-webhook` */
  async remove(urlId: number): Promise<WebhookUrl> {
    const { store, dispatcher } = this.#parts;
    // Disabled first, so that no new deliveries start after the running ones were stopped.
    const url = await store.webhooks.change(urlId, { disabledWhy: 'being removed' });
    await dispatcher.stopForRemoval(urlId);
    await store.webhooks.remove(urlId);
    this.#reportChange(urlId, 'removed');
    return url;
  }

  /**
   * Gives the URL a new secret. The older secrets also sign for another `graceMs` ms.
   *
   * @throws LockgateError `no-such-webhook`, `input-grace`, `webhook-secrets`
   */
  async rotateSecret(
    urlId: number,
    graceMs = DEFAULT_SECRET_GRACE,
  ): Promise<{ reading: WebhookReading; secret: string }> {
    const { store, keys, dispatcher, deliveryClock } = this.#parts;
    if (!(graceMs >= 0 && graceMs <= MAX_SECRET_GRACE))
      throw new LockgateError('input-grace', 'the old secret stays valid for 0 s to 30 days');
    const nowMs = deliveryClock.wall.now();
    await this.#find(urlId);
    if (graceMs > 0 && (await store.webhooks.readOldSecrets(urlId, nowMs)).length >= MAX_VALID_SECRETS - 1)
      throw new LockgateError(
        'webhook-secrets',
        `webhook URL ${urlId} has ${MAX_VALID_SECRETS} valid secrets: wait until one expires, or rotate with grace 0`,
      );
    const secret = makeWebhookSecret();
    const rotation = { secretSealed: keys.seal(secret), nowMs, oldValidUntilMs: nowMs + graceMs };
    const url = await store.webhooks.rotateSecret(urlId, rotation);
    // Not awaited: attempts with the old secrets may run for seconds more.
    void dispatcher.reload(urlId);
    this.#reportChange(urlId, url.state);
    return { reading: await this.read(url), secret };
  }

  /** @throws LockgateError `merchant-closed` */
  async #requireOpenMerchant({ merchantId }: WebhookUrl): Promise<void> {
    const merchant = (await this.#parts.store.listMerchants()).find(({ id }) => id === merchantId);
    if (merchant !== undefined && merchant.closedAtMs !== null) throw merchantClosed(merchant.name);
  }

  #reportChange(urlId: number, state: UrlChanged['state']): void {
    const { events, runClock } = this.#parts;
    events.emit('url-changed', { atMs: runClock.now(), urlId, state });
  }

  async #find(urlId: number): Promise<WebhookUrl> {
    const url = await this.#parts.store.webhooks.find(urlId);
    if (url === null) throw noSuchWebhook(urlId);
    return url;
  }
}

/** The headers after the change; undefined if they stay unchanged. */
function changedHeaders(
  urlId: number,
  before: Readonly<Record<string, string>>,
  { setHeaders, removeHeaders = [] }: WebhookSettingsChange,
): Record<string, string> | undefined {
  if (setHeaders === undefined && removeHeaders.length === 0) return undefined;
  const headers = new Map(Object.entries(before).map(([name, value]) => [name.toLowerCase(), { name, value }]));
  for (const name of removeHeaders)
    if (!headers.delete(name.toLowerCase()))
      throw new LockgateError('input-header', `webhook URL ${urlId} has no header ${JSON.stringify(name)}`);
  for (const [name, value] of Object.entries(checkHeaders(setHeaders ?? {})))
    headers.set(name.toLowerCase(), { name, value });
  checkHeaderCount(headers.size);
  return Object.fromEntries([...headers.values()].map(({ name, value }) => [name, value]));
}

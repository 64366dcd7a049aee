/**
 * What operators set of a webhook URL that is there: its address, headers and order, whether it gets anything, its
 * secrets. What is stored is what counts; the dispatcher then goes on by it.
 */
import { type Clock, Days, Hours, type Milliseconds } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { checkUrl } from '../accounts/accounts.js';
import type { Keys } from '../data-folder/keys.js';
import type { GatewayEvents, UrlChanged } from '../events.js';
import { noSuchWebhook } from '../store/contract/errors.js';
import type { Store, WebhookUrl } from '../store/contract/store.js';
import type { WebhookChange } from '../store/contract/webhook-store.js';
import type { Dispatcher } from './dispatcher.js';
import { checkHeaderCount, checkHeaders, sealHeaders, unsealHeaders } from './payload/custom-headers.js';
import { makeWebhookSecret } from './payload/signature.js';
import type { DeliveryClock } from './url/delivery-clock.js';

/** How long the secrets before a new one stay valid, where nobody says otherwise, and at the most. */
const DEFAULT_GRACE: Milliseconds = Hours(24);
const LONGEST_GRACE: Milliseconds = Days(30);
/** Secrets of one URL that are valid at once: each makes the signature header longer by 48 bytes. */
const MAX_SECRETS = 5;

/** Why a URL is disabled that an operator disabled. */
export const DISABLED_BY_HAND = 'disabled by the operator';

export interface WebhookSettingsParts {
  readonly store: Store;
  readonly keys: Keys;
  readonly dispatcher: Dispatcher;
  /** The clock that deliveries wait by, and the wall's. */
  readonly waits: DeliveryClock;
  readonly events: GatewayEvents;
  /** The run's clock, for events. */
  readonly runClock: Clock;
}

/** What is to be changed; what is left out stays. */
export interface SetWebhook {
  readonly url?: string | undefined;
  /** Headers to add, or to replace where the name is there in any spelling. */
  readonly setHeaders?: Readonly<Record<string, string>> | undefined;
  readonly removeHeaders?: readonly string[] | undefined;
  readonly ordered?: boolean | undefined;
  readonly state?: 'active' | 'disabled' | undefined;
}

/** A URL as operators see it. */
export interface WebhookReading {
  readonly url: WebhookUrl;
  readonly isCircuitOpen: boolean;
  /** When its open circuit lets one attempt through, by the wall's clock; null while it is closed. */
  readonly probeAtMs: number | null;
  /**
   * Until when its receiver asked to be left alone (Retry-After), by the wall's clock; null where it takes what comes.
   */
  readonly heldUntilMs: number | null;
  /** Until when each of the secrets before the newest is valid, newest first; ms since the epoch. */
  readonly oldSecretsUntilMs: readonly number[];
}

export class WebhookSettings {
  readonly #parts: WebhookSettingsParts;

  constructor(parts: WebhookSettingsParts) {
    this.#parts = parts;
  }

  /** Everything that there is to see of a URL. */
  async read(url: WebhookUrl): Promise<WebhookReading> {
    const { store, dispatcher, waits } = this.#parts;
    const old = await store.webhooks.readOldSecrets(url.id, waits.wall.now());
    return {
      url,
      isCircuitOpen: dispatcher.isCircuitOpen(url.id),
      heldUntilMs: dispatcher.heldUntilMs(url.id),
      probeAtMs: dispatcher.probeAtMs(url.id),
      oldSecretsUntilMs: old.map(({ validUntilMs }) => validUntilMs),
    };
  }

  /** @throws LockgateError `no-such-webhook`, `input-webhook`, `input-url`, `input-header` */
  async set(urlId: number, wishes: SetWebhook): Promise<WebhookReading> {
    const { store, keys, dispatcher } = this.#parts;
    const before = await this.#existing(urlId);
    const { url, ordered, state } = wishes;
    const headers = changedHeaders(before.id, unsealHeaders(keys, before.headersSealed), wishes);
    const change: WebhookChange = {
      url: url === undefined ? undefined : checkUrl(url),
      headersSealed: headers && sealHeaders(keys, headers),
      ordered,
      disabledWhy:
        state === undefined || state === before.state ? undefined : state === 'active' ? null : DISABLED_BY_HAND,
    };
    if ([url, headers, ordered, state].every((each) => each === undefined))
      throw new LockgateError('input-webhook', 'nothing to change: name what is to be set');
    const after = await store.webhooks.change(urlId, change);
    void dispatcher.refresh(urlId);
    this.#tell(urlId, after.state);
    return await this.read(after);
  }

  /** Ends the URL's deliveries and forgets them. @throws LockgateError `no-such-webhook` */
  async remove(urlId: number): Promise<WebhookUrl> {
    const { store, dispatcher } = this.#parts;
    const url = await store.webhooks.change(urlId, { disabledWhy: 'being removed' });
    await dispatcher.drop(urlId);
    await store.webhooks.remove(urlId);
    this.#tell(urlId, 'removed');
    return url;
  }

  /**
   * Gives the URL a new secret. Those before it sign beside it for `graceMs` more.
   *
   * @throws LockgateError `no-such-webhook`, `input-grace`, `webhook-secrets`
   */
  async rotateSecret(urlId: number, graceMs = DEFAULT_GRACE): Promise<{ reading: WebhookReading; secret: string }> {
    const { store, keys, dispatcher, waits } = this.#parts;
    if (!(graceMs >= 0 && graceMs <= LONGEST_GRACE))
      throw new LockgateError('input-grace', 'the old secret stays valid for 0 s to 30 days');
    const nowMs = waits.wall.now();
    await this.#existing(urlId);
    if (graceMs > 0 && (await store.webhooks.readOldSecrets(urlId, nowMs)).length >= MAX_SECRETS - 1)
      throw new LockgateError(
        'webhook-secrets',
        `webhook URL ${urlId} has ${MAX_SECRETS} valid secrets already: let some run out, or end them with no grace`,
      );
    const secret = makeWebhookSecret();
    const rotation = { secretSealed: keys.seal(secret), nowMs, oldValidUntilMs: nowMs + graceMs };
    const url = await store.webhooks.rotateSecret(urlId, rotation);
    void dispatcher.refresh(urlId);
    this.#tell(urlId, url.state);
    return { reading: await this.read(url), secret };
  }

  #tell(urlId: number, state: UrlChanged['state']): void {
    const { events, runClock } = this.#parts;
    events.emit('url-changed', { atMs: runClock.now(), urlId, state });
  }

  async #existing(urlId: number): Promise<WebhookUrl> {
    const url = await this.#parts.store.webhooks.find(urlId);
    if (url === null) throw noSuchWebhook(urlId);
    return url;
  }
}

/** The headers as they shall be; undefined where nothing was asked of them. */
function changedHeaders(
  urlId: number,
  before: Readonly<Record<string, string>>,
  { setHeaders, removeHeaders = [] }: SetWebhook,
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

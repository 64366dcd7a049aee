/**
 * Merchants and their webhook URLs, as operators set them up: checks the operator's input, makes the secrets, stores
 * the rows and reports new URLs. Each secret is returned once and stored only hashed or sealed (encrypted). Locks and
 * phones are in device-accounts.ts.
 */
import { LockgateError } from '../../proto/errors.js';
import type { Mac } from '../../proto/wire/mac.js';
import { faultAt } from '../faults.js';
import type { Device } from '../store/contract/devices/device.js';
import type { LogPosition } from '../store/contract/log/log-position.js';
import type { Merchant } from '../store/contract/merchants/merchant-store.js';
import type { WebhookUrl } from '../store/contract/webhooks/webhook-url.js';
import { changedFilter, type FilterChange } from '../webhooks/filter-input.js';
import { checkLimits, type LimitsChange } from '../webhooks/limit-input.js';
import { checkHeaders, sealHeaders } from '../webhooks/payload/custom-headers.js';
import { makeWebhookSecret } from '../webhooks/payload/signature.js';
import { type AddDevice, DeviceAccounts, type DeviceAccountsParts } from './device-accounts.js';
import { MerchantAccounts, type MerchantAccountsParts } from './merchants.js';
import { type ImportedDevice, importDevices } from './provisioning.js';

const MAX_URL_CHARS = 2048;
/** How much of a rejected URL the error quotes. */
const MAX_QUOTED_CHARS = 80;

export interface AccountsParts extends DeviceAccountsParts {
  readonly sessions: DeviceAccountsParts['sessions'] & MerchantAccountsParts['sessions'];
  readonly dispatcher: DeviceAccountsParts['dispatcher'] & MerchantAccountsParts['dispatcher'];
  /** Called with each new URL, so that the dispatcher starts to deliver to it. */
  readonly onWebhookUrl: (url: WebhookUrl) => void;
}

export interface AddWebhookUrl extends LimitsChange {
  readonly url: string;
  readonly merchant?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Whether to deliver each lock's events in order: later events then wait for an earlier one that failed. */
  readonly ordered?: boolean | undefined;
  /** Which events the URL gets; all by default. */
  readonly filter?: FilterChange | undefined;
  /**
   * The URL gets the events received from this time on, by the run's clock (wall-clock time, except in a sped-up
   * simulation); from now on if undefined.
   */
  readonly sinceMs?: number | undefined;
}

export class Accounts {
  /** Locks, and the phones that act for them. */
  readonly devices: DeviceAccounts;
  /** Names, closing and reopening of merchants. */
  readonly merchants: MerchantAccounts;
  readonly #parts: AccountsParts;

  constructor(parts: AccountsParts) {
    this.#parts = parts;
    this.devices = new DeviceAccounts(parts);
    this.merchants = new MerchantAccounts(parts);
  }

  /** @throws LockgateError `input-name`, `merchant-exists` */
  async addMerchant(name: string): Promise<Merchant> {
    return await this.merchants.add(name);
  }

  /** @throws LockgateError `no-such-merchant`, `merchant-needed`, `device-exists` */
  async addDevice(request: AddDevice): Promise<{ device: Device; secret: string }> {
    return await this.devices.add({ ...request, merchant: await this.resolveMerchant(request.merchant) });
  }

  /**
   * Adds all of the locks or none.
   *
   * @param merchant the merchant of the locks that name none; optional if there is only one merchant
   */
  async importDevices(
    devices: readonly ImportedDevice[],
    {
      merchant,
      simulated = false,
    }: { readonly merchant?: string | undefined; readonly simulated?: boolean | undefined },
  ): ReturnType<typeof importDevices> {
    const imported = await importDevices(this.#parts, {
      devices,
      merchant: () => this.resolveMerchant(merchant),
      simulated,
    });
    this.#parts.events?.emit('locks-added', { macs: imported.map(({ mac }) => mac) });
    return imported;
  }

  /** As {@link DeviceAccounts.rotateSecret}; the old secret is revoked at once. */
  async rotateLockSecret(mac: Mac): Promise<string> {
    return await this.devices.rotateSecret(mac);
  }

  /** @throws LockgateError `input-url`, `input-header`, `input-filter`, `no-such-merchant`, `merchant-needed` */
  async addWebhookUrl(request: AddWebhookUrl): Promise<{ url: WebhookUrl; secret: string }> {
    const { store, keys, clock, onWebhookUrl } = this.#parts;
    const secret = makeWebhookSecret();
    const { ordered, sinceMs } = request;
    const merchant = await this.resolveMerchant(request.merchant);
    const url = await store.addWebhookUrl({
      merchant,
      url: checkUrl(request.url),
      headersSealed: sealHeaders(keys, checkHeaders(request.headers ?? {})),
      secretSealed: keys.seal(secret),
      ordered,
      filter: changedFilter(request.filter ?? {}),
      ...checkLimits(request, clock.now()),
      after: sinceMs === undefined ? undefined : await this.#findPositionAt(merchant, sinceMs),
      nowMs: clock.now(),
    });
    onWebhookUrl(url);
    return { url, secret };
  }

  /** The position after a merchant's events received before this time; undefined if there is no such merchant. */
  async #findPositionAt(merchantName: string, receivedAtMs: number): Promise<LogPosition | undefined> {
    const { store } = this.#parts;
    const merchant = (await store.listMerchants()).find(({ name }) => name === merchantName);
    return merchant && (await store.webhooks.findPositionAt(merchant.id, receivedAtMs));
  }

  /**
   * The merchant's name; if none is given, the name of the only open merchant. A given name is returned unchecked.
   *
   * @throws LockgateError `merchant-needed`
   */
  async resolveMerchant(name: string | undefined): Promise<string> {
    if (name !== undefined) return name;
    const merchants = await this.#parts.store.listMerchants();
    const [only, ...others] = merchants.filter(({ closedAtMs }) => closedAtMs === null);
    if (only !== undefined && others.length === 0) return only.name;
    const none = merchants.length === 0 ? 'there is none yet: add one first' : 'all are closed: add or reopen one';
    const why = only === undefined ? none : `there are ${others.length + 1}: name one`;
    throw faultAt('merchant-needed', '/merchant', `which merchant? ${why}`);
  }
}

/**
 * Only http and https, and no credentials in the URL: they would appear in lists and logs (interfaces.md §3).
 *
 * @returns the URL in its normal form, without a fragment
 * @throws LockgateError `input-url`
 */
export function checkUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new LockgateError('input-url', `${JSON.stringify(shownUrl(text))} is not an http or https URL`);
  if (text.length > MAX_URL_CHARS)
    throw new LockgateError(
      'input-url',
      `a URL has at most ${MAX_URL_CHARS} characters, and this one has ${text.length}`,
    );
  if (url.username !== '' || url.password !== '')
    throw new LockgateError('input-url', 'a webhook URL holds no user name or password: use a custom header');
  url.hash = '';
  return url.href;
}

/** The start of a rejected URL for the error message, without what may be a password. */
function shownUrl(text: string): string {
  return text.replace(/\/\/.*@/, '//…@').slice(0, MAX_QUOTED_CHARS);
}

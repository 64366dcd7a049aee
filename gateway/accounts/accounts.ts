/**
 * Merchants and their webhook URLs, as operators set them up: checks what was typed, makes the secrets, and lets the
 * parts at work know. Each secret is returned once and kept only hashed or sealed. Their locks stand in
 * device-accounts.ts.
 */
import { LockgateError } from '../../proto/errors.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Device, Merchant, WebhookUrl } from '../store/contract/store.js';
import { checkHeaders, sealHeaders } from '../webhooks/payload/custom-headers.js';
import { makeWebhookSecret } from '../webhooks/payload/signature.js';
import { type AddDevice, DeviceAccounts, type DeviceAccountsParts } from './device-accounts.js';
import { type ImportedDevice, importDevices } from './provisioning.js';

/** The longest name of a merchant, in characters. */
const MAX_NAME = 200;
const MAX_URL = 2048;
/** Custom headers of one URL. */

export interface AccountsParts extends DeviceAccountsParts {
  /** Told of a new URL, so that it is followed from now on. */
  readonly onWebhookUrl: (url: WebhookUrl) => void;
}

export interface AddWebhookUrl {
  readonly url: string;
  readonly merchant?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** A lock's later events wait behind one that fails. */
  readonly ordered?: boolean | undefined;
  /** It gets what was received from this time on, by the run's clock; absent, what comes from now on. */
  readonly sinceMs?: number | undefined;
}

export class Accounts {
  /** The locks, and the phones that act for them. */
  readonly devices: DeviceAccounts;
  readonly #parts: AccountsParts;

  constructor(parts: AccountsParts) {
    this.#parts = parts;
    this.devices = new DeviceAccounts(parts);
  }

  /** @throws LockgateError `input-name`, `merchant-exists` */
  async addMerchant(name: string): Promise<Merchant> {
    const trimmed = name.trim();
    if (trimmed === '' || trimmed.length > MAX_NAME)
      throw new LockgateError('input-name', `a merchant's name has 1 to ${MAX_NAME} characters`);
    return await this.#parts.store.addMerchant(trimmed, this.#parts.clock.now());
  }

  /** @throws LockgateError `no-such-merchant`, `merchant-needed`, `device-exists` */
  async addDevice(request: AddDevice): Promise<{ device: Device; secret: string }> {
    return await this.devices.add({ ...request, merchant: await this.#merchant(request.merchant) });
  }

  /** All of them or none. `merchant` is for those that name none; it may be left out where there is only one. */
  async importDevices(
    devices: readonly ImportedDevice[],
    {
      merchant,
      simulated = false,
    }: { readonly merchant?: string | undefined; readonly simulated?: boolean | undefined },
  ): ReturnType<typeof importDevices> {
    return await importDevices(this.#parts, { devices, merchant: () => this.#merchant(merchant), simulated });
  }

  /** As {@link DeviceAccounts.rotateSecret}, with no grace. */
  async rotateLockSecret(mac: Mac): Promise<string> {
    return await this.devices.rotateSecret(mac);
  }

  /** @throws LockgateError `input-url`, `input-header`, `no-such-merchant`, `merchant-needed` */
  async addWebhookUrl(request: AddWebhookUrl): Promise<{ url: WebhookUrl; secret: string }> {
    const { store, keys, clock, onWebhookUrl } = this.#parts;
    const secret = makeWebhookSecret();
    const { ordered, sinceMs } = request;
    const url = await store.addWebhookUrl({
      merchant: await this.#merchant(request.merchant),
      url: checkUrl(request.url),
      headersSealed: sealHeaders(keys, checkHeaders(request.headers ?? {})),
      secretSealed: keys.seal(secret),
      ordered,
      fromUplinkId: sinceMs === undefined ? undefined : await store.webhooks.findFirstUplinkFrom(sinceMs),
      nowMs: clock.now(),
    });
    onWebhookUrl(url);
    return { url, secret };
  }

  /**
   * The merchant that is meant: the one that is named, or the only one there is.
   *
   * @throws LockgateError `merchant-needed`
   */
  async whichMerchant(name: string | undefined): Promise<string> {
    return await this.#merchant(name);
  }

  async #merchant(name: string | undefined): Promise<string> {
    if (name !== undefined) return name;
    const [only, ...others] = await this.#parts.store.listMerchants();
    if (only !== undefined && others.length === 0) return only.name;
    const why = only === undefined ? 'there is none yet: add one first' : `there are ${others.length + 1}: name one`;
    throw new LockgateError('merchant-needed', `which merchant? ${why}`);
  }
}

/** http and https only, and no credentials inside: they would end up in lists and logs (interfaces.md §3). */
export function checkUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || text.length > MAX_URL || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new LockgateError('input-url', `${JSON.stringify(shownUrl(text))} is not an http or https URL`);
  if (url.username !== '' || url.password !== '')
    throw new LockgateError('input-url', 'a webhook URL holds no user name or password: use a custom header');
  url.hash = '';
  return url.href;
}

/** As much of it as helps to see the mistake, without what may be a password. */
function shownUrl(text: string): string {
  return text.replace(/\/\/.*@/, '//…@').slice(0, 80);
}

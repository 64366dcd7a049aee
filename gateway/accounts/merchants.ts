/**
 * Changes of merchants by operators: another name, closing and reopening (docs/operator.md, "Merchants"). A change is
 * committed first, so that new calls and CONNECTs read the new state; then open sessions end and URLs stop.
 */
import type { Clock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { GatewayEvents } from '../events.js';
import type { Sessions } from '../mqtt/sessions.js';
import type { Merchant } from '../store/contract/merchants/merchant-store.js';
import type { Store } from '../store/contract/store.js';
import type { Dispatcher } from '../webhooks/dispatcher.js';

const MAX_NAME_CHARS = 200;

export interface MerchantAccountsParts {
  readonly store: Store;
  /** Wall-clock time. */
  readonly clock: Clock;
  /** The run's clock, for events. */
  readonly runClock: Clock;
  readonly sessions: Pick<Sessions, 'endOfMerchant'>;
  readonly dispatcher: Pick<Dispatcher, 'reload'>;
  readonly events?: Pick<GatewayEvents, 'emit'> | undefined;
}

/** A merchant that was closed or reopened. */
export interface ClosingOutcome {
  readonly merchant: Merchant;
  /** How many locks in service the merchant has. */
  readonly locks: number;
  /** How many webhook URLs were disabled or enabled. */
  readonly urls: number;
}

export class MerchantAccounts {
  readonly #parts: MerchantAccountsParts;

  constructor(parts: MerchantAccountsParts) {
    this.#parts = parts;
  }

  /** @throws LockgateError `input-name`, `merchant-exists` */
  async add(name: string): Promise<Merchant> {
    return await this.#parts.store.addMerchant(checkName(name), this.#parts.clock.now());
  }

  /** Changes the name. Nothing else depends on it. @throws LockgateError `input-name`, as `MerchantStore.rename` */
  async rename(name: string, newName: string): Promise<Merchant> {
    return await this.#parts.store.merchants.rename(name, checkName(newName));
  }

  /**
   * Closes a merchant: its API keys, tokens and sessions stop at once, its locks can't connect, its webhooks stop.
   * Nothing is deleted. Resolves when the locks' connections are closed.
   *
   * @throws LockgateError as `MerchantStore.close`
   */
  async close(name: string): Promise<ClosingOutcome> {
    const { store, clock, sessions } = this.#parts;
    const { merchant, urlIds } = await store.merchants.close(name, clock.now());
    store.ownership.signals.send({ type: 'merchant-closed', merchantId: merchant.id });
    await sessions.endOfMerchant(merchant.id);
    this.#urlsChanged(urlIds, 'disabled');
    return { merchant, locks: await store.countDevices(merchant.id), urls: urlIds.length };
  }

  /** Opens a closed merchant again. @throws LockgateError as `MerchantStore.reopen` */
  async reopen(name: string): Promise<ClosingOutcome> {
    const { store, clock } = this.#parts;
    const { merchant, urlIds } = await store.merchants.reopen(name, clock.now());
    this.#urlsChanged(urlIds, 'active');
    return { merchant, locks: await store.countDevices(merchant.id), urls: urlIds.length };
  }

  #urlsChanged(urlIds: readonly number[], state: 'active' | 'disabled'): void {
    const { dispatcher, events, runClock } = this.#parts;
    for (const urlId of urlIds) {
      // Not awaited: the store has the new state already, and running attempts may take seconds to end.
      void dispatcher.reload(urlId);
      events?.emit('url-changed', { atMs: runClock.now(), urlId, state });
    }
  }
}

/** @throws LockgateError `input-name` */
function checkName(name: string): string {
  const trimmed = name.trim();
  if (trimmed !== '' && trimmed.length <= MAX_NAME_CHARS) return trimmed;
  throw new LockgateError('input-name', `a merchant's name has 1 to ${MAX_NAME_CHARS} characters`);
}

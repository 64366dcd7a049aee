/**
 * The SIM cards of locks: inactive until the first accepted CONNECT, active from then, with the time kept for ever
 * (interfaces.md §5).
 *
 * An activation is on the disk before the CONNACK goes out, so no crash can make it later than it was. That costs a
 * lock's very first connection one commit; all that connect at the same time share it.
 */
import type { Clock } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { UsageStore } from '../store/contract/usage-store.js';

export class SimCards {
  readonly #store: Pick<UsageStore, 'activate' | 'readActivations'>;
  readonly #clock: Clock;
  readonly #activatedAtMs = new Map<Mac, number>();
  #waiting = new Map<Mac, number>();
  /** The commit that those who wait now will be in. */
  #next: Promise<void> | undefined;
  #storing: Promise<void> = Promise.resolve();

  private constructor(store: Pick<UsageStore, 'activate' | 'readActivations'>, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** `clock` stamps activations: the wall's, as bills go by it. */
  static async load(store: Pick<UsageStore, 'activate' | 'readActivations'>, clock: Clock): Promise<SimCards> {
    const sims = new SimCards(store, clock);
    for (const { mac, activatedAtMs } of await store.readActivations()) sims.#activatedAtMs.set(mac, activatedAtMs);
    return sims;
  }

  /** When it was activated, ms since the epoch; null while it is inactive. */
  activatedAtMs(mac: Mac): number | null {
    return this.#activatedAtMs.get(mac) ?? null;
  }

  /** Activates it where it isn't; resolves when that is on the disk. Rejects where the store fails. */
  async activate(mac: Mac): Promise<void> {
    if (this.#activatedAtMs.has(mac)) return;
    if (!this.#waiting.has(mac)) this.#waiting.set(mac, this.#clock.now());
    this.#next ??= this.#storing.then(() => this.#storeWaiting());
    await this.#next;
  }

  #storeWaiting(): Promise<void> {
    const sims = [...this.#waiting].map(([mac, atMs]) => ({ mac, atMs }));
    this.#waiting = new Map();
    this.#next = undefined;
    const stored = this.#store.activate(sims).then(() => {
      for (const { mac, atMs } of sims) this.#activatedAtMs.set(mac, atMs);
    });
    this.#storing = stored.catch(() => undefined);
    return stored;
  }
}

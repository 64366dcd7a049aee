/**
 * Records when the SIM card of each lock was activated: by the lock's first accepted CONNECT. It is never deactivated
 * (interfaces.md §5).
 *
 * An activation is durable before the CONNACK is sent, so a crash cannot move it to a later time. This costs a lock's
 * first connection one commit, which locks that connect at the same time share.
 */
import type { Clock } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { UsageStore } from '../store/contract/usage-store.js';

export class SimCards {
  readonly #store: Pick<UsageStore, 'activate' | 'readActivations'>;
  readonly #clock: Clock;
  /** When each active SIM was activated, by the lock's MAC. */
  readonly #activatedAtMs = new Map<Mac, number>();
  /** Activations that are not stored yet. */
  #waiting = new Map<Mac, number>();
  /** Resolves when the waiting activations are stored. */
  #nextStore: Promise<void> | undefined;
  #storing: Promise<void> = Promise.resolve();

  private constructor(store: Pick<UsageStore, 'activate' | 'readActivations'>, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** `clock` stamps activations. It must be the wall clock, which bills use. */
  static async load(store: Pick<UsageStore, 'activate' | 'readActivations'>, clock: Clock): Promise<SimCards> {
    const sims = new SimCards(store, clock);
    for (const { mac, activatedAtMs } of await store.readActivations()) sims.#activatedAtMs.set(mac, activatedAtMs);
    return sims;
  }

  /** When the lock's SIM was activated, ms since the epoch; null while it is inactive. */
  activatedAtMs(mac: Mac): number | null {
    return this.#activatedAtMs.get(mac) ?? null;
  }

  /** Activates an inactive SIM. Resolves when that is durable; rejects if the store fails. */
  async activate(mac: Mac): Promise<void> {
    if (this.#activatedAtMs.has(mac)) return;
    if (!this.#waiting.has(mac)) this.#waiting.set(mac, this.#clock.now());
    this.#nextStore ??= this.#storing.then(() => this.#storeWaiting());
    await this.#nextStore;
  }

  #storeWaiting(): Promise<void> {
    const sims = [...this.#waiting].map(([mac, atMs]) => ({ mac, atMs }));
    this.#waiting = new Map();
    this.#nextStore = undefined;
    const stored = this.#store.activate(sims).then(() => {
      for (const { mac, atMs } of sims) this.#activatedAtMs.set(mac, atMs);
    });
    this.#storing = stored.catch(() => undefined);
    return stored;
  }
}

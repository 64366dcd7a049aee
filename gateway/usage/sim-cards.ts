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
  /** Activations that the next write stores. */
  #waiting = new Map<Mac, number>();
  /** Those of the write under way, so that a lock that connects again meanwhile keeps its time. */
  #underWay: ReadonlyMap<Mac, number> = new Map();
  /** Resolves when the waiting activations are stored; undefined if none wait. */
  #nextWrite: Promise<void> | undefined;
  /** Resolves when the write under way, or the last one, has ended; also if it failed. */
  #lastWrite: Promise<void> = Promise.resolve();

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
    if (!this.#waiting.has(mac)) this.#waiting.set(mac, this.#underWay.get(mac) ?? this.#clock.now());
    this.#nextWrite ??= this.#lastWrite.then(() => this.#writeWaiting());
    await this.#nextWrite;
  }

  #writeWaiting(): Promise<void> {
    const sims = [...this.#waiting].map(([mac, atMs]) => ({ mac, atMs }));
    this.#underWay = this.#waiting;
    this.#waiting = new Map();
    this.#nextWrite = undefined;
    const written = this.#store.activate(sims).then(() => {
      for (const { mac, atMs } of sims) this.#activatedAtMs.set(mac, atMs);
    });
    this.#lastWrite = written.catch(() => undefined);
    return written;
  }
}

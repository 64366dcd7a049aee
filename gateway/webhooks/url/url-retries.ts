/**
 * The retries of one URL: which are under way, which are due, when the next one is; and the events that have been set
 * aside because the store refuses what came of them (progress-recorder.ts), which are left alone meanwhile.
 */
import type { DueDelivery, Store } from '../../store/contract/store.js';
import type { DeliveryWait } from '../../store/contract/webhook-store.js';
import { longestWait } from './schedule.js';

/** Rows looked at in one read, for {@link UrlRetries.shorten}. */
const LOOKED_AT_ONCE = 500;

export class UrlRetries {
  readonly #urlId: number;
  readonly #store: Store;
  readonly #underWay = new Set<number>();
  /** With the lock whose order rests on the event; undefined where none does. */
  readonly #setAside = new Map<number, number | undefined>();
  /** When the next one is due; null where none waits, undefined where the store has to be asked. */
  #dueAtMs: number | null | undefined;
  /** How often what is due has changed. */
  #changes = 0;
  #forgets = 0;
  #isShortened = false;

  constructor(urlId: number, store: Store) {
    this.#urlId = urlId;
    this.#store = store;
  }

  /** How many are under way. */
  get underWay(): number {
    return this.#underWay.size;
  }

  /** How many events are set aside. */
  get setAsideCount(): number {
    return this.#setAside.size;
  }

  /** What is due has changed. */
  changed(): void {
    this.#changes += 1;
    this.#dueAtMs = undefined;
  }

  /** Events were erased: what is being read at this moment may be gone. */
  forget(): void {
    this.#forgets += 1;
    this.changed();
  }

  begin(uplinkId: number): void {
    this.#underWay.add(uplinkId);
    this.changed();
  }

  end(uplinkId: number): void {
    this.#underWay.delete(uplinkId);
    this.changed();
  }

  /** The event is left alone, and its lock too where one is given, until it is kept. */
  setAside(uplinkId: number, deviceId: number | undefined): void {
    this.#setAside.set(uplinkId, deviceId);
    this.changed();
  }

  /** What came of these events is kept after all. */
  kept(uplinkIds: readonly number[]): void {
    for (const id of uplinkIds) this.#setAside.delete(id);
    this.changed();
  }

  /** Whether an event of this lock has been set aside that its later ones have to wait for. */
  isLockSetAside(deviceId: number): boolean {
    for (const each of this.#setAside.values()) if (each === deviceId) return true;
    return false;
  }

  /**
   * At most `most` that are due and neither under way nor set aside, the longest due first; `skipped` more are looked
   * through, which the caller can't start.
   *
   * @throws StoreFailure
   */
  async read(nowMs: number, most: number, skipped: number): Promise<DueDelivery[]> {
    if (most <= 0 || (this.#dueAtMs !== undefined && (this.#dueAtMs ?? Number.POSITIVE_INFINITY) > nowMs)) return [];
    const forgets = this.#forgets;
    const limit = most + skipped + this.#underWay.size + this.#setAside.size;
    const due = await this.#store.readDueDeliveries(this.#urlId, nowMs, limit);
    // Whoever forgets wakes the worker.
    if (forgets !== this.#forgets) return [];
    return due.filter(({ uplink }) => !this.#underWay.has(uplink.id) && !this.#setAside.has(uplink.id));
  }

  /** When the next one that is not under way is due; null where none waits. @throws StoreFailure */
  async nextAtMs(): Promise<number | null> {
    if (this.#dueAtMs !== undefined) return this.#dueAtMs;
    const changes = this.#changes;
    const besides = this.#setAside.size === 0 ? this.#underWay : new Set([...this.#underWay, ...this.#setAside.keys()]);
    const dueAtMs = await this.#store.nextDueAtMs(this.#urlId, besides);
    // What has changed meanwhile wakes the worker.
    if (changes !== this.#changes) return null;
    this.#dueAtMs = dueAtMs;
    return dueAtMs;
  }

  /**
   * To be called before the first is read: no due time shall lie further ahead than its own delay, as it does where the
   * machine's clock was set back since it was written. `heldUntilMs`: what is due until then may stay.
   *
   * @throws StoreFailure
   */
  async shorten(nowMs: number, heldUntilMs = nowMs): Promise<void> {
    if (this.#isShortened) return;
    const { webhooks } = this.#store;
    for (let afterId: number | undefined = 0; afterId !== undefined; ) {
      const wanted = { afterId, fromMs: heldUntilMs, limit: LOOKED_AT_ONCE };
      const waits: readonly DeliveryWait[] = await webhooks.readWaits(this.#urlId, wanted);
      const latest = waits.map(({ uplinkId, attempts, atMs }) => {
        return { uplinkId, atMs: Math.min(atMs, Math.max(nowMs + longestWait(attempts), heldUntilMs)) };
      });
      const shorter = latest.filter(({ atMs }, index) => atMs !== waits[index]?.atMs);
      if (shorter.length > 0) await webhooks.shortenWaits(this.#urlId, shorter);
      afterId = waits.length < LOOKED_AT_ONCE ? undefined : waits.at(-1)?.uplinkId;
    }
    this.#isShortened = true;
    this.changed();
  }
}

/**
 * The retries of one URL: which are under way, which are due, and when the next one is. Also the events that are set
 * aside, since the store refuses their outcomes (progress-recorder.ts): no attempt is made at them meanwhile.
 */
import type { DueDelivery, Store } from '../../store/contract/store.js';
import type { DeliveryWait } from '../../store/contract/webhook-store.js';
import { longestWait } from './schedule.js';

/** Rows of one read, for {@link UrlRetries.shorten}. */
const ROWS_AT_ONCE = 500;

export class UrlRetries {
  readonly #urlId: number;
  readonly #store: Store;
  readonly #underWay = new Set<number>();
  /** Each with the lock whose later events wait for it; undefined where none do. */
  readonly #setAside = new Map<number, number | undefined>();
  /** When the next one is due; null where none waits, undefined where the store has to be asked. */
  #dueAtMs: number | null | undefined;
  /** How often the due retries have changed. */
  #changes = 0;
  #forgets = 0;
  #isShortened = false;

  constructor(urlId: number, store: Store) {
    this.#urlId = urlId;
    this.#store = store;
  }

  /** How many retries are under way. */
  get underWay(): number {
    return this.#underWay.size;
  }

  /** How many events are set aside. */
  get setAsideCount(): number {
    return this.#setAside.size;
  }

  /** The due retries have changed: the store has to be asked. */
  changed(): void {
    this.#changes += 1;
    this.#dueAtMs = undefined;
  }

  /** Events were erased: a read under way may return events that are gone. */
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

  /** No attempt at the event, nor at later ones of the lock where one is given, until its outcome is stored. */
  setAside(uplinkId: number, deviceId: number | undefined): void {
    this.#setAside.set(uplinkId, deviceId);
    this.changed();
  }

  /** The outcomes of these events are stored after all. */
  stored(uplinkIds: readonly number[]): void {
    for (const id of uplinkIds) this.#setAside.delete(id);
    this.changed();
  }

  /** Whether later events of this lock wait for one that is set aside. */
  isLockSetAside(deviceId: number): boolean {
    for (const each of this.#setAside.values()) if (each === deviceId) return true;
    return false;
  }

  /**
   * The retries that are due and neither under way nor set aside, the longest due first: at most `most`, and `skipped`
   * more that the caller may not be able to start.
   *
   * @throws StoreFailure
   */
  async read(nowMs: number, most: number, skipped: number): Promise<DueDelivery[]> {
    if (most <= 0 || (this.#dueAtMs !== undefined && (this.#dueAtMs ?? Number.POSITIVE_INFINITY) > nowMs)) return [];
    const forgets = this.#forgets;
    const limit = most + skipped + this.#underWay.size + this.#setAside.size;
    const due = await this.#store.readDueDeliveries(this.#urlId, nowMs, limit);
    // The worker is woken after it has forgotten something.
    if (forgets !== this.#forgets) return [];
    return due.filter(({ uplink }) => !this.#underWay.has(uplink.id) && !this.#setAside.has(uplink.id));
  }

  /** When the next retry that is not under way is due; null where none waits. @throws StoreFailure */
  async nextAtMs(): Promise<number | null> {
    if (this.#dueAtMs !== undefined) return this.#dueAtMs;
    const changes = this.#changes;
    const besides = this.#setAside.size === 0 ? this.#underWay : new Set([...this.#underWay, ...this.#setAside.keys()]);
    const dueAtMs = await this.#store.nextDueAtMs(this.#urlId, besides);
    // A change during the read wakes the worker.
    if (changes !== this.#changes) return null;
    this.#dueAtMs = dueAtMs;
    return dueAtMs;
  }

  /**
   * To be called before the first read. Brings due times forward that are further ahead than their own delay, as they
   * are where the machine's clock was set back since they were written. `heldUntilMs`: due times up to then may stay.
   *
   * @throws StoreFailure
   */
  async shorten(nowMs: number, heldUntilMs = nowMs): Promise<void> {
    if (this.#isShortened) return;
    const { webhooks } = this.#store;
    for (let afterId: number | undefined = 0; afterId !== undefined; ) {
      const wanted = { afterId, fromMs: heldUntilMs, limit: ROWS_AT_ONCE };
      const waits: readonly DeliveryWait[] = await webhooks.readWaits(this.#urlId, wanted);
      const latest = waits.map(({ uplinkId, attempts, atMs }) => {
        return { uplinkId, atMs: Math.min(atMs, Math.max(nowMs + longestWait(attempts), heldUntilMs)) };
      });
      const shorter = latest.filter(({ atMs }, index) => atMs !== waits[index]?.atMs);
      if (shorter.length > 0) await webhooks.shortenWaits(this.#urlId, shorter);
      afterId = waits.length < ROWS_AT_ONCE ? undefined : waits.at(-1)?.uplinkId;
    }
    this.#isShortened = true;
    this.changed();
  }
}

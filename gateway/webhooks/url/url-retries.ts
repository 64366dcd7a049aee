/**
 * Tracks the retries of one URL: which are running, which are due, and when the next one is due. Also tracks events
 * that are set aside, since the store refuses their outcomes (progress-recorder.ts): they are not attempted meanwhile.
 */
import type { DueDelivery, Store } from '../../store/contract/store.js';
import type { DeliveryWait } from '../../store/contract/webhook-store.js';
import { maxRetryDelay } from './schedule.js';

/** Rows per read in {@link UrlRetries.shortenWaits}. */
const ROWS_PER_READ = 500;

export class UrlRetries {
  readonly #urlId: number;
  readonly #store: Store;
  readonly #underWay = new Set<number>();
  /** Events set aside, each with the lock whose later events wait for it; undefined if none wait. */
  readonly #setAside = new Map<number, number | undefined>();
  /** When the next retry is due; null if none waits, undefined if the store must be read. */
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

  /** The due retries have changed: the store must be read again. */
  changed(): void {
    this.#changes += 1;
    this.#dueAtMs = undefined;
  }

  /** Events were erased: a running read may return erased events. */
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

  /** Stops attempts at the event, and at later events of the lock `deviceId` if given, until its outcome is stored. */
  setAside(uplinkId: number, deviceId: number | undefined): void {
    this.#setAside.set(uplinkId, deviceId);
    this.changed();
  }

  /** The outcomes of these events, which were set aside, have been stored. */
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
   * The retries that are due and neither running nor set aside, longest due first: at most `wanted`, plus `skipped`
   * more, since the caller may be unable to start that many.
   *
   * @throws StoreFailure
   */
  async read(nowMs: number, wanted: number, skipped: number): Promise<DueDelivery[]> {
    if (wanted <= 0 || (this.#dueAtMs !== undefined && (this.#dueAtMs ?? Number.POSITIVE_INFINITY) > nowMs)) return [];
    const forgets = this.#forgets;
    const limit = wanted + skipped + this.#underWay.size + this.#setAside.size;
    const due = await this.#store.readDueDeliveries(this.#urlId, nowMs, limit);
    // `forget` wakes the worker afterwards, which reads again.
    if (forgets !== this.#forgets) return [];
    return due.filter(({ uplink }) => !this.#underWay.has(uplink.id) && !this.#setAside.has(uplink.id));
  }

  /** When the next retry that is not running is due; null if none waits. @throws StoreFailure */
  async nextAtMs(): Promise<number | null> {
    if (this.#dueAtMs !== undefined) return this.#dueAtMs;
    const changes = this.#changes;
    const except = this.#setAside.size === 0 ? this.#underWay : new Set([...this.#underWay, ...this.#setAside.keys()]);
    const dueAtMs = await this.#store.nextDueAtMs(this.#urlId, except);
    // A change during the read wakes the worker.
    if (changes !== this.#changes) return null;
    this.#dueAtMs = dueAtMs;
    return dueAtMs;
  }

  /**
   * Must be called before the first read. Shortens waits that are longer than the schedule allows; such waits exist if
   * the machine's clock was set back after they were stored. Due times up to `heldUntilMs` stay unchanged.
   *
   * @throws StoreFailure
   */
  async shortenWaits(nowMs: number, heldUntilMs = nowMs): Promise<void> {
    if (this.#isShortened) return;
    const { webhooks } = this.#store;
    for (let afterId: number | undefined = 0; afterId !== undefined; ) {
      const wanted = { afterId, fromMs: heldUntilMs, limit: ROWS_PER_READ };
      const waits: readonly DeliveryWait[] = await webhooks.readWaits(this.#urlId, wanted);
      const latest = waits.map(({ uplinkId, attempts, atMs }) => {
        return { uplinkId, atMs: Math.min(atMs, Math.max(nowMs + maxRetryDelay(attempts), heldUntilMs)) };
      });
      const shorter = latest.filter(({ atMs }, index) => atMs !== waits[index]?.atMs);
      if (shorter.length > 0) await webhooks.shortenWaits(this.#urlId, shorter);
      afterId = waits.length < ROWS_PER_READ ? undefined : waits.at(-1)?.uplinkId;
    }
    this.#isShortened = true;
    this.changed();
  }
}

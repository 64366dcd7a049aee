/**
 * Tracks the retries of one URL: which are running, which are due, and when the next one is due. Also tracks events
 * (stored pings) that are set aside, since the store refuses their outcomes (progress-recorder.ts): they are not
 * attempted meanwhile. An event's id is the id of its uplink in the log.
 */

import type { Store } from '../../store/contract/store.js';
import type { DeliveryWait } from '../../store/contract/webhook-store.js';
import type { DueDelivery } from '../../store/contract/webhooks/delivery.js';
import { maxRetryDelay } from './schedule.js';

/** Waiting deliveries per read in {@link UrlRetries.shortenWaits}. */
const WAITS_PER_READ = 500;

export class UrlRetries {
  readonly #urlId: number;
  readonly #store: Store;
  /** The events whose retries are running. */
  readonly #underWay = new Set<number>();
  /** Events set aside, each with the lock whose later events wait for it; undefined if none wait. */
  readonly #setAside = new Map<number, number | undefined>();
  /** When the next retry is due; null if none waits, undefined if the store must be read. */
  #dueAtMs: number | null | undefined;
  /** How often the due retries have changed: shows whether they changed during a read. */
  #changeCount = 0;
  /** How often events were erased: shows whether a read may have returned erased events. */
  #forgetCount = 0;
  /** Whether {@link shortenWaits} is done. */
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

  /** Must be called when the due retries have changed: the store is then read again. */
  changed(): void {
    this.#changeCount += 1;
    this.#dueAtMs = undefined;
  }

  /** Must be called after events were erased: a running read may return erased events. */
  forget(): void {
    this.#forgetCount += 1;
    this.changed();
  }

  /** Must be called when a retry of the event starts. */
  started(uplinkId: number): void {
    this.#underWay.add(uplinkId);
    this.changed();
  }

  /** Must be called when the retry has ended and its outcome is stored or set aside. */
  ended(uplinkId: number): void {
    this.#underWay.delete(uplinkId);
    this.changed();
  }

  /** Stops attempts at the event, and at later events of the lock `deviceId` if given, until its outcome is stored. */
  setAside(uplinkId: number, deviceId: number | undefined): void {
    this.#setAside.set(uplinkId, deviceId);
    this.changed();
  }

  /** Must be called when the outcomes of these events, which were set aside, have been stored. */
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
   * The retries that are due and neither running nor set aside, longest due first: enough that the caller can start
   * `wanted` of them although it may have to skip up to `maxSkipped`.
   *
   * @throws StoreFailure
   */
  async read(nowMs: number, wanted: number, maxSkipped: number): Promise<DueDelivery[]> {
    const isNoneDue = this.#dueAtMs === null || (this.#dueAtMs ?? 0) > nowMs;
    if (wanted <= 0 || isNoneDue) return [];
    const forgetCountBefore = this.#forgetCount;
    // The store's result includes running retries and events set aside, which are filtered out below.
    const limit = wanted + maxSkipped + this.#underWay.size + this.#setAside.size;
    const due = await this.#store.readDueDeliveries(this.#urlId, nowMs, limit);
    // The caller of `forget` wakes the worker afterwards, which reads again.
    if (forgetCountBefore !== this.#forgetCount) return [];
    return due.filter(({ uplink }) => !this.#underWay.has(uplink.id) && !this.#setAside.has(uplink.id));
  }

  /** When the next retry that is not running is due; null if none waits. @throws StoreFailure */
  async nextAtMs(): Promise<number | null> {
    if (this.#dueAtMs !== undefined) return this.#dueAtMs;
    const changeCountBefore = this.#changeCount;
    const except = this.#setAside.size === 0 ? this.#underWay : new Set([...this.#underWay, ...this.#setAside.keys()]);
    const dueAtMs = await this.#store.nextDueAtMs(this.#urlId, except);
    // The change during the read also wakes the worker, which asks again.
    if (changeCountBefore !== this.#changeCount) return null;
    this.#dueAtMs = dueAtMs;
    return dueAtMs;
  }

  /**
   * Must be called before the first read. Shortens waits that are longer than the schedule allows; such waits exist if
   * the machine's clock was set back after they were stored.
   *
   * @param heldUntilMs until when the receiver asked for no attempts (Retry-After): earlier due times stay unchanged,
   *   since nothing is attempted before
   * @throws StoreFailure
   */
  async shortenWaits(nowMs: number, heldUntilMs = nowMs): Promise<void> {
    if (this.#isShortened) return;
    const { webhooks } = this.#store;
    for (let afterId: number | undefined = 0; afterId !== undefined; ) {
      const range = { afterId, afterMs: heldUntilMs, limit: WAITS_PER_READ };
      const waits: readonly DeliveryWait[] = await webhooks.readWaits(this.#urlId, range);
      const limitedWaits = waits.map(({ uplinkId, attempts, atMs }) => {
        return { uplinkId, atMs: Math.min(atMs, Math.max(nowMs + maxRetryDelay(attempts), heldUntilMs)) };
      });
      const shortened = limitedWaits.filter(({ atMs }, index) => atMs !== waits[index]?.atMs);
      if (shortened.length > 0) await webhooks.shortenWaits(this.#urlId, shortened);
      afterId = waits.length < WAITS_PER_READ ? undefined : waits.at(-1)?.uplinkId;
    }
    this.#isShortened = true;
    this.changed();
  }
}

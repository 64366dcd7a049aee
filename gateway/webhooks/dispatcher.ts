/**
 * The workers of all webhook URLs: one for each active URL, woken when its merchant has new events.
 *
 * A URL is in one of these states here:
 *
 * - *followed*: it has a worker (url-worker.ts).
 * - *changing*: an operator changed it. Its worker has stopped and ends what is under way; then the URL is read from
 *   the store and followed or idle. Changes of one URL happen one after the other.
 * - *idle*: it is disabled. It has no worker, hence no circuit and no probe.
 *
 * Once the dispatcher stops, all workers stop, and no URL gets another one.
 */
import { type Milliseconds, Seconds } from '../../proto/clock.js';
import type { Keys } from '../data-folder/keys.js';
import type { WebhookUrl } from '../store/contract/store.js';
import type { OldSecret } from '../store/contract/webhook-store.js';
import { DeliveryThrottle } from './delivery-throttle.js';
import { unsealHeaders } from './payload/custom-headers.js';
import type { UrlSecrets } from './sending/delivery-sender.js';
import { ProgressRecorder } from './url/progress-recorder.js';
import { StalledUrls } from './url/stalled-urls.js';
import { UrlWorker, type WorkerParts } from './url/url-worker.js';

/** Events that all URLs together may have read ahead: some 16 MB. */
const MOST_AHEAD_OF_ALL = 32_768;
/** The wait before the store is asked again after a failure. */
const AFTER_STORE_FAILURE: Milliseconds = Seconds(1);
/** How long attempts may go on when their URL is changed (longer than any attempt takes), and when it is removed. */
const CHANGE_GRACE: Milliseconds = Seconds(20);
const DROP_GRACE: Milliseconds = Seconds(2);

export type DispatcherParts = Omit<WorkerParts, 'record' | 'mayReadAhead' | 'throttle' | 'stalled'> & {
  readonly keys: Keys;
};

/** Unseals a URL's secrets and headers. @throws LockgateError `wrong-key` */
export function openUrlSecrets(keys: Keys, url: WebhookUrl, oldSecrets: readonly OldSecret[]): UrlSecrets {
  const old = oldSecrets.map((each) => ({ secret: keys.unseal(each.secretSealed), validUntilMs: each.validUntilMs }));
  return {
    signing: [{ secret: keys.unseal(url.secretSealed) }, ...old],
    headers: unsealHeaders(keys, url.headersSealed),
  };
}

export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #workers = new Map<number, UrlWorker>();
  /** The last change under way of each URL. */
  readonly #changing = new Map<number, Promise<void>>();
  readonly #throttle = new DeliveryThrottle();
  readonly #recorder: ProgressRecorder;
  readonly #stalled: StalledUrls;
  #isStopping = false;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    this.#recorder = new ProgressRecorder(parts);
    this.#stalled = new StalledUrls(parts.events, parts.runClock);
  }

  /** Follows every URL from its stored cursor. */
  async start(): Promise<void> {
    for (const url of await this.#parts.store.listWebhookUrls()) await this.#follow(url);
  }

  /** Follows a new URL. @throws LockgateError `wrong-key` */
  add(url: WebhookUrl): void {
    this.#startWorker(url, []);
  }

  async #follow(url: WebhookUrl): Promise<void> {
    const { store, waits } = this.#parts;
    // Damaged rows may have been restored since.
    const everything = { afterId: 0, toId: Number.MAX_SAFE_INTEGER, nowMs: waits.now() };
    if (url.state === 'active') await store.webhooks.releaseRepaired(url.id, everything);
    this.#startWorker(url, await store.webhooks.readOldSecrets(url.id, waits.wall.now()));
  }

  /** Gives an active URL a worker. */
  #startWorker(url: WebhookUrl, oldSecrets: readonly OldSecret[]): void {
    this.#workers.delete(url.id);
    if (url.state !== 'active' || this.#isStopping) return;
    const secrets = openUrlSecrets(this.#parts.keys, url, oldSecrets);
    const record: WorkerParts['record'] = (progress, by) => this.#recorder.record(progress, by);
    const mayReadAhead = (): boolean => this.#mayReadAhead();
    const ofAll = { record, mayReadAhead, throttle: this.#throttle, stalled: this.#stalled };
    const worker = new UrlWorker(url, secrets, { ...this.#parts, ...ofAll });
    this.#workers.set(url.id, worker);
    worker.wake();
  }

  /** Whether the URL's circuit is open. */
  isCircuitOpen(urlId: number): boolean {
    return this.#workers.get(urlId)?.probeAtMs !== undefined;
  }

  /** When the URL's open circuit lets one attempt through, in wall-clock time; null while the circuit is closed. */
  probeAtMs(urlId: number): number | null {
    return this.#dateOf(this.#workers.get(urlId)?.probeAtMs);
  }

  /** Until when the URL's receiver asked for no attempts, in wall-clock time; null where it did not. */
  heldUntilMs(urlId: number): number | null {
    return this.#dateOf(this.#workers.get(urlId)?.heldUntilMs);
  }

  /**
   * The earliest wall-clock time at which an attempt that is due at `dueAtMs` can be made: not before the Retry-After
   * ends, the open circuit lets it through, or now. Null at a disabled URL.
   */
  nextAttemptAtMs(urlId: number, dueAtMs: number): number | null {
    const worker = this.#workers.get(urlId);
    if (worker === undefined || worker.isStopped) return null;
    const { probeAtMs = dueAtMs, heldUntilMs = dueAtMs } = worker;
    return this.#dateOf(Math.max(dueAtMs, probeAtMs, heldUntilMs, this.#parts.waits.now()));
  }

  #dateOf(atMs: number | undefined): number | null {
    return atMs === undefined ? null : this.#parts.waits.toDate(atMs);
  }

  /** Deliveries of this URL were made due. */
  reconsider(urlId: number): void {
    this.#workers.get(urlId)?.reconsider();
  }

  /**
   * An operator changed the URL: stops its worker, lets attempts under way end, and follows the URL as it is stored
   * now. Its circuit starts closed, so that a repaired URL gets attempts at once. Resolves when the URL is followed.
   */
  refresh(urlId: number): Promise<void> {
    const stopped = this.#stopWorker(urlId, CHANGE_GRACE);
    const before = this.#changing.get(urlId) ?? Promise.resolve();
    const change = Promise.all([before, stopped])
      .then(() => this.#followAgain(urlId))
      .finally(() => {
        if (this.#changing.get(urlId) === change) this.#changing.delete(urlId);
      });
    this.#changing.set(urlId, change);
    return change;
  }

  /** Ends the deliveries of a URL that is disabled in the store and about to be removed. */
  async drop(urlId: number): Promise<void> {
    const stopped = this.#stopWorker(urlId, DROP_GRACE);
    await this.#changing.get(urlId);
    await Promise.all([stopped, this.#stopWorker(urlId, DROP_GRACE)]);
    this.#recorder.forget(urlId);
    this.#workers.delete(urlId);
  }

  async #stopWorker(urlId: number, grace: Milliseconds): Promise<void> {
    await this.#workers.get(urlId)?.stop(grace);
  }

  async #followAgain(urlId: number): Promise<void> {
    const { store, events, waits, runClock } = this.#parts;
    // The change before this one may have started a worker.
    await this.#stopWorker(urlId, CHANGE_GRACE);
    this.#recorder.forget(urlId);
    while (!this.#isStopping) {
      try {
        const url = await store.webhooks.find(urlId);
        if (url !== null) await this.#follow(url);
        return;
      } catch (error) {
        events.emit('store-failed', { atMs: runClock.now(), why: (error as Error).message });
        await new Promise<void>((resolve) => waits.after(AFTER_STORE_FAILURE, resolve));
      }
    }
  }

  /** To be called after a commit of so many uplinks, with the merchants that have new events. */
  wake(merchantIds: ReadonlySet<number>, uplinks: number): void {
    this.#throttle.stored(uplinks);
    for (const worker of this.#workers.values()) {
      // The throttle wakes a worker that it holds back: waking it with each commit would be in vain.
      if (merchantIds.has(worker.merchantId) && !this.#throttle.isThrottled(worker)) worker.wake();
    }
  }

  /** A lock's uplinks were erased: no worker may send those that it has read. */
  forget(deviceId: number): void {
    for (const worker of this.#workers.values()) worker.forget(deviceId);
  }

  /** Resolves when the outcomes of all attempts that have ended are stored. */
  async settled(): Promise<void> {
    await this.#recorder.settled();
  }

  /** Starts nothing new, lets what is under way end within `grace`, and stores its outcomes. */
  async stop(grace: Milliseconds): Promise<void> {
    this.#isStopping = true;
    this.#throttle.stop();
    this.#recorder.stop();
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop(grace)));
    await this.#recorder.settled();
  }

  #mayReadAhead(): boolean {
    let ahead = 0;
    for (const worker of this.#workers.values()) ahead += worker.ahead;
    return ahead < MOST_AHEAD_OF_ALL;
  }
}

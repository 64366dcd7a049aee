/**
 * Runs one worker for each active webhook URL, and wakes the worker when its merchant has new events (stored pings).
 * The worker sends the events that follow the URL's cursor: the position before its oldest events without an outcome.
 *
 * For the dispatcher, each URL is in one of these states:
 *
 * - *followed*: the URL has a worker (url-worker.ts).
 * - *changing*: an operator changed the URL. Its worker has stopped and finishes the attempts under way; then the
 *   dispatcher reads the URL from the store, and the URL is followed or idle. Changes of one URL run one after another.
 * - *idle*: the URL is disabled. It has no worker, so no circuit breaker and no probe.
 * - *elsewhere*: another gateway that shares the store owns the URL. This gateway tries every second to become its
 *   owner.
 *
 * Once the dispatcher stops, all workers stop, and no URL gets another one.
 */
import { type Milliseconds, Seconds, type Timer } from '../../proto/clock.js';
import type { Keys } from '../data-folder/keys.js';
import { LOG_START } from '../store/contract/log/log-position.js';
import type { Signal } from '../store/contract/slots/signals.js';
import type { OldSecret } from '../store/contract/webhook-store.js';
import type { WebhookUrl } from '../store/contract/webhooks/webhook-url.js';
import { DeliveryThrottle } from './delivery-throttle.js';
import { unsealHeaders } from './payload/custom-headers.js';
import type { UrlSecrets } from './sending/delivery-sender.js';
import { ProgressRecorder } from './url/progress-recorder.js';
import { StalledUrls } from './url/stalled-urls.js';
import { UrlWorker, type WorkerParts } from './url/url-worker.js';

/** Events that the workers of all URLs together may have read before attempting them: some 16 MB. */
const MAX_TOTAL_READ_AHEAD_EVENTS = 32_768;
/** The wait before the next read of a store that failed. */
const STORE_RETRY_DELAY: Milliseconds = Seconds(1);
/** How often the gateway looks for URLs without an owner and events of others, if several gateways share the store. */
const CLAIM_INTERVAL: Milliseconds = Seconds(1);
/** How long running attempts may continue when their URL is changed (longer than any attempt) or removed. */
const CHANGE_GRACE: Milliseconds = Seconds(20);
const REMOVAL_GRACE: Milliseconds = Seconds(2);

export type DispatcherParts = Omit<WorkerParts, 'record' | 'mayReadAhead' | 'throttle' | 'stalled' | 'onLost'> & {
  readonly keys: Keys;
};

/** Unseals a URL's secrets and headers. @throws LockgateError `wrong-key` */
export function unsealUrlSecrets(keys: Keys, url: WebhookUrl, oldSecrets: readonly OldSecret[]): UrlSecrets {
  const old = oldSecrets.map((each) => ({ secret: keys.unseal(each.secretSealed), validUntilMs: each.validUntilMs }));
  return {
    signing: [{ secret: keys.unseal(url.secretSealed) }, ...old],
    headers: unsealHeaders(keys, url.headersSealed),
  };
}

export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #workers = new Map<number, UrlWorker>();
  /** The latest running change of each URL. */
  readonly #changing = new Map<number, Promise<void>>();
  readonly #throttle = new DeliveryThrottle();
  readonly #recorder: ProgressRecorder;
  readonly #stalled: StalledUrls;
  #isStopping = false;
  #claimTimer: Timer | undefined;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    this.#recorder = new ProgressRecorder(parts);
    this.#stalled = new StalledUrls(parts.events, parts.runClock);
  }

  /** Follows every URL that this gateway owns, from its stored cursor. */
  async start(): Promise<void> {
    const { urls } = this.#parts.store.ownership;
    for (const url of await this.#parts.store.listWebhookUrls()) await this.#follow(url);
    // No other gateway shares the store.
    if (this.#parts.store.ownership.locks.isSole) return;
    // Another gateway wants to own one of this gateway's URLs.
    urls.onWish((urlId) => void this.#giveAway(urlId));
    this.#claimLater();
  }

  /** Follows a new URL. @throws LockgateError `wrong-key` */
  add(url: WebhookUrl): void {
    if (this.#parts.store.ownership.urls.owns(url.id)) this.#startWorker(url, []);
  }

  #claimLater(): void {
    if (this.#isStopping) return;
    this.#claimTimer = this.#parts.deliveryClock.after(CLAIM_INTERVAL, () => {
      // Other gateways store events too, and this one is not told.
      this.wakeAll();
      void this.#claimFree().then(() => this.#claimLater());
    });
  }

  /** Follows the URLs without a worker that this gateway may have. */
  async #claimFree(): Promise<void> {
    try {
      for (const url of await this.#parts.store.listWebhookUrls())
        if (url.state === 'active' && !this.#workers.has(url.id) && !this.#changing.has(url.id))
          await this.#follow(url);
    } catch (error) {
      this.#reportFailure(error as Error);
    }
  }

  /** Gives a URL to another gateway, once its running attempts have ended and their outcomes are stored. */
  async #giveAway(urlId: number): Promise<void> {
    const { urls } = this.#parts.store.ownership;
    if (!urls.owns(urlId) || this.#changing.has(urlId)) return;
    const change = this.#stopWorker(urlId, CHANGE_GRACE)
      .then(() => this.#recorder.flush())
      .then(() => urls.release([urlId]))
      .catch((error: Error) => this.#reportFailure(error))
      .finally(() => {
        this.#recorder.forget(urlId);
        this.#workers.delete(urlId);
        this.#changing.delete(urlId);
      });
    this.#changing.set(urlId, change);
    await change;
  }

  #reportFailure({ message: why }: Error): void {
    const { events, runClock } = this.#parts;
    events.emit('store-failed', { atMs: runClock.now(), why });
  }

  async #follow(url: WebhookUrl): Promise<void> {
    const { urls } = this.#parts.store.ownership;
    if (url.state !== 'active' || urls.owns(url.id)) return await this.#followOwn(url);
    if (!(await urls.claim([url.id])).includes(url.id)) return;
    // Its former owner may have moved its cursor until now.
    const claimed = await this.#parts.store.webhooks.find(url.id);
    if (claimed !== null) await this.#followOwn(claimed);
  }

  async #followOwn(url: WebhookUrl): Promise<void> {
    const { store, deliveryClock } = this.#parts;
    // Pings in the log that were damaged may have been repaired in the meantime: their deliveries become due again.
    const wholeLog = { after: LOG_START, before: undefined, nowMs: deliveryClock.now() };
    if (url.state === 'active') await store.webhooks.releaseRepaired(url.id, wholeLog);
    this.#startWorker(url, await store.webhooks.readOldSecrets(url.id, deliveryClock.wall.now()));
  }

  /** Gives an active URL a worker. */
  #startWorker(url: WebhookUrl, oldSecrets: readonly OldSecret[]): void {
    this.#workers.delete(url.id);
    if (url.state !== 'active' || this.#isStopping) return;
    const secrets = unsealUrlSecrets(this.#parts.keys, url, oldSecrets);
    const record: WorkerParts['record'] = (progress, by) => this.#recorder.record(progress, by);
    const mayReadAhead = (): boolean => this.#mayReadAhead();
    const onLost = (urlId: number): void => void this.#reload(urlId);
    const sharedParts = { record, mayReadAhead, onLost, throttle: this.#throttle, stalled: this.#stalled };
    const worker = new UrlWorker(url, secrets, { ...this.#parts, ...sharedParts });
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

  /**
   * Until when the URL's receiver asked for no attempts (Retry-After), in wall-clock time; null if it asked for none.
   */
  heldUntilMs(urlId: number): number | null {
    return this.#dateOf(this.#workers.get(urlId)?.heldUntilMs);
  }

  /**
   * The earliest wall-clock time of an attempt that is due at `dueAtMs` by the delivery clock: not before now, the end
   * of a Retry-After, or the next probe of an open circuit. Null at a disabled URL.
   */
  earliestAttemptAtMs(urlId: number, dueAtMs: number): number | null {
    const worker = this.#workers.get(urlId);
    if (worker === undefined || worker.isStopped) return null;
    const { probeAtMs = dueAtMs, heldUntilMs = dueAtMs } = worker;
    return this.#dateOf(Math.max(dueAtMs, probeAtMs, heldUntilMs, this.#parts.deliveryClock.now()));
  }

  #dateOf(atMs: number | undefined): number | null {
    return atMs === undefined ? null : this.#parts.deliveryClock.formatDate(atMs);
  }

  /** Must be called after an operator's request made deliveries of the URL due. */
  recheckDue(urlId: number): void {
    this.#signal({ type: 'url', urlId, what: 'due' });
    this.#workers.get(urlId)?.recheckDue();
  }

  #signal(signal: Signal): void {
    this.#parts.store.ownership.signals.send(signal);
  }

  /** Must be called when another gateway says that a URL was changed there, or that deliveries of it are due. */
  changedElsewhere({ urlId, what }: Extract<Signal, { type: 'url' }>): void {
    if (what === 'due') this.#workers.get(urlId)?.recheckDue();
    else void this.#reload(urlId);
  }

  /**
   * Applies an operator's change of the URL: stops its worker, lets running attempts finish, and follows the URL with
   * its stored settings. Its circuit starts closed, so that a repaired URL gets attempts at once. Resolves when the URL
   * is followed.
   */
  reload(urlId: number): Promise<void> {
    this.#signal({ type: 'url', urlId, what: 'changed' });
    return this.#reload(urlId);
  }

  #reload(urlId: number): Promise<void> {
    const stopped = this.#stopWorker(urlId, CHANGE_GRACE);
    const previousChange = this.#changing.get(urlId) ?? Promise.resolve();
    const change = Promise.all([previousChange, stopped])
      .then(() => this.#followAgain(urlId))
      .finally(() => {
        if (this.#changing.get(urlId) === change) this.#changing.delete(urlId);
      });
    this.#changing.set(urlId, change);
    return change;
  }

  /** Stops the deliveries of a URL. The caller has disabled it in the store and removes it afterwards. */
  async stopForRemoval(urlId: number): Promise<void> {
    this.#signal({ type: 'url', urlId, what: 'changed' });
    const stopped = this.#stopWorker(urlId, REMOVAL_GRACE);
    // A running change may start another worker, which is stopped too.
    await this.#changing.get(urlId);
    await Promise.all([stopped, this.#stopWorker(urlId, REMOVAL_GRACE)]);
    this.#recorder.forget(urlId);
    this.#workers.delete(urlId);
  }

  async #stopWorker(urlId: number, grace: Milliseconds): Promise<void> {
    await this.#workers.get(urlId)?.stop(grace);
  }

  async #followAgain(urlId: number): Promise<void> {
    const { store, events, deliveryClock, runClock } = this.#parts;
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
        await new Promise<void>((resolve) => deliveryClock.after(STORE_RETRY_DELAY, resolve));
      }
    }
  }

  /** Must be called after each commit, with the merchants that have new events and the number of uplinks. */
  wake(merchantIds: ReadonlySet<number>, uplinks: number): void {
    this.#throttle.uplinksStored(uplinks);
    for (const worker of this.#workers.values()) if (merchantIds.has(worker.merchantId)) this.#wakeForEvents(worker);
  }

  /** Must be called after a commit with events other than pings, whose merchants are not known here. */
  wakeAll(): void {
    for (const worker of this.#workers.values()) this.#wakeForEvents(worker);
  }

  #wakeForEvents(worker: UrlWorker): void {
    worker.expectEvents();
    // A worker that waits for the throttle is woken by it, and could start nothing now.
    if (!this.#throttle.isThrottled(worker)) worker.wake();
  }

  /** Must be called after a lock's uplinks were erased: workers drop the lock's events that they have read. */
  forgetLock(deviceId: number): void {
    this.#signal({ type: 'erased', deviceId });
    this.forgetLockHere(deviceId);
  }

  /** The same, for a lock that another gateway erased. */
  forgetLockHere(deviceId: number): void {
    for (const worker of this.#workers.values()) worker.forgetLock(deviceId);
  }

  /** Resolves when the outcomes of all finished attempts are stored. */
  async flushOutcomes(): Promise<void> {
    await this.#recorder.flush();
  }

  /** Starts nothing new, gives running attempts `grace` ms to finish, and stores their outcomes. */
  async stop(grace: Milliseconds): Promise<void> {
    this.#isStopping = true;
    this.#claimTimer?.cancel();
    this.#throttle.stop();
    this.#recorder.stop();
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop(grace)));
    await this.#recorder.flush();
  }

  #mayReadAhead(): boolean {
    let readAhead = 0;
    for (const worker of this.#workers.values()) readAhead += worker.readAheadCount;
    return readAhead < MAX_TOTAL_READ_AHEAD_EVENTS;
  }
}

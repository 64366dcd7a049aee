/** All webhook URLs at work, each on its own: a worker for each, woken when its merchant has new events. */
import { type Milliseconds, Seconds } from '../../proto/clock.js';
import type { Keys } from '../data-folder/keys.js';
import type { WebhookUrl } from '../store/contract/store.js';
import type { OldSecret } from '../store/contract/webhook-store.js';
import type { UrlSecrets } from './delivery-sender.js';
import { DeliveryThrottle } from './delivery-throttle.js';
import { unsealHeaders } from './payload/custom-headers.js';
import { ProgressRecorder } from './url/progress-recorder.js';
import { StalledUrls } from './url/stalled-urls.js';
import { UrlWorker, type WorkerParts } from './url/url-worker.js';

/** Events that all URLs together may have read ahead: some 16 MB. */
const AHEAD_OF_ALL = 32_768;
/** The wait before the store is asked again after it failed. */
const AFTER_STORE_FAILURE: Milliseconds = Seconds(1);
/** What is under way when a URL is changed may go on for longer than an attempt lasts; when it is removed, not. */
const RETIRE_GRACE: Milliseconds = Seconds(20);
const DROP_GRACE: Milliseconds = Seconds(2);

export type DispatcherParts = Omit<WorkerParts, 'record' | 'mayReadAhead' | 'pace' | 'stalled'> & {
  readonly keys: Keys;
};

/** Opens what is secret about a URL. @throws LockgateError `wrong-key` */
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
  /** Changes under way, by URL. */
  readonly #changing = new Map<number, Promise<void>>();
  readonly #pace = new DeliveryThrottle();
  readonly #recorder: ProgressRecorder;
  readonly #stalled: StalledUrls;
  #stopping = false;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    this.#recorder = new ProgressRecorder(parts);
    this.#stalled = new StalledUrls(parts.events, parts.runClock);
  }

  /** Goes on where the store says that each URL stands. */
  async start(): Promise<void> {
    for (const url of await this.#parts.store.listWebhookUrls()) await this.#follow(url);
  }

  /** Lets a new URL follow the log from its cursor. @throws LockgateError `wrong-key` */
  add(url: WebhookUrl): void {
    this.#begin(url, []);
  }

  async #follow(url: WebhookUrl): Promise<void> {
    const { store, waits } = this.#parts;
    // What was damaged may have been repaired, or restored, since.
    const everything = { afterId: 0, toId: Number.MAX_SAFE_INTEGER, nowMs: waits.now() };
    if (url.state === 'active') await store.webhooks.releaseRepaired(url.id, everything);
    this.#begin(url, await store.webhooks.readOldSecrets(url.id, waits.wall.now()));
  }

  /** A disabled URL stays where it is. */
  #begin(url: WebhookUrl, oldSecrets: readonly OldSecret[]): void {
    // Of one that is disabled nothing is known but what the store has: no circuit, no probe.
    this.#workers.delete(url.id);
    if (url.state !== 'active' || this.#stopping) return;
    const secrets = openUrlSecrets(this.#parts.keys, url, oldSecrets);
    const record: WorkerParts['record'] = (progress, by) => this.#recorder.record(progress, by);
    const mayReadAhead = (): boolean => this.#mayReadAhead();
    const ofAll = { record, mayReadAhead, pace: this.#pace, stalled: this.#stalled };
    const worker = new UrlWorker(url, secrets, { ...this.#parts, ...ofAll });
    this.#workers.set(url.id, worker);
    worker.wake();
  }

  /** Whether the URL's circuit is open. */
  isCircuitOpen(urlId: number): boolean {
    return this.#workers.get(urlId)?.probeAtMs !== undefined;
  }

  /** When the URL's open circuit lets one attempt through, by the wall's clock; null while it is closed. */
  probeAtMs(urlId: number): number | null {
    return this.#dateOf(this.#workers.get(urlId)?.probeAtMs);
  }

  /** Until when the URL's receiver asked to be left alone, by the wall's clock; null where it takes what comes. */
  heldUntilMs(urlId: number): number | null {
    return this.#dateOf(this.#workers.get(urlId)?.heldUntilMs);
  }

  /**
   * The earliest that an attempt which is due at `dueAtMs` can be made, by the wall's clock: not before the receiver
   * wants it, the open circuit lets it through, or now. Null at a URL that gets none, since it is disabled.
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
   * An operator changed the URL: nothing is sent any more as it was, and what is under way may end, before the URL is
   * followed as it is now. Its circuit is closed, so that what was mended is seen at once. Resolves
   * when it is followed.
   */
  refresh(urlId: number): Promise<void> {
    const ended = this.#retire(urlId, RETIRE_GRACE);
    const before = this.#changing.get(urlId) ?? Promise.resolve();
    const changed = Promise.all([before, ended]).then(() => this.#return(urlId));
    const settled = changed.finally(() => {
      if (this.#changing.get(urlId) === settled) this.#changing.delete(urlId);
    });
    this.#changing.set(urlId, settled);
    return settled;
  }

  /** Ends the deliveries of a URL that the store has disabled; what is under way is cut off soon. */
  async drop(urlId: number): Promise<void> {
    const ended = this.#retire(urlId, DROP_GRACE);
    await this.#changing.get(urlId);
    await Promise.all([ended, this.#retire(urlId, DROP_GRACE)]);
    this.#recorder.forget(urlId);
    this.#workers.delete(urlId);
  }

  async #retire(urlId: number, grace: Milliseconds): Promise<void> {
    await this.#workers.get(urlId)?.stop(grace);
  }

  async #return(urlId: number): Promise<void> {
    const { store, events, waits, runClock } = this.#parts;
    // One more change may have come before this one's turn, and begun a worker.
    await this.#retire(urlId, RETIRE_GRACE);
    this.#recorder.forget(urlId);
    while (!this.#stopping) {
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

  /** To be called after a commit that stored so many uplinks, with the merchants that have new events. */
  wake(merchantIds: ReadonlySet<number>, uplinks: number): void {
    this.#pace.stored(uplinks);
    for (const worker of this.#workers.values()) {
      // Who is held back is woken when it may begin something: with each commit it would find out that it may not.
      if (merchantIds.has(worker.merchantId) && !this.#pace.isHeld(worker)) worker.wake();
    }
  }

  /** What a lock sent was erased: no worker is to send what it has read of it. */
  forget(deviceId: number): void {
    for (const worker of this.#workers.values()) worker.forget(deviceId);
  }

  /** Resolves when what has come of attempts so far is in the store, and need not wait for more to share its commit. */
  async settled(): Promise<void> {
    await this.#recorder.settled();
  }

  /** Starts nothing new, lets what is under way end within `grace`, and keeps what came of it. */
  async stop(grace: Milliseconds): Promise<void> {
    this.#stopping = true;
    this.#pace.stop();
    this.#recorder.stop();
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop(grace)));
    await this.#recorder.settled();
  }

  #mayReadAhead(): boolean {
    let ahead = 0;
    for (const worker of this.#workers.values()) ahead += worker.ahead;
    return ahead < AHEAD_OF_ALL;
  }
}

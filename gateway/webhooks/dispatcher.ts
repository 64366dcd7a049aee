/**
 * All webhook URLs at work, each on its own: a worker for each, woken when its merchant has new events.
 *
 * What the workers have to say is made durable together: one commit for all outcomes that wait (group commit), tried
 * again where the store fails, in order, so that no cursor passes an outcome that isn't kept.
 */
import { type Milliseconds, Seconds } from '../../proto/clock.js';
import type { Keys } from '../keys.js';
import type { DeliveryProgress, WebhookUrl } from '../store/store.js';
import { UrlWorker, type WorkerParts } from './url-worker.js';

/** The wait before the store is asked again after it failed. */
const AFTER_STORE_FAILURE: Milliseconds = Seconds(1);

export type DispatcherParts = Omit<WorkerParts, 'record'> & { readonly keys: Keys };

interface Waiting {
  readonly progress: DeliveryProgress;
  readonly done: () => void;
}

export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #workers = new Map<number, UrlWorker>();
  #waiting: Waiting[] = [];
  #recording: Promise<void> | undefined;
  #stopping = false;
  #gaveUp = false;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
  }

  /** Goes on where the store says that each URL stands. */
  async start(): Promise<void> {
    for (const url of await this.#parts.store.listWebhookUrls()) this.add(url);
  }

  /** Lets a URL follow the log from its cursor; a disabled one stays where it is. @throws LockgateError `wrong-key` */
  add(url: WebhookUrl): void {
    if (url.state !== 'active') return;
    const secret = this.#parts.keys.unseal(url.secretSealed);
    const record = (progress: DeliveryProgress): Promise<void> => this.#record(progress);
    const worker = new UrlWorker(url, secret, { ...this.#parts, record });
    this.#workers.set(url.id, worker);
    worker.wake();
  }

  /** How many deliveries of each URL have no outcome yet, in the order in which the URLs came. */
  *waiting(): Iterable<readonly [urlId: number, waiting: number]> {
    for (const [urlId, worker] of this.#workers) yield [urlId, worker.waiting];
  }

  /** To be called after a commit that stored events of these merchants. */
  wake(merchantIds: ReadonlySet<number>): void {
    for (const worker of this.#workers.values()) {
      if (merchantIds.has(worker.merchantId)) worker.wake();
    }
  }

  /** What a lock sent was erased: no worker is to send what it has read of it. */
  forget(deviceId: number): void {
    for (const worker of this.#workers.values()) worker.forget(deviceId);
  }

  /** Starts nothing new, lets what is under way end within `grace`, and keeps what came of it. */
  async stop(grace: Milliseconds): Promise<void> {
    this.#stopping = true;
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop(grace)));
    await this.#recording;
  }

  #record(progress: DeliveryProgress): Promise<void> {
    return new Promise((done) => {
      this.#waiting.push({ progress, done });
      this.#recording ??= this.#recordAll().finally(() => {
        this.#recording = undefined;
      });
    });
  }

  async #recordAll(): Promise<void> {
    // Outcomes that come in this turn of the loop join the commit.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      if (await this.#tryRecord(batch)) for (const { done } of batch) done();
      else this.#waiting = [...batch, ...this.#waiting];
    }
  }

  async #tryRecord(batch: readonly Waiting[]): Promise<boolean> {
    const { store, events, clock, runClock } = this.#parts;
    // A cursor that is kept after an outcome that isn't would lose an event.
    if (this.#gaveUp) return true;
    try {
      await store.recordProgress(batch.map(({ progress }) => progress));
      return true;
    } catch (error) {
      events.emit('store-failed', { atMs: runClock.now(), why: (error as Error).message });
      // On the way out there is no waiting for a store that fails: what isn't kept is delivered again, under its id.
      if (this.#stopping) {
        this.#gaveUp = true;
        return true;
      }
      await new Promise<void>((resolve) => clock.after(AFTER_STORE_FAILURE, resolve));
      return false;
    }
  }
}

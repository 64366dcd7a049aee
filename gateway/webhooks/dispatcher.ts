/**
 * All webhook URLs at work, each on its own: a worker for each, woken when its merchant has new events.
 *
 * What the workers have to say is made durable together: one commit for all outcomes that wait (group commit), tried
 * again where the store fails, in order, so that no cursor passes an outcome that isn't kept.
 */
import { type Milliseconds, Seconds, systemClock, type Timer } from '../../proto/clock.js';
import type { Keys } from '../keys.js';
import type { DeliveryProgress, WebhookUrl } from '../store/store.js';
import type { OldSecret } from '../store/webhook-store.js';
import type { UrlSecrets } from './courier.js';
import { unsealHeaders } from './custom-headers.js';
import { Pace } from './pace.js';
import { UrlWorker, type WorkerParts } from './url-worker.js';

/** An outcome waits so long for others to share a commit with, or until so many do. */
const GATHER_FOR: Milliseconds = 20;
const GATHER_MOST = 512;
/** Events that all URLs together may have read ahead: some 16 MB. */
const AHEAD_OF_ALL = 32_768;
/** The wait before the store is asked again after it failed. */
const AFTER_STORE_FAILURE: Milliseconds = Seconds(1);
/** What is under way when a URL is changed may go on for longer than an attempt lasts; when it is removed, not. */
const RETIRE_GRACE: Milliseconds = Seconds(20);
const DROP_GRACE: Milliseconds = Seconds(2);

export type DispatcherParts = Omit<WorkerParts, 'record' | 'mayReadAhead' | 'pace'> & { readonly keys: Keys };

/** Opens what is secret about a URL. @throws LockgateError `wrong-key` */
export function openUrlSecrets(keys: Keys, url: WebhookUrl, oldSecrets: readonly OldSecret[]): UrlSecrets {
  const old = oldSecrets.map((each) => ({ secret: keys.unseal(each.secretSealed), validUntilMs: each.validUntilMs }));
  return {
    signing: [{ secret: keys.unseal(url.secretSealed) }, ...old],
    headers: unsealHeaders(keys, url.headersSealed),
  };
}

interface Waiting {
  readonly progress: DeliveryProgress;
  readonly done: () => void;
}

export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #workers = new Map<number, UrlWorker>();
  /** Changes under way, by URL. */
  readonly #changing = new Map<number, Promise<void>>();
  readonly #pace = new Pace();
  #waiting: Waiting[] = [];
  #recording: Promise<void> | undefined;
  #gathering: Timer | undefined;
  #stopping = false;
  #gaveUp = false;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
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
    const { store, clock } = this.#parts;
    // What was damaged may have been repaired, or restored, since.
    const everything = { afterId: 0, toId: Number.MAX_SAFE_INTEGER, nowMs: clock.now() };
    if (url.state === 'active') await store.webhooks.releaseRepaired(url.id, everything);
    this.#begin(url, await store.webhooks.readOldSecrets(url.id, clock.now()));
  }

  /** A disabled URL stays where it is. */
  #begin(url: WebhookUrl, oldSecrets: readonly OldSecret[]): void {
    if (url.state !== 'active' || this.#stopping) return;
    const secrets = openUrlSecrets(this.#parts.keys, url, oldSecrets);
    const record = (progress: DeliveryProgress): Promise<void> => this.#record(progress);
    const mayReadAhead = (): boolean => this.#mayReadAhead();
    const worker = new UrlWorker(url, secrets, { ...this.#parts, record, mayReadAhead, pace: this.#pace });
    this.#workers.set(url.id, worker);
    worker.wake();
  }

  /** Whether the URL's circuit is open. */
  isCircuitOpen(urlId: number): boolean {
    return this.#workers.get(urlId)?.isCircuitOpen ?? false;
  }

  /** When the URL's open circuit lets one attempt through, by the wall's clock; null while it is closed. */
  probeAtMs(urlId: number): number | null {
    return this.#workers.get(urlId)?.probeAtMs ?? null;
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
    this.#workers.delete(urlId);
  }

  async #retire(urlId: number, grace: Milliseconds): Promise<void> {
    await this.#workers.get(urlId)?.stop(grace);
  }

  async #return(urlId: number): Promise<void> {
    const { store, events, clock, runClock } = this.#parts;
    // One more change may have come before this one's turn, and begun a worker.
    await this.#retire(urlId, RETIRE_GRACE);
    while (!this.#stopping) {
      try {
        const url = await store.webhooks.find(urlId);
        if (url !== null) await this.#follow(url);
        return;
      } catch (error) {
        events.emit('store-failed', { atMs: runClock.now(), why: (error as Error).message });
        await new Promise<void>((resolve) => clock.after(AFTER_STORE_FAILURE, resolve));
      }
    }
  }

  /** How many deliveries of each URL have no outcome yet, in the order in which the URLs came. */
  *waiting(): Iterable<readonly [urlId: number, waiting: number]> {
    for (const [urlId, worker] of this.#workers) yield [urlId, worker.waiting];
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
    this.#startRecording();
    await this.#recording;
  }

  /** Starts nothing new, lets what is under way end within `grace`, and keeps what came of it. */
  async stop(grace: Milliseconds): Promise<void> {
    this.#stopping = true;
    this.#pace.stop();
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop(grace)));
    await this.#recording;
  }

  #record(progress: DeliveryProgress): Promise<void> {
    return new Promise((done) => {
      this.#waiting.push({ progress, done });
      if (this.#stopping || this.#waiting.length >= GATHER_MOST) this.#startRecording();
      else this.#gathering ??= systemClock.after(GATHER_FOR, () => this.#startRecording());
    });
  }

  #mayReadAhead(): boolean {
    let ahead = 0;
    for (const worker of this.#workers.values()) ahead += worker.ahead;
    return ahead < AHEAD_OF_ALL;
  }

  #startRecording(): void {
    this.#gathering?.cancel();
    this.#gathering = undefined;
    this.#recording ??= this.#recordAll().finally(() => {
      this.#recording = undefined;
    });
  }

  async #recordAll(): Promise<void> {
    // Outcomes that come in this turn of the loop join the commit.
    await Promise.resolve();
    // Those that come while it is under way have waited as long, and follow.
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

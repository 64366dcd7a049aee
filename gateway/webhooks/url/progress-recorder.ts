/**
 * Stores the outcomes of delivery attempts at all URLs: one commit for all waiting outcomes (group commit). Each
 * outcome comes with the URL's cursor, the position before its oldest events without an outcome. If the store fails,
 * the commit is repeated in order, so that no cursor passes an outcome that is not stored.
 *
 * If the store can write but refuses an outcome, the outcome itself is the cause, such as a damaged row in the table of
 * deliveries. An outcome is
 *
 * - *queued* until a commit has it; then it is *stored*;
 * - *refused* once a failed commit was halved until it had only this outcome. The outcome leaves the queue and is tried
 *   in three commits without others;
 * - *set aside* after that, or when the gateway stops. The gateway emits `cannot-record`, and tries the outcome every 5
 *   min while it runs. The URL's cursor stays before the outcome's event, so the next start attempts the event
 *   again if its outcome is never stored.
 */
import { type Clock, type Milliseconds, Minutes, Seconds, systemClock, type Timer } from '../../../proto/clock.js';
import type { GatewayEvents } from '../../events.js';
import { failureKind } from '../../store/contract/errors.js';
import { movedBefore } from '../../store/contract/log/log-position.js';
import type { Store } from '../../store/contract/store.js';
import type { DeliveryProgress } from '../../store/contract/webhooks/delivery.js';

/** How long an outcome waits for others to share its commit, and how many waiting outcomes start the commit at once. */
const GATHER_TIME: Milliseconds = 20;
const MAX_GATHERED_OUTCOMES = 512;
/** The wait before the next write after the store failed or refused an outcome. */
const STORE_RETRY_DELAY: Milliseconds = Seconds(1);
/** Tries of a refused outcome before it is set aside, and the interval of its tries from then on. */
const TRIES_BEFORE_SET_ASIDE = 3;
const SET_ASIDE_RETRY_INTERVAL: Milliseconds = Minutes(5);
/** The key of an empty metadata entry that is written to find out whether the store can write at all. */
const WRITE_CHECK_KEY = 'delivery-proof';

export interface ProgressRecorderParts {
  readonly store: Pick<Store, 'recordProgress' | 'writeMetadata'>;
  readonly events: GatewayEvents;
  /** The clock that deliveries wait by; repeated writes wait by it too. */
  readonly deliveryClock: Clock;
  /** The run's clock, for events. */
  readonly runClock: Clock;
}

/** How the recording of an outcome ended (see the head of this file). */
export type Recorded = 'stored' | 'set-aside';

/** The worker that records outcomes. */
export interface RecordingWorker {
  /** Called when its progress was not stored, since another gateway owns the URL or the URL was changed. */
  lost(): void;
  /** Called when an outcome that was set aside has been stored. */
  storedAfterAll(progress: DeliveryProgress): void;
}

/** An outcome that waits for a commit. */
interface Queued {
  /** The outcome, the cursor and the changes to the URL. */
  readonly progress: DeliveryProgress;
  /** The worker that records the outcome. */
  readonly by: RecordingWorker;
  readonly done: (recorded: Recorded) => void;
}

/** An outcome that the store refuses. `tries` counts the commits that had only this outcome. */
interface Refused extends Queued {
  tries: number;
}

const NO_WORKER: RecordingWorker = { lost: () => undefined, storedAfterAll: () => undefined };

export class ProgressRecorder {
  readonly #parts: ProgressRecorderParts;
  #queue: Queued[] = [];
  /** Refused and set-aside outcomes, by URL. There are few: a URL with many gets no more attempts (url-worker.ts). */
  readonly #refused = new Map<number, Set<Refused>>();
  /** The refused outcomes that are due to be tried again. */
  #dueRefused: Refused[] = [];
  #recording: Promise<void> | undefined;
  #gathering: Timer | undefined;
  #isStopping = false;
  /** The store failed during the stop: outcomes that are not stored yet are dropped. */
  #hasGivenUp = false;

  constructor(parts: ProgressRecorderParts) {
    this.#parts = parts;
  }

  /** Stores the progress soon, in order of the calls, except for refused outcomes. Never rejects. */
  record(progress: DeliveryProgress, by: RecordingWorker): Promise<Recorded> {
    return new Promise((done) => {
      this.#queue.push({ progress, by, done });
      if (this.#isStopping || this.#queue.length >= MAX_GATHERED_OUTCOMES) this.#start();
      else this.#gathering ??= systemClock.after(GATHER_TIME, () => this.#start());
    });
  }

  /** Stores the queued outcomes at once; resolves when they are stored. */
  async flush(): Promise<void> {
    this.#start();
    await this.#recording;
  }

  /** Drops a URL's refused outcomes: its deliveries restart from its cursor, or the URL was removed. */
  forget(urlId: number): void {
    for (const refused of this.#refused.get(urlId) ?? []) refused.done('set-aside');
    if (this.#refused.delete(urlId)) this.#report(urlId, 'ended', '');
  }

  /** From now on outcomes are stored at once, and nothing waits for a store that fails. */
  stop(): void {
    this.#isStopping = true;
    for (const refusedOfUrl of this.#refused.values()) for (const { done } of refusedOfUrl) done('set-aside');
  }

  #start(): void {
    this.#gathering?.cancel();
    this.#gathering = undefined;
    this.#recording ??= this.#recordAll().finally(() => {
      this.#recording = undefined;
    });
  }

  async #recordAll(): Promise<void> {
    // Outcomes of this turn of the event loop join the commit.
    await Promise.resolve();
    // Outcomes that arrive during a commit go into the next commit.
    while (this.#queue.length > 0 || this.#dueRefused.length > 0) {
      for (const refused of this.#dueRefused.splice(0)) await this.#tryAgain(refused);
      const batch = this.#queue;
      if (batch.length === 0) continue;
      this.#queue = [];
      const unwritten = await this.#write(batch);
      if (unwritten.length === 0) continue;
      this.#queue = [...unwritten, ...this.#queue];
      await new Promise<void>((resolve) => this.#parts.deliveryClock.after(STORE_RETRY_DELAY, resolve));
    }
  }

  /** Writes a batch. Returns the outcomes that are not written because the store can't write now. */
  async #write(batch: readonly Queued[]): Promise<readonly Queued[]> {
    // After giving up, nothing more is written, but reported as stored (see below): a cursor that is stored without the
    // outcomes before it would lose an event.
    const failure = this.#hasGivenUp ? undefined : await this.#storeBatch(batch);
    if (failure === undefined) {
      for (const { done } of batch) done('stored');
      return [];
    }
    if (failureKind(failure) === 'other') {
      if (batch.length === 1) {
        if (await this.#canWrite()) return this.#refuse(batch[0] as Queued);
      } else return await this.#writeHalves(batch);
    }
    if (!this.#isStopping) return batch;
    // A stop does not wait for a failing store: events whose outcomes are not stored are sent again under their ids.
    // They are reported as stored, since a worker that has stopped need not set them aside.
    this.#hasGivenUp = true;
    for (const { done } of batch) done('stored');
    return [];
  }

  /**
   * Writes the halves of a batch that the store refuses, to find the outcome at fault. Returns what `#write` returns.
   */
  async #writeHalves(batch: readonly Queued[]): Promise<readonly Queued[]> {
    const middle = batch.length >> 1;
    const unwritten = await this.#write(batch.slice(0, middle));
    if (unwritten.length > 0) return [...unwritten, ...batch.slice(middle)];
    return await this.#write(batch.slice(middle));
  }

  /** Stores a batch in one commit. Returns the error if the store fails. */
  async #storeBatch(batch: readonly Queued[]): Promise<Error | undefined> {
    const { store, events, runClock } = this.#parts;
    try {
      const { refusedUrlIds } = await store.recordProgress(
        batch.map(({ progress }) => this.#withPinnedCursor(progress)),
      );
      for (const { progress, by } of batch) if (refusedUrlIds.includes(progress.urlId)) by.lost();
      return undefined;
    } catch (error) {
      const failure = error as Error;
      events.emit('store-failed', { atMs: runClock.now(), why: failure.message });
      return failure;
    }
  }

  async #canWrite(): Promise<boolean> {
    try {
      await this.#parts.store.writeMetadata(WRITE_CHECK_KEY, '');
      return true;
    } catch {
      return false;
    }
  }

  /** The progress with its cursor moved before every event of the URL whose outcome is refused. */
  #withPinnedCursor(progress: DeliveryProgress): DeliveryProgress {
    const { urlId, cursor } = progress;
    const refused = this.#refused.size === 0 ? undefined : this.#refused.get(urlId);
    if (refused === undefined || cursor === undefined) return progress;
    let pinned = cursor;
    for (const each of refused) for (const id of uplinkIdsOf(each.progress)) pinned = movedBefore(pinned, id);
    return { ...progress, cursor: pinned };
  }

  /**
   * Takes a refused outcome out of the queue. The changes to the URL in its progress are stored without the outcome.
   */
  #refuse({ progress, by, done }: Queued): readonly Queued[] {
    const { urlId, attempts, blocked = [], damaged = [], cursor: _cursor, ...urlChanges } = progress;
    if (uplinkIdsOf(progress).length === 0) {
      // There is no event's outcome, only a change to the URL: the URL was removed, or the store refuses its row. The
      // next attempt at the URL stores the change again.
      done('stored');
      return [];
    }
    const refused: Refused = { progress: { urlId, attempts, blocked, damaged }, by, done, tries: 1 };
    const refusedOfUrl = this.#refused.get(urlId) ?? new Set();
    this.#refused.set(urlId, refusedOfUrl.add(refused));
    if (Object.keys(urlChanges).length > 0)
      this.#queue.unshift({
        progress: { urlId, attempts: [], ...urlChanges },
        by: NO_WORKER,
        done: () => undefined,
      });
    this.#scheduleRetry(refused);
    return [];
  }

  #scheduleRetry(refused: Refused): void {
    if (this.#isStopping) {
      refused.done('set-aside');
      return;
    }
    const wait = refused.tries < TRIES_BEFORE_SET_ASIDE ? STORE_RETRY_DELAY : SET_ASIDE_RETRY_INTERVAL;
    this.#parts.deliveryClock.after(wait, () => {
      this.#dueRefused.push(refused);
      if (!this.#isStopping) this.#start();
    });
  }

  async #tryAgain(refused: Refused): Promise<void> {
    const { urlId } = refused.progress;
    const refusedOfUrl = this.#refused.get(urlId);
    // The outcome was forgotten meanwhile.
    if (refusedOfUrl?.has(refused) !== true) return;
    const failure = await this.#storeBatch([refused]);
    if (failure === undefined) {
      refusedOfUrl.delete(refused);
      if (refusedOfUrl.size === 0) this.#refused.delete(urlId);
      if (refused.tries >= TRIES_BEFORE_SET_ASIDE) refused.by.storedAfterAll(refused.progress);
      refused.done('stored');
      if (refusedOfUrl.size === 0) this.#report(urlId, 'ended', '');
      return;
    }
    // A failure of the whole store is not the outcome's fault.
    if (failureKind(failure) === 'other' && (await this.#canWrite())) this.#countFailedTry(refused, failure);
    this.#scheduleRetry(refused);
  }

  #countFailedTry(refused: Refused, { message }: Error): void {
    refused.tries += 1;
    if (refused.tries !== TRIES_BEFORE_SET_ASIDE) return;
    refused.done('set-aside');
    const ids = uplinkIdsOf(refused.progress);
    this.#report(refused.progress.urlId, 'began', `uplink ${ids.join(', ')}: ${message}`);
  }

  #report(urlId: number, state: 'began' | 'ended', why: string): void {
    const { events, runClock } = this.#parts;
    events.emit('cannot-record', { atMs: runClock.now(), urlId, state, why });
  }
}

/** The ids of the events whose outcomes are in a progress. */
export function uplinkIdsOf({ attempts, blocked = [], damaged = [] }: DeliveryProgress): number[] {
  return [...[...attempts, ...blocked].map(({ uplinkId }) => uplinkId), ...damaged];
}

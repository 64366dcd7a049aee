/**
 * Stores the outcomes of attempts at all URLs: one commit for all that wait (group commit), repeated in order where the
 * store fails, so that no cursor passes an outcome that isn't stored.
 *
 * Where the store can write and yet refuses an outcome, the cause is the outcome itself. An outcome is
 *
 * - *queued*, until a commit has it: then it is *stored*;
 * - *refused*, once the commit was halved until only this outcome was left. It leaves the queue, and is tried by itself
 *   three times;
 * - *set aside* after that, or when the gateway stops: that is reported, and it is tried every 5 min while the gateway
 *   runs. The cursor of its URL stays before its event, so if it is never stored, the next start attempts the event
 *   again.
 */
import { type Clock, type Milliseconds, Minutes, Seconds, systemClock, type Timer } from '../../../proto/clock.js';
import type { GatewayEvents } from '../../events.js';
import { failureKind } from '../../store/contract/errors.js';
import type { DeliveryProgress, Store } from '../../store/contract/store.js';

/** How long an outcome waits for others to share its commit, and how many start the commit at once. */
const GATHER_FOR: Milliseconds = 20;
const GATHER_MOST = 512;
/** The wait before the store is asked again after it failed, or refused an outcome. */
const AFTER_STORE_FAILURE: Milliseconds = Seconds(1);
/** The tries of a refused outcome before it is set aside, and how often it is tried from then on. */
const TRIES = 3;
const RETRY_EVERY: Milliseconds = Minutes(5);
/** An empty entry that is written to find out whether the store can write at all. */
const PROOF_KEY = 'delivery-proof';

export interface ProgressRecorderParts {
  readonly store: Pick<Store, 'recordProgress' | 'writeMetadata'>;
  readonly events: GatewayEvents;
  readonly waits: Clock;
  /** The run's clock, for events. */
  readonly runClock: Clock;
}

/** What became of an outcome; see above. */
export type Recorded = 'stored' | 'set-aside';

/** Who has outcomes recorded. */
export interface Recording {
  /** An outcome that had been set aside is stored. */
  storedAfterAll(progress: DeliveryProgress): void;
}

interface Queued {
  readonly progress: DeliveryProgress;
  readonly by: Recording;
  readonly done: (recorded: Recorded) => void;
}

/** An outcome that the store refuses. `tries` counts the commits that had only this outcome. */
interface Refused extends Queued {
  tries: number;
}

const NOBODY: Recording = { storedAfterAll: () => undefined };

export class ProgressRecorder {
  readonly #parts: ProgressRecorderParts;
  #queue: Queued[] = [];
  /**
   * Refused outcomes and those set aside, by URL. They are few: a URL with many gets no more attempts (url-worker.ts).
   */
  readonly #refused = new Map<number, Set<Refused>>();
  /** Those that are to be tried next. */
  #dueRefused: Refused[] = [];
  #recording: Promise<void> | undefined;
  #gathering: Timer | undefined;
  #isStopping = false;
  /** The store failed during the stop: what is not stored by now is dropped. */
  #hasGivenUp = false;

  constructor(parts: ProgressRecorderParts) {
    this.#parts = parts;
  }

  /** Stores the progress soon. What is given first is stored first, but for what is refused. Never rejects. */
  record(progress: DeliveryProgress, by: Recording): Promise<Recorded> {
    return new Promise((done) => {
      this.#queue.push({ progress, by, done });
      if (this.#isStopping || this.#queue.length >= GATHER_MOST) this.#start();
      else this.#gathering ??= systemClock.after(GATHER_FOR, () => this.#start());
    });
  }

  /** Stores at once what is queued; resolves when it is stored. */
  async settled(): Promise<void> {
    this.#start();
    await this.#recording;
  }

  /** The URL restarts from its cursor, or is gone: its refused outcomes are dropped. */
  forget(urlId: number): void {
    for (const refused of this.#refused.get(urlId) ?? []) refused.done('set-aside');
    if (this.#refused.delete(urlId)) this.#report(urlId, 'ended', '');
  }

  /** From now on outcomes are stored at once, and nothing waits for a store that fails. */
  stop(): void {
    this.#isStopping = true;
    for (const ofUrl of this.#refused.values()) for (const { done } of ofUrl) done('set-aside');
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
    // Outcomes that come during a commit go into the next one.
    while (this.#queue.length > 0 || this.#dueRefused.length > 0) {
      for (const refused of this.#dueRefused.splice(0)) await this.#tryAgain(refused);
      const batch = this.#queue;
      if (batch.length === 0) continue;
      this.#queue = [];
      const left = await this.#write(batch);
      if (left.length === 0) continue;
      this.#queue = [...left, ...this.#queue];
      await new Promise<void>((resolve) => this.#parts.waits.after(AFTER_STORE_FAILURE, resolve));
    }
  }

  /** Returns what could not be written, since the store can't write now. */
  async #write(batch: readonly Queued[]): Promise<readonly Queued[]> {
    // A cursor stored without the outcomes before it would lose an event.
    const failure = this.#hasGivenUp ? undefined : await this.#failureOf(batch);
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
    // A stop does not wait for a store that fails: what isn't stored is delivered again, under its id.
    this.#hasGivenUp = true;
    for (const { done } of batch) done('stored');
    return [];
  }

  async #writeHalves(batch: readonly Queued[]): Promise<readonly Queued[]> {
    const middle = batch.length >> 1;
    const left = await this.#write(batch.slice(0, middle));
    if (left.length > 0) return [...left, ...batch.slice(middle)];
    return await this.#write(batch.slice(middle));
  }

  async #failureOf(batch: readonly Queued[]): Promise<Error | undefined> {
    const { store, events, runClock } = this.#parts;
    try {
      await store.recordProgress(batch.map(({ progress }) => this.#pinned(progress)));
      return undefined;
    } catch (error) {
      const failure = error as Error;
      events.emit('store-failed', { atMs: runClock.now(), why: failure.message });
      return failure;
    }
  }

  async #canWrite(): Promise<boolean> {
    try {
      await this.#parts.store.writeMetadata(PROOF_KEY, '');
      return true;
    } catch {
      return false;
    }
  }

  /** The progress with a cursor before every event of the URL whose outcome is refused. */
  #pinned(progress: DeliveryProgress): DeliveryProgress {
    const { urlId, cursor } = progress;
    const refused = this.#refused.size === 0 ? undefined : this.#refused.get(urlId);
    if (refused === undefined || cursor === undefined) return progress;
    let most = cursor;
    for (const each of refused) for (const id of uplinkIdsOf(each.progress)) most = Math.min(most, id - 1);
    return { ...progress, cursor: most };
  }

  /** Takes an outcome out of the queue. What its progress says about the URL itself is stored without it. */
  #refuse({ progress, by, done }: Queued): readonly Queued[] {
    const { urlId, attempts, blocked = [], damaged = [], cursor: _cursor, ...ofUrl } = progress;
    if (uplinkIdsOf(progress).length === 0) {
      // It has no event's outcome: the URL is gone, or its row is refused, and the next progress repeats it.
      done('stored');
      return [];
    }
    const refused: Refused = { progress: { urlId, attempts, blocked, damaged }, by, done, tries: 1 };
    const others = this.#refused.get(urlId) ?? new Set();
    this.#refused.set(urlId, others.add(refused));
    if (Object.keys(ofUrl).length > 0)
      this.#queue.unshift({ progress: { urlId, attempts: [], ...ofUrl }, by: NOBODY, done: () => undefined });
    this.#later(refused);
    return [];
  }

  #later(refused: Refused): void {
    if (this.#isStopping) {
      refused.done('set-aside');
      return;
    }
    const wait = refused.tries < TRIES ? AFTER_STORE_FAILURE : RETRY_EVERY;
    this.#parts.waits.after(wait, () => {
      this.#dueRefused.push(refused);
      if (!this.#isStopping) this.#start();
    });
  }

  async #tryAgain(refused: Refused): Promise<void> {
    const { urlId } = refused.progress;
    const others = this.#refused.get(urlId);
    // It was forgotten meanwhile.
    if (others?.has(refused) !== true) return;
    const failure = await this.#failureOf([refused]);
    if (failure === undefined) {
      others.delete(refused);
      if (others.size === 0) this.#refused.delete(urlId);
      if (refused.tries >= TRIES) refused.by.storedAfterAll(refused.progress);
      refused.done('stored');
      if (others.size === 0) this.#report(urlId, 'ended', '');
      return;
    }
    if (failureKind(failure) === 'other' && (await this.#canWrite())) this.#countFailedTry(refused, failure);
    this.#later(refused);
  }

  #countFailedTry(refused: Refused, { message }: Error): void {
    refused.tries += 1;
    if (refused.tries !== TRIES) return;
    refused.done('set-aside');
    const ids = uplinkIdsOf(refused.progress);
    this.#report(refused.progress.urlId, 'began', `uplink ${ids.join(', ')}: ${message}`);
  }

  #report(urlId: number, state: 'began' | 'ended', why: string): void {
    const { events, runClock } = this.#parts;
    events.emit('cannot-record', { atMs: runClock.now(), urlId, state, why });
  }
}

/** The events whose outcomes a progress has. */
export function uplinkIdsOf({ attempts, blocked = [], damaged = [] }: DeliveryProgress): number[] {
  return [...[...attempts, ...blocked].map(({ uplinkId }) => uplinkId), ...damaged];
}

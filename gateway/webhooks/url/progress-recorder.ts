/**
 * Makes durable what the workers of all URLs have to say: one commit for all outcomes that wait (group commit), tried
 * again where the store fails, in order, so that no cursor passes an outcome that isn't kept.
 *
 * Where the store as a whole can write and refuses one outcome, that one is refused for its own sake. It is found by
 * halving the commit, and taken out of the line: it is tried alone a few times and then set aside, reported, and tried
 * now and then as long as the gateway runs. Until it is kept, the cursor of its URL stays before its event, so the next
 * start attempts the event again should it never be.
 */
import { type Clock, type Milliseconds, Minutes, Seconds, systemClock, type Timer } from '../../../proto/clock.js';
import type { GatewayEvents } from '../../events.js';
import { failureKind } from '../../store/contract/errors.js';
import type { DeliveryProgress, Store } from '../../store/contract/store.js';

/** An outcome waits so long for others to share a commit with, or until so many do. */
const GATHER_FOR: Milliseconds = 20;
const GATHER_MOST = 512;
/** The wait before the store is asked again after it failed, or refused an outcome. */
const AFTER_STORE_FAILURE: Milliseconds = Seconds(1);
/** A refused outcome is tried so often before it is set aside, and then so seldom. */
const TRIES = 3;
const TRIED_EVERY: Milliseconds = Minutes(5);
/** Written, and empty: it shows whether the store can write anything. */
const PROOF_FACT = 'delivery-proof';

export interface ProgressRecorderParts {
  readonly store: Pick<Store, 'recordProgress' | 'writeMetadata'>;
  readonly events: GatewayEvents;
  readonly waits: Clock;
  /** The run's clock, for events. */
  readonly runClock: Clock;
}

/** It is on the disk; or the store refuses it for its own sake, and it is tried now and then. */
export type Recorded = 'kept' | 'set-aside';

/** Who has something recorded. */
export interface Recording {
  /** What had been set aside is on the disk. */
  keptAfterAll(progress: DeliveryProgress): void;
}

interface Waiting {
  readonly progress: DeliveryProgress;
  readonly by: Recording;
  readonly done: (recorded: Recorded) => void;
}

/** An outcome that the store refuses. */
interface Refused extends Waiting {
  tries: number;
}

const NOBODY: Recording = { keptAfterAll: () => undefined };

export class ProgressRecorder {
  readonly #parts: ProgressRecorderParts;
  #waiting: Waiting[] = [];
  /** By URL. A URL with many of them gets no more attempts (url-worker.ts), so they are few. */
  readonly #refused = new Map<number, Set<Refused>>();
  /** Those of them whose turn it is. */
  #again: Refused[] = [];
  #recording: Promise<void> | undefined;
  #gathering: Timer | undefined;
  #isStopping = false;
  #gaveUp = false;

  constructor(parts: ProgressRecorderParts) {
    this.#parts = parts;
  }

  /** Makes it durable, soon. What is given first is durable first, but for what is refused. It never rejects. */
  record(progress: DeliveryProgress, by: Recording): Promise<Recorded> {
    return new Promise((done) => {
      this.#waiting.push({ progress, by, done });
      if (this.#isStopping || this.#waiting.length >= GATHER_MOST) this.#start();
      else this.#gathering ??= systemClock.after(GATHER_FOR, () => this.#start());
    });
  }

  /** Resolves when all that waits is in the store, and need not wait for more to share its commit. */
  async settled(): Promise<void> {
    this.#start();
    await this.#recording;
  }

  /** The URL begins anew from its cursor, or is gone: what was refused of it is dropped. */
  forget(urlId: number): void {
    for (const refused of this.#refused.get(urlId) ?? []) refused.done('set-aside');
    if (this.#refused.delete(urlId)) this.#report(urlId, 'ended', '');
  }

  /** From now on nothing is gathered, and nobody waits for a store that fails. */
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
    // Outcomes that come in this turn of the loop join the commit.
    await Promise.resolve();
    // Those that come while it is under way have waited as long, and follow.
    while (this.#waiting.length > 0 || this.#again.length > 0) {
      for (const refused of this.#again.splice(0)) await this.#tryAgain(refused);
      const batch = this.#waiting;
      if (batch.length === 0) continue;
      this.#waiting = [];
      const left = await this.#write(batch);
      if (left.length === 0) continue;
      this.#waiting = [...left, ...this.#waiting];
      await new Promise<void>((resolve) => this.#parts.waits.after(AFTER_STORE_FAILURE, resolve));
    }
  }

  /** Returns what could not be written because the store can't write at the moment. */
  async #write(batch: readonly Waiting[]): Promise<readonly Waiting[]> {
    // A cursor that is kept after an outcome that isn't would lose an event.
    const failure = this.#gaveUp ? undefined : await this.#failureOf(batch);
    if (failure === undefined) {
      for (const { done } of batch) done('kept');
      return [];
    }
    if (failureKind(failure) === 'other') {
      if (batch.length === 1) {
        if (await this.#canWrite()) return this.#refuse(batch[0] as Waiting);
      } else return await this.#writeHalves(batch);
    }
    if (!this.#isStopping) return batch;
    // On the way out there is no waiting for a store that fails: what isn't kept is delivered again, under its id.
    this.#gaveUp = true;
    for (const { done } of batch) done('kept');
    return [];
  }

  async #writeHalves(batch: readonly Waiting[]): Promise<readonly Waiting[]> {
    const middle = batch.length >> 1;
    const left = await this.#write(batch.slice(0, middle));
    if (left.length > 0) return [...left, ...batch.slice(middle)];
    return await this.#write(batch.slice(middle));
  }

  async #failureOf(batch: readonly Waiting[]): Promise<Error | undefined> {
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
      await this.#parts.store.writeMetadata(PROOF_FACT, '');
      return true;
    } catch {
      return false;
    }
  }

  /** With a cursor that stays before every event of the URL whose outcome is refused. */
  #pinned(progress: DeliveryProgress): DeliveryProgress {
    const { urlId, cursor } = progress;
    const refused = this.#refused.size === 0 ? undefined : this.#refused.get(urlId);
    if (refused === undefined || cursor === undefined) return progress;
    let most = cursor;
    for (const each of refused) for (const id of uplinkIdsOf(each.progress)) most = Math.min(most, id - 1);
    return { ...progress, cursor: most };
  }

  /** Takes it out of the line. What it says of the URL itself goes on without it. */
  #refuse({ progress, by, done }: Waiting): readonly Waiting[] {
    const { urlId, attempts, blocked = [], damaged = [], cursor: _cursor, ...ofUrl } = progress;
    if (uplinkIdsOf(progress).length === 0) {
      // Nothing of an event: the URL is gone, or its row is refused, and what is said of it is said again.
      done('kept');
      return [];
    }
    const refused: Refused = { progress: { urlId, attempts, blocked, damaged }, by, done, tries: 1 };
    const others = this.#refused.get(urlId) ?? new Set();
    this.#refused.set(urlId, others.add(refused));
    if (Object.keys(ofUrl).length > 0)
      this.#waiting.unshift({ progress: { urlId, attempts: [], ...ofUrl }, by: NOBODY, done: () => undefined });
    this.#later(refused);
    return [];
  }

  #later(refused: Refused): void {
    if (this.#isStopping) {
      refused.done('set-aside');
      return;
    }
    const wait = refused.tries < TRIES ? AFTER_STORE_FAILURE : TRIED_EVERY;
    this.#parts.waits.after(wait, () => {
      this.#again.push(refused);
      if (!this.#isStopping) this.#start();
    });
  }

  async #tryAgain(refused: Refused): Promise<void> {
    const { urlId } = refused.progress;
    const others = this.#refused.get(urlId);
    // Forgotten meanwhile.
    if (others?.has(refused) !== true) return;
    const failure = await this.#failureOf([refused]);
    if (failure === undefined) {
      others.delete(refused);
      if (others.size === 0) this.#refused.delete(urlId);
      if (refused.tries >= TRIES) refused.by.keptAfterAll(refused.progress);
      refused.done('kept');
      if (others.size === 0) this.#report(urlId, 'ended', '');
      return;
    }
    if (failureKind(failure) === 'other' && (await this.#canWrite())) this.#triedInVain(refused, failure);
    this.#later(refused);
  }

  #triedInVain(refused: Refused, { message }: Error): void {
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

/** The events whose outcomes it has. */
export function uplinkIdsOf({ attempts, blocked = [], damaged = [] }: DeliveryProgress): number[] {
  return [...[...attempts, ...blocked].map(({ uplinkId }) => uplinkId), ...damaged];
}

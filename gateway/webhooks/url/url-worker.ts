/**
 * One webhook URL following the log of uplinks: it decides which event is attempted when.
 *
 * The worker reads the merchant's events behind the URL's cursor into a queue (event-queue.ts) and attempts them in
 * order. A lock's next event waits until the first attempt at the one before has ended, so that deliveries that succeed
 * arrive in each lock's order. An event whose attempt failed gets a row in the store and waits there for its retry; the
 * queue goes on without it. At an ordered URL the lock's later events wait as well (lock-order.ts). The stored cursor
 * is always before the oldest event without an outcome. So after a crash no event is left out, and an event whose
 * outcome was not stored yet is attempted again under the same id.
 *
 * The worker is in one of these modes:
 *
 * - *asleep*: there is nothing to start. A timer ends it, or whoever calls `wake`: new events, the end of an attempt,
 *   an operator.
 * - *working*: a pass starts as many due retries as may start, and then as many new events. The URL's availability
 *   (url-availability.ts) says how many; while it allows none, the queue and the cursor stay where they are, and no
 *   event needs a row. A store that fails ends the pass, and the next one starts a second later.
 * - *woken*: a pass is running and another one follows, since something has changed.
 * - *stopped*, for good: the gateway stops, or the URL was changed or disabled. Nothing more is started, and what is
 *   under way ends or is cut off. Another worker goes on from what is stored.
 */
import { setMaxListeners } from 'node:events';
import { Seconds, systemClock, type Timer } from '../../../proto/clock.js';
import { type NextPhases, nextPhase } from '../../phase.js';
import type { DeliveryProgress, DueDelivery, StoredUplink, WebhookUrl } from '../../store/contract/store.js';
import type { DeliveryThrottle } from '../delivery-throttle.js';
import type { UrlSecrets } from '../sending/delivery-sender.js';
import { type AttemptOwner, AttemptRunner, type AttemptRunnerParts, type UrlState } from './attempt-runner.js';
import { MOST_AT_ONCE } from './concurrency-limiter.js';
import { EventQueue } from './event-queue.js';
import { LockOrder } from './lock-order.js';
import { uplinkIdsOf } from './progress-recorder.js';
import { UrlAvailability } from './url-availability.js';
import { UrlRetries } from './url-retries.js';

/** The most events that are read ahead of their attempts. */
const MOST_AHEAD = 4096;
/** A URL may always read so many ahead, however many the other URLs have. */
const LEAST_AHEAD = 128;
/** The most deliveries that succeeded and are not stored yet: after a kill they are repeated under their ids. */
const MOST_UNRECORDED = 1024;
/** With so many outcomes that the store refuses, no attempt is made: each would be repeated after the next start. */
const MOST_SET_ASIDE = 100;
/** The wait before the store is asked again after a failed read. */
const AFTER_STORE_FAILURE = Seconds(1);

type Mode = 'asleep' | 'working' | 'woken' | 'stopped';

const NEXT_MODES: NextPhases<Mode> = {
  asleep: ['working', 'stopped'],
  working: ['asleep', 'woken', 'stopped'],
  woken: ['working', 'stopped'],
  stopped: [],
};

/** What a worker needs of the parts around it. */
export interface WorkerParts extends AttemptRunnerParts {
  /** Whether all URLs together have read few enough events for one to read more than {@link LEAST_AHEAD}. */
  readonly mayReadAhead: () => boolean;
  /** Of all URLs together. */
  readonly throttle: DeliveryThrottle;
}

export class UrlWorker implements AttemptOwner {
  readonly #url: WebhookUrl;
  readonly #parts: WorkerParts;
  readonly #state: UrlState;
  readonly #runner: AttemptRunner;
  readonly #abort = new AbortController();
  /** Locks with a first attempt under way; at an ordered URL, with any attempt under way. */
  readonly #busyLocks = new Set<number>();
  /** Attempts that run now, with the writes of their outcomes, but for the writes counted in `#unrecorded`. */
  #underWay = 0;
  /** First attempts that succeeded and are being stored. */
  #unrecorded = 0;
  /** Everything that `stop` waits for: passes, attempts and writes. */
  #jobs = 0;
  #mode: Mode = 'asleep';
  #timer: Timer | undefined;
  #onIdle: (() => void)[] = [];

  constructor(url: WebhookUrl, secrets: UrlSecrets, parts: WorkerParts) {
    this.#url = url;
    this.#parts = parts;
    this.#state = {
      availability: new UrlAvailability(url, parts.waits.now()),
      queue: new EventQueue(url, parts.store),
      retries: new UrlRetries(url.id, parts.store),
      order: url.ordered ? new LockOrder(url.id, parts.store.webhooks) : undefined,
    };
    this.#runner = new AttemptRunner({ url, secrets, parts, state: this.#state, signal: this.#abort.signal }, this);
    // Each attempt under way adds a listener, and Node reports more than ten as a leak.
    setMaxListeners(MOST_AT_ONCE, this.#abort.signal);
  }

  get merchantId(): number {
    return this.#url.merchantId;
  }

  /** When the open circuit lets one attempt through; undefined while the circuit is closed. */
  get probeAtMs(): number | undefined {
    return this.isStopped ? undefined : this.#state.availability.probeAtMs;
  }

  /** Until when the receiver asked for no attempts (Retry-After); undefined where it did not. */
  get heldUntilMs(): number | undefined {
    return this.isStopped ? undefined : this.#state.availability.heldUntilMs(this.#parts.waits.now());
  }

  /** Events that were read and wait for their first attempt. */
  get ahead(): number {
    return this.#state.queue.length;
  }

  get isStopped(): boolean {
    return this.#mode === 'stopped';
  }

  get underWay(): number {
    return this.#underWay;
  }

  /** Deliveries were made due by somebody else. */
  reconsider(): void {
    const { order, retries } = this.#state;
    order?.markStale();
    retries.changed();
    this.wake();
  }

  /** Looks for work: called for new events, when a retry falls due, and when an attempt has ended. */
  wake(): void {
    if (this.#mode === 'working') this.#enter('woken');
    if (this.#mode !== 'asleep') return;
    this.#enter('working');
    this.#startPass();
  }

  /** A lock's events were erased from the log: those that were read and not attempted yet are dropped. */
  forget(deviceId: number): void {
    const { queue, retries } = this.#state;
    retries.forget();
    queue.forget(deviceId);
    this.wake();
  }

  /** An outcome that had been set aside is stored: where the event has more to come, it goes on. */
  storedAfterAll(progress: DeliveryProgress): void {
    this.#state.retries.stored(uplinkIdsOf(progress));
    this.reconsider();
  }

  /** Starts nothing new, gives what is under way up to `grace` ms to end, then cuts it off. May be called again. */
  async stop(grace: number): Promise<void> {
    this.halt();
    if (this.#jobs === 0) return;
    const idle = new Promise<void>((resolve) => this.#onIdle.push(resolve));
    const cut = systemClock.after(grace, () => this.#abort.abort());
    await idle;
    cut.cancel();
  }

  halt(): void {
    if (!this.isStopped) this.#enter('stopped');
    this.#timer?.cancel();
    this.#parts.stalled.resume(this.#url.id);
  }

  recordLater(recorded: Promise<void>): void {
    this.#unrecorded += 1;
    this.#track(recorded, () => {
      this.#unrecorded -= 1;
      if (this.#unrecorded === 0 || this.#unrecorded === MOST_UNRECORDED - 1) this.wake();
    });
  }

  #enter(mode: Mode): void {
    this.#mode = nextPhase('the worker of a webhook URL', NEXT_MODES, this.#mode, mode);
  }

  #startPass(): void {
    this.#track(this.#work(), () => {
      if (this.#mode === 'woken') {
        this.#enter('working');
        this.#startPass();
      } else if (this.#mode === 'working') this.#enter('asleep');
    });
  }

  /** Work that `stop` waits for; `ended` is called when it has ended, well or not. */
  #track(job: Promise<void>, ended: () => void): void {
    this.#jobs += 1;
    void job
      .catch((error: Error) => this.#reportFailure(error))
      .finally(() => {
        this.#jobs -= 1;
        ended();
        if (this.isStopped && this.#jobs === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
      });
  }

  #reportFailure(error: Error): void {
    this.#parts.events.emit('store-failed', { atMs: this.#parts.runClock.now(), why: error.message });
  }

  async #work(): Promise<void> {
    const { order, retries } = this.#state;
    const nowMs = this.#parts.waits.now();
    try {
      await retries.shorten(nowMs, this.heldUntilMs);
      await order?.load();
      await this.#startRetries(nowMs);
      await this.#startNew();
      await this.#sleepUntilDue(nowMs);
    } catch (error) {
      this.#reportFailure(error as Error);
      this.#sleep(AFTER_STORE_FAILURE);
    }
  }

  /** How many attempts may start now. */
  #room(): number {
    const { availability, retries } = this.#state;
    if (this.#unrecorded >= MOST_UNRECORDED || retries.setAsideCount >= MOST_SET_ASIDE) return 0;
    const room = availability.room(this.#parts.waits.now(), this.#underWay);
    return room <= 0 ? 0 : Math.min(room, this.#parts.throttle.room(this));
  }

  async #startRetries(nowMs: number): Promise<void> {
    const { availability, retries, order } = this.#state;
    const free = Math.min(availability.forRetries - retries.underWay, this.#room());
    for (const delivery of await retries.read(nowMs, free, this.#busyLocks.size)) {
      if (this.isStopped || retries.underWay >= availability.forRetries || this.#room() <= 0) return;
      if (order === undefined || !this.#isLockBusy(delivery.uplink)) this.#startRetry(delivery);
    }
  }

  #isLockBusy({ deviceId }: StoredUplink): boolean {
    return this.#busyLocks.has(deviceId) || this.#state.retries.isLockSetAside(deviceId);
  }

  /**
   * Starts events while there is room. Where none of those that were read may start, it reads on: one lock with many
   * events that wait for each other must not hold up other locks.
   */
  async #startNew(): Promise<void> {
    do this.#startFirst();
    while (!this.isStopped && this.#mayReadOn() && (await this.#state.queue.readOn()));
  }

  #mayReadOn(): boolean {
    const { queue, availability } = this.#state;
    const { length } = queue;
    // While the URL takes nothing, it still has to be known whether anything waits for it.
    if (availability.opensAtMs(this.#parts.waits.now()) !== undefined) return length === 0;
    if (this.#room() <= 0) return false;
    return length < LEAST_AHEAD || (length < MOST_AHEAD && this.#parts.mayReadAhead());
  }

  /** Starts what may start, in order: an event of a busy lock waits, and events of other locks overtake it. */
  #startFirst(): void {
    const { queue, order } = this.#state;
    const blocked: StoredUplink[] = [];
    const passed = new Set<number>();
    queue.sift((event) => {
      const { deviceId } = event;
      if (order?.isBlocked(deviceId)) blocked.push(event);
      else if (this.isStopped || this.#isLockBusy(event) || passed.has(deviceId) || this.#room() <= 0) {
        passed.add(deviceId);
        return true;
      } else this.#startEvent(event);
      return false;
    });
    if (blocked.length > 0) this.#storeBlocked(blocked);
  }

  #startEvent(event: StoredUplink): void {
    this.#parts.throttle.begin(this);
    this.#state.queue.started(event);
    this.#busyLocks.add(event.deviceId);
    this.#run(this.#runner.run({ event, number: 1, attemptsBefore: 0, hasRow: false }), () =>
      this.#busyLocks.delete(event.deviceId),
    );
  }

  #startRetry({ uplink: event, attempts, attemptsBefore }: DueDelivery): void {
    const { order, retries } = this.#state;
    this.#parts.throttle.begin(this);
    retries.begin(event.id);
    if (order !== undefined) this.#busyLocks.add(event.deviceId);
    this.#run(this.#runner.run({ event, number: attempts + 1, attemptsBefore, hasRow: true }), () => {
      retries.end(event.id);
      if (order !== undefined) this.#busyLocks.delete(event.deviceId);
    });
  }

  /** Events of blocked locks get rows, so that the queue goes on without them. */
  #storeBlocked(events: readonly StoredUplink[]): void {
    this.#run(this.#runner.storeBlocked(events), () => undefined);
  }

  #run(work: Promise<void>, ended: () => void): void {
    this.#underWay += 1;
    this.#track(work, () => {
      this.#underWay -= 1;
      ended();
      this.wake();
    });
  }

  /** `workedAtMs`: what was due then was started, or waits for the end of something that will wake the worker. */
  async #sleepUntilDue(workedAtMs: number): Promise<void> {
    const { waits } = this.#parts;
    const { availability, queue, retries } = this.#state;
    const opensAtMs = availability.opensAtMs(waits.now());
    if (opensAtMs !== undefined) {
      const dueAtMs = queue.length > 0 ? opensAtMs : await retries.nextAtMs();
      // Where nothing waits, whatever arrives wakes the worker.
      if (dueAtMs !== null) this.#sleep(Math.max(dueAtMs, opensAtMs) - waits.now());
      return;
    }
    // No more may start before an attempt ends or the throttle allows it, and either wakes the worker.
    if (retries.underWay >= availability.forRetries || this.#room() <= 0) return;
    const dueAtMs = await retries.nextAtMs();
    if (dueAtMs !== null && (dueAtMs > workedAtMs || this.#underWay === 0)) this.#sleep(dueAtMs - waits.now());
  }

  #sleep(delay: number): void {
    this.#timer?.cancel();
    if (!this.isStopped) this.#timer = this.#parts.waits.after(delay, () => this.wake());
  }
}

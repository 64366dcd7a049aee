/**
 * The worker of one webhook URL: follows the store's log of uplinks and decides which event (stored ping) is attempted
 * when. It makes no attempt itself: attempt-runner.ts does.
 *
 * The worker reads the merchant's events after the URL's cursor into a queue (event-queue.ts) and attempts them in
 * order. A lock's next event waits until the first attempt at the lock's previous event has ended, so that successful
 * deliveries arrive in each lock's order. An event whose attempt failed gets a row in the store's table of deliveries
 * and waits there for its retry; the queue moves on without it. At an ordered URL the lock's later events wait as well
 * (lock-order.ts). The stored cursor is the position before the oldest events without an outcome. So a crash loses no
 * event, and an event whose outcome was not stored is attempted again under the same id.
 *
 * The worker is in one of these modes:
 *
 * - *asleep*: there is nothing to start. A timer or a call of `wake` ends this mode; new events, finished attempts and
 *   operators cause such calls.
 * - *working*: a pass runs. It starts as many due retries as may start, and then as many new events. The URL's
 *   availability (url-availability.ts) sets the number; while it is zero, queue and cursor do not move, and no event
 *   needs a row. If the store fails, the pass ends, and the next one starts a second later.
 * - *woken*: a pass runs, and another one follows, since something has changed.
 * - *stopped*, for good: the gateway stops, or the URL was changed or disabled. Nothing more is started; running
 *   attempts finish or are aborted. Another worker continues from the stored state.
 *
 * Times are by the delivery clock (delivery-clock.ts). The clock of the gateway's run only stamps its events, and the
 * system clock measures how long a stop may take.
 */
import { setMaxListeners } from 'node:events';
import { Seconds, systemClock, type Timer } from '../../../proto/clock.js';
import { type NextPhases, nextPhase } from '../../phase.js';
import type { StoredUplink } from '../../store/contract/log/stored-uplink.js';
import type { DeliveryProgress, DueDelivery } from '../../store/contract/webhooks/delivery.js';
import type { WebhookUrl } from '../../store/contract/webhooks/webhook-url.js';
import type { DeliveryThrottle } from '../delivery-throttle.js';
import type { UrlSecrets } from '../sending/delivery-sender.js';
import { type AttemptOwner, AttemptRunner, type AttemptRunnerParts, type UrlState } from './attempt-runner.js';
import { MAX_CONCURRENT_ATTEMPTS } from './concurrency-limiter.js';
import { EventQueue } from './event-queue.js';
import { LockOrder } from './lock-order.js';
import { uplinkIdsOf } from './progress-recorder.js';
import { UrlAvailability } from './url-availability.js';
import { UrlRetries } from './url-retries.js';

/** Maximum number of events that are read ahead of their attempts. */
const MAX_READ_AHEAD_EVENTS = 4096;
/** A URL may always read this many events ahead, however many the other URLs have read. */
const MIN_READ_AHEAD_EVENTS = 128;
/** Maximum number of successful deliveries that are not stored yet. After a crash they are repeated under their ids. */
const MAX_UNRECORDED_DELIVERIES = 1024;
/**
 * At this number of events set aside, since the store refuses their outcomes (progress-recorder.ts), no attempt is
 * made: each such event is sent again after the next start.
 */
const MAX_SET_ASIDE_EVENTS = 100;
/** The wait before the next pass after a failure of the store. */
const STORE_RETRY_DELAY = Seconds(1);

type Mode = 'asleep' | 'working' | 'woken' | 'stopped';

const NEXT_MODES: NextPhases<Mode> = {
  asleep: ['working', 'stopped'],
  working: ['asleep', 'woken', 'stopped'],
  woken: ['working', 'stopped'],
  stopped: [],
};

/** What a worker uses from the rest of the gateway. */
export interface WorkerParts extends AttemptRunnerParts {
  /** Whether all URLs together have read so few events that a URL may read more than {@link MIN_READ_AHEAD_EVENTS}. */
  readonly mayReadAhead: () => boolean;
  /** Called when the worker has lost its URL: another gateway owns it, or its deliveries were changed. */
  readonly onLost: (urlId: number) => void;
  /** The throttle that all URLs share. */
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
  /**
   * Running attempts with the writes of their outcomes, and writes of rows for blocked events; not the writes that
   * `#unrecorded` counts.
   */
  #running = 0;
  /** Successful first attempts whose outcomes are being stored. */
  #unrecorded = 0;
  /** Everything that `stop` waits for: passes, attempts and writes. */
  #jobs = 0;
  #mode: Mode = 'asleep';
  #timer: Timer | undefined;
  /** Whether an attempt could not start in this pass because the URL was held, stalled, probed or at its rate. */
  #wasUnavailable = false;
  #onIdle: (() => void)[] = [];

  constructor(url: WebhookUrl, secrets: UrlSecrets, parts: WorkerParts) {
    this.#url = url;
    this.#parts = parts;
    this.#state = {
      availability: new UrlAvailability(url, parts.deliveryClock.now()),
      queue: new EventQueue(url, parts.store),
      retries: new UrlRetries(url.id, parts.store),
      order: url.ordered ? new LockOrder(url.id, parts.store.webhooks) : undefined,
    };
    this.#runner = new AttemptRunner({ url, secrets, parts, state: this.#state, signal: this.#abort.signal }, this);
    // Each attempt under way adds a listener, and Node reports more than ten as a leak.
    setMaxListeners(MAX_CONCURRENT_ATTEMPTS, this.#abort.signal);
  }

  get merchantId(): number {
    return this.#url.merchantId;
  }

  /** When the open circuit lets one attempt through; undefined while the circuit is closed. */
  get probeAtMs(): number | undefined {
    return this.isStopped ? undefined : this.#state.availability.probeAtMs;
  }

  /** Until when the receiver asked for no attempts (Retry-After); undefined if it asked for none. */
  get heldUntilMs(): number | undefined {
    return this.isStopped ? undefined : this.#state.availability.heldUntilMs(this.#parts.deliveryClock.now());
  }

  /** The number of events that were read and wait for their first attempt. */
  get readAheadCount(): number {
    return this.#state.queue.length;
  }

  get isStopped(): boolean {
    return this.#mode === 'stopped';
  }

  get underWay(): number {
    return this.#running;
  }

  /** Must be called after an operator, not this worker, made deliveries due. */
  recheckDue(): void {
    const { order, retries } = this.#state;
    order?.markStale();
    retries.changed();
    this.wake();
  }

  /** Must be called after each commit that may have stored events of the merchant, before {@link wake}. */
  expectEvents(): void {
    this.#state.queue.expectMore();
  }

  /** Looks for work: called for new events, when a retry falls due, and when an attempt has ended. */
  wake(): void {
    if (this.#mode === 'working') this.#enter('woken');
    if (this.#mode !== 'asleep') return;
    this.#enter('working');
    this.#startPass();
  }

  /** Must be called after a lock's events were erased from the log: drops those that were read but not attempted. */
  forgetLock(deviceId: number): void {
    const { queue, retries } = this.#state;
    retries.forget();
    queue.forgetLock(deviceId);
    this.wake();
  }

  /** Its progress was not stored, since the URL is no longer this worker's. Another worker continues from the store. */
  lost(): void {
    if (this.isStopped) return;
    this.stopStarting();
    this.#parts.onLost(this.#url.id);
  }

  /** Called when an outcome that was set aside has been stored: further attempts at its event may follow. */
  storedAfterAll(progress: DeliveryProgress): void {
    this.#state.retries.stored(uplinkIdsOf(progress));
    this.recheckDue();
  }

  /** Starts nothing new, gives running attempts up to `grace` ms to finish, then aborts them. May be called again. */
  async stop(grace: number): Promise<void> {
    this.stopStarting();
    if (this.#jobs === 0) return;
    const idle = new Promise<void>((resolve) => this.#onIdle.push(resolve));
    const abortTimer = systemClock.after(grace, () => this.#abort.abort());
    await idle;
    abortTimer.cancel();
  }

  /** Starts nothing new. Running attempts continue. */
  stopStarting(): void {
    if (!this.isStopped) this.#enter('stopped');
    this.#timer?.cancel();
    // Nothing more is to be sent to the URL, so it no longer counts as stalled.
    this.#parts.stalled.resume(this.#url.id);
  }

  /** Counts a delivery whose outcome is still being stored. Only `stop` waits for `recorded`. */
  recordLater(recorded: Promise<void>): void {
    this.#unrecorded += 1;
    this.#track(recorded, () => {
      this.#unrecorded -= 1;
      // Below the limit, attempts may start again. Once all are stored, another pass looks for what that has changed.
      if (this.#unrecorded === 0 || this.#unrecorded === MAX_UNRECORDED_DELIVERIES - 1) this.wake();
    });
  }

  #enter(mode: Mode): void {
    this.#mode = nextPhase('the worker of a webhook URL', NEXT_MODES, this.#mode, mode);
  }

  #startPass(): void {
    this.#track(this.#runPass(), () => {
      if (this.#mode === 'woken') {
        this.#enter('working');
        this.#startPass();
      } else if (this.#mode === 'working') this.#enter('asleep');
    });
  }

  /** Makes `stop` wait for the job. Calls `ended` when the job has succeeded or failed. */
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

  async #runPass(): Promise<void> {
    const { order, retries } = this.#state;
    const nowMs = this.#parts.deliveryClock.now();
    this.#wasUnavailable = false;
    try {
      // In the first pass only: waits may be stored that are too long, since the machine's clock was set back.
      await retries.shortenWaits(nowMs, this.heldUntilMs);
      await order?.load();
      await this.#startRetries(nowMs);
      await this.#startNew();
      this.#recordSkipped();
      await this.#sleepUntilDue(nowMs);
    } catch (error) {
      this.#reportFailure(error as Error);
      this.#sleep(STORE_RETRY_DELAY);
    }
  }

  /** How many attempts may start now. */
  #freeAttempts(): number {
    const { availability, retries } = this.#state;
    if (this.#unrecorded >= MAX_UNRECORDED_DELIVERIES || retries.setAsideCount >= MAX_SET_ASIDE_EVENTS) return 0;
    const nowMs = this.#parts.deliveryClock.now();
    const free = availability.freeAttempts(nowMs, this.#running);
    if (free > 0) return Math.min(free, this.#parts.throttle.freeAttempts(this));
    if (availability.availableAtMs(nowMs) !== undefined) this.#wasUnavailable = true;
    return 0;
  }

  /** Starts as many due retries as may start. At an ordered URL, skips those of locks with an attempt under way. */
  async #startRetries(nowMs: number): Promise<void> {
    const { availability, retries, order } = this.#state;
    const free = Math.min(availability.retryLimit - retries.underWay, this.#freeAttempts());
    // At an ordered URL, the store returns at most one retry of each lock.
    const maxSkipped = this.#busyLocks.size;
    for (const delivery of await retries.read(nowMs, free, maxSkipped)) {
      if (this.isStopped || retries.underWay >= availability.retryLimit || this.#freeAttempts() <= 0) return;
      if (order === undefined || !this.#isLockBusy(delivery.uplink)) this.#startRetry(delivery);
    }
  }

  #isLockBusy({ deviceId }: StoredUplink): boolean {
    return this.#busyLocks.has(deviceId) || this.#state.retries.isLockSetAside(deviceId);
  }

  /**
   * Starts new events while attempts may start. If none of the events in the queue may start, it reads more: one lock
   * with many waiting events must not delay other locks.
   */
  async #startNew(): Promise<void> {
    const { queue } = this.#state;
    this.#startQueued();
    while (!this.isStopped && queue.mayHaveMore && this.#mayReadMore()) {
      await queue.readMore();
      this.#startQueued();
    }
  }

  /** Stores the cursor after events that the URL's filter leaves out, which have no outcome of their own. */
  #recordSkipped(): void {
    const { queue } = this.#state;
    if (this.isStopped || !queue.takeSkipped()) return;
    const recorded = this.#parts.record({ urlId: this.#url.id, attempts: [], cursor: queue.cursor }, this);
    this.#track(
      recorded.then(() => undefined),
      () => undefined,
    );
  }

  #mayReadMore(): boolean {
    const { queue, availability } = this.#state;
    const { length } = queue;
    // While the URL is not available, the worker only needs to know whether any event waits: then a timer wakes it.
    if (availability.availableAtMs(this.#parts.deliveryClock.now()) !== undefined) return length === 0;
    if (this.#freeAttempts() <= 0) return false;
    return length < MIN_READ_AHEAD_EVENTS || (length < MAX_READ_AHEAD_EVENTS && this.#parts.mayReadAhead());
  }

  /** Starts the events that may start, in order. Events of other locks overtake an event of a busy lock. */
  #startQueued(): void {
    const { queue, order } = this.#state;
    const blocked: StoredUplink[] = [];
    /** Locks with an event that stays in the queue: their later events stay too. */
    const waitingLocks = new Set<number>();
    queue.keepWaiting((event) => {
      const { deviceId } = event;
      if (!this.isStopped && order?.isBlocked(deviceId)) blocked.push(event);
      else if (this.isStopped || this.#isLockBusy(event) || waitingLocks.has(deviceId) || this.#freeAttempts() <= 0) {
        waitingLocks.add(deviceId);
        return true;
      } else this.#startEvent(event);
      return false;
    });
    if (blocked.length > 0) this.#storeBlocked(blocked);
  }

  #startEvent(event: StoredUplink): void {
    this.#parts.throttle.attemptStarted(this);
    this.#state.availability.attemptStarted(this.#parts.deliveryClock.now());
    this.#state.queue.started(event);
    this.#busyLocks.add(event.deviceId);
    this.#run(this.#runner.run({ event, number: 1, attemptsBefore: 0, hasRow: false }), () =>
      this.#busyLocks.delete(event.deviceId),
    );
  }

  /** `attempts` are all that were made; the schedule of retries does not count the first `attemptsBefore` of them. */
  #startRetry({ uplink: event, attempts, attemptsBefore }: DueDelivery): void {
    const { order, retries } = this.#state;
    this.#parts.throttle.attemptStarted(this);
    this.#state.availability.attemptStarted(this.#parts.deliveryClock.now());
    retries.started(event.id);
    if (order !== undefined) this.#busyLocks.add(event.deviceId);
    this.#run(this.#runner.run({ event, number: attempts + 1, attemptsBefore, hasRow: true }), () => {
      retries.ended(event.id);
      if (order !== undefined) this.#busyLocks.delete(event.deviceId);
    });
  }

  /** Stores delivery rows for events of blocked locks, so that the queue moves on without them. */
  #storeBlocked(events: readonly StoredUplink[]): void {
    this.#run(this.#runner.storeBlocked(events), () => undefined);
  }

  #run(work: Promise<void>, ended: () => void): void {
    this.#running += 1;
    this.#track(work, () => {
      this.#running -= 1;
      ended();
      this.wake();
    });
  }

  /**
   * Sets the timer for the next pass. Everything due at `workedAtMs` was started, or waits for something whose end
   * wakes the worker.
   */
  async #sleepUntilDue(workedAtMs: number): Promise<void> {
    const { deliveryClock } = this.#parts;
    const { availability, queue, retries } = this.#state;
    const availableAtMs = availability.availableAtMs(deliveryClock.now());
    if (availableAtMs !== undefined) {
      const dueAtMs = queue.length > 0 ? availableAtMs : await retries.nextAtMs();
      // If nothing waits, the next event to arrive wakes the worker.
      if (dueAtMs !== null) this.#sleep(Math.max(dueAtMs, availableAtMs) - deliveryClock.now());
      return;
    }
    // The URL became available during the pass, after an attempt could not start.
    if (this.#wasUnavailable) return this.wake();
    // Nothing more may start before an attempt ends or the throttle grants attempts; both wake the worker.
    if (retries.underWay >= availability.retryLimit || this.#freeAttempts() <= 0) return;
    const dueAtMs = await retries.nextAtMs();
    if (dueAtMs !== null && (dueAtMs > workedAtMs || this.#running === 0)) this.#sleep(dueAtMs - deliveryClock.now());
  }

  #sleep(delay: number): void {
    this.#timer?.cancel();
    if (!this.isStopped) this.#timer = this.#parts.deliveryClock.after(delay, () => this.wake());
  }
}

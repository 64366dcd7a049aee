/**
 * One webhook URL following the log.
 *
 * The worker reads the merchant's events behind its cursor into a line (event-line.ts) and attempts them in order: a
 * lock's next event is not attempted before the first attempt at the one before has ended, so what goes well arrives in
 * order, lock by lock. What fails gets a row and waits for its retry; the line goes on without it, but at an ordered
 * URL, where the lock's later events wait too (lock-order.ts). The cursor that is kept stands before the oldest event
 * without an outcome, so after a crash nothing is left out, and what was attempted but not yet noted is attempted again
 * under the same id.
 *
 * Its life: it *works* when it is woken, by new events, by a timer, by the end of an attempt, by an operator. It starts
 * as many retries that are due, and then as many new events, as may start, and *sleeps* until something more may. How
 * many that is says the URL's gate (url-gate.ts), which has the modes of a URL that does not take everything at once:
 * held, stalled, probing, open. While the gate lets nothing through, the line stands, its cursor with it, and no event
 * needs a row. A store that fails puts the worker to sleep for a second. A worker that was *stopped*, because the
 * gateway stops, the URL was changed or disabled, starts nothing any more; another one begins where the store says.
 *
 * An attempt ends in one of four ways. It has an *outcome*, which is recorded with the cursor. It could *not be made*
 * for a reason of our own: nothing is recorded, and the event takes its place in the line again. It was *cut off* by
 * our own stop: the same, for the next worker. Or it has an outcome that the store refuses for its own sake, and is
 * *set aside* (progress-recorder.ts): the worker leaves the event alone, and its lock too where the URL is ordered,
 * until it is kept.
 */
import { setMaxListeners } from 'node:events';
import { type Clock, Seconds, systemClock, type Timer } from '../../../proto/clock.js';
import type { GatewayEvents } from '../../events.js';
import type {
  AttemptRecord,
  DeliveryProgress,
  DueDelivery,
  Store,
  StoredUplink,
  WebhookUrl,
} from '../../store/contract/store.js';
import { MOST_AT_ONCE } from '../concurrency-limiter.js';
import {
  type Attempted,
  announcement,
  DeliverySender,
  type DeliverySenderParts,
  type UrlSecrets,
} from '../delivery-sender.js';
import type { DeliveryThrottle } from '../delivery-throttle.js';
import { eventId } from '../event-id.js';
import { EventQueue } from './event-queue.js';
import { LockOrder } from './lock-order.js';
import { type Recorded, type Recording, uplinkIdsOf } from './progress-recorder.js';
import type { StalledUrls } from './stalled-urls.js';
import { type GateChange, UrlGate } from './url-gate.js';
import { UrlRetries } from './url-retries.js';

/** Events read ahead of their attempts at the most. */
const MOST_AHEAD = 4096;
/** So many a URL may always have, whatever the others have. */
const LEAST_AHEAD = 128;
/** Deliveries that went well and are not noted yet, at the most: after a kill they are made again, under their ids. */
const MOST_UNNOTED = 1024;
/** With so many outcomes that the store refuses, no more attempts are made: each would be made again after a start. */
const MOST_SET_ASIDE = 100;
/** The wait after the store failed to read, before it is asked again. */
const AFTER_STORE_FAILURE = Seconds(1);

/** What a worker needs of the parts around it. */
export interface WorkerParts extends DeliverySenderParts {
  readonly store: Store;
  /** The run's clock, for events. */
  readonly runClock: Clock;
  readonly events: GatewayEvents;
  /** Whether all URLs together have little enough read ahead for one to read more than {@link LEAST_AHEAD}. */
  readonly mayReadAhead: () => boolean;
  /** Of all URLs together. */
  readonly pace: DeliveryThrottle;
  readonly stalled: StalledUrls;
  /** Makes it durable, soon; resolves when it is, or was set aside. What is given first is durable first. */
  readonly record: (progress: DeliveryProgress, by: Recording) => Promise<Recorded>;
}

export class UrlWorker implements Recording {
  readonly #url: WebhookUrl;
  readonly #courier: DeliverySender;
  readonly #parts: WorkerParts;
  readonly #abort = new AbortController();
  readonly #gate: UrlGate;
  readonly #line: EventQueue;
  /** Only where the URL keeps its locks' order. */
  readonly #order: LockOrder | undefined;
  /** Locks with a first attempt under way; where the URL keeps their order, with any. */
  readonly #busyLocks = new Set<number>();
  readonly #retries: UrlRetries;
  /** Attempts that run now, with their notes but for those of what went well at once. */
  #underWay = 0;
  /** Those notes. */
  #unnoted = 0;
  #working: Promise<void> | undefined;
  #workAgain = false;
  #timer: Timer | undefined;
  #stopped = false;
  #onIdle: (() => void)[] = [];

  constructor(url: WebhookUrl, secrets: UrlSecrets, parts: WorkerParts) {
    this.#url = url;
    this.#courier = new DeliverySender(url, secrets, parts);
    this.#parts = parts;
    this.#gate = new UrlGate(url, parts.waits.now());
    this.#line = new EventQueue(url, parts.store);
    this.#retries = new UrlRetries(url.id, parts.store);
    this.#order = url.ordered ? new LockOrder(url.id, parts.store.webhooks) : undefined;
    // Each attempt under way listens to it once, and Node takes more than ten listeners for a leak.
    setMaxListeners(MOST_AT_ONCE, this.#abort.signal);
  }

  get merchantId(): number {
    return this.#url.merchantId;
  }

  /** When its open circuit lets one attempt through; undefined while it is closed. */
  get probeAtMs(): number | undefined {
    return this.#stopped ? undefined : this.#gate.probeAtMs;
  }

  /** Until when the receiver asked to be left alone; undefined where it takes what comes. */
  get heldUntilMs(): number | undefined {
    return this.#stopped ? undefined : this.#gate.heldUntilMs(this.#parts.waits.now());
  }

  /** Events that were read and wait for their attempt. */
  get ahead(): number {
    return this.#line.length;
  }

  /** It starts nothing any more: the URL was changed or disabled, or the gateway stops. */
  get isStopped(): boolean {
    return this.#stopped;
  }

  /** Deliveries were made due behind its back. */
  reconsider(): void {
    this.#order?.markStale();
    this.#retries.changed();
    this.wake();
  }

  /** Looks for work: called when the merchant has new events, when a retry falls due, and when an attempt ended. */
  wake(): void {
    if (this.#stopped) return;
    if (this.#working !== undefined) {
      this.#workAgain = true;
      return;
    }
    this.#working = this.#work().finally(() => {
      this.#working = undefined;
      if (this.#workAgain) {
        this.#workAgain = false;
        this.wake();
      }
      this.#settle();
    });
  }

  /** A lock's events were erased from the log: those that were read and not attempted yet are left out. */
  forget(deviceId: number): void {
    this.#retries.forget();
    this.#line.forget(deviceId);
    this.wake();
  }

  /** What the store had refused is kept: where more is to follow, it does. */
  keptAfterAll(progress: DeliveryProgress): void {
    this.#retries.kept(uplinkIdsOf(progress));
    this.reconsider();
  }

  /** Starts nothing new, gives what is under way up to `grace` ms to end, then cuts it off. May be called again. */
  async stop(grace: number): Promise<void> {
    this.#end();
    if (this.#isIdle) return;
    const idle = new Promise<void>((resolve) => this.#onIdle.push(resolve));
    const cut = systemClock.after(grace, () => this.#abort.abort());
    await idle;
    cut.cancel();
  }

  #end(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#parts.stalled.ended(this.#url.id);
  }

  get #isIdle(): boolean {
    return this.#underWay === 0 && this.#unnoted === 0 && this.#working === undefined;
  }

  #settle(): void {
    if (!this.#stopped || !this.#isIdle) return;
    for (const each of this.#onIdle.splice(0)) each();
  }

  async #work(): Promise<void> {
    const nowMs = this.#parts.waits.now();
    try {
      await this.#retries.shorten(nowMs, this.heldUntilMs);
      await this.#order?.load();
      await this.#startRetries(nowMs);
      await this.#startNew();
      await this.#sleepUntilDue(nowMs);
    } catch (error) {
      this.#reportFailure(error as Error);
      this.#sleep(AFTER_STORE_FAILURE);
    }
  }

  #reportFailure(error: Error): void {
    this.#parts.events.emit('store-failed', { atMs: this.#parts.runClock.now(), why: error.message });
  }

  /** How many attempts may start now. */
  #room(): number {
    if (this.#unnoted >= MOST_UNNOTED || this.#retries.setAsideCount >= MOST_SET_ASIDE) return 0;
    const room = this.#gate.room(this.#parts.waits.now(), this.#underWay);
    return room <= 0 ? 0 : Math.min(room, this.#parts.pace.room(this));
  }

  async #startRetries(nowMs: number): Promise<void> {
    const free = Math.min(this.#gate.forRetries - this.#retries.underWay, this.#room());
    for (const delivery of await this.#retries.read(nowMs, free, this.#busyLocks.size)) {
      if (this.#stopped || this.#retries.underWay >= this.#gate.forRetries || this.#room() <= 0) return;
      if (this.#order === undefined || !this.#isLockBusy(delivery.uplink)) this.#startRetry(delivery);
    }
  }

  #isLockBusy({ deviceId }: StoredUplink): boolean {
    return this.#busyLocks.has(deviceId) || this.#retries.isLockSetAside(deviceId);
  }

  /**
   * Starts events while there is room, reading on where none of those at hand may start: a lock with many events that
   * wait for each other must not hold up the others.
   */
  async #startNew(): Promise<void> {
    do this.#startFirst();
    while (!this.#stopped && this.#mayReadOn() && (await this.#line.readOn()));
  }

  #mayReadOn(): boolean {
    const { length } = this.#line;
    // Whether anything waits for the gate to open has to be known all the same.
    if (this.#gate.opensAtMs(this.#parts.waits.now()) !== undefined) return length === 0;
    if (this.#room() <= 0) return false;
    return length < LEAST_AHEAD || (length < MOST_AHEAD && this.#parts.mayReadAhead());
  }

  /** Starts what may start, in order: an event of a lock that is busy waits, and those of other locks pass it. */
  #startFirst(): void {
    const parked: StoredUplink[] = [];
    const passed = new Set<number>();
    this.#line.sift((event) => {
      const { deviceId } = event;
      if (this.#order?.isHeld(deviceId)) parked.push(event);
      else if (this.#stopped || this.#isLockBusy(event) || passed.has(deviceId) || this.#room() <= 0) {
        passed.add(deviceId);
        return true;
      } else this.#startEvent(event);
      return false;
    });
    if (parked.length > 0) this.#park(parked);
  }

  #startEvent(event: StoredUplink): void {
    this.#parts.pace.begin(this);
    this.#line.started(event);
    this.#busyLocks.add(event.deviceId);
    this.#run(
      () => this.#attempt(event, 1, 0, false),
      () => this.#busyLocks.delete(event.deviceId),
    );
  }

  #startRetry({ uplink, attempts, attemptsBefore }: DueDelivery): void {
    const { id, deviceId } = uplink;
    this.#parts.pace.begin(this);
    this.#retries.begin(id);
    if (this.#order !== undefined) this.#busyLocks.add(deviceId);
    this.#run(
      () => this.#attempt(uplink, attempts + 1, attemptsBefore, true),
      () => {
        this.#retries.end(id);
        if (this.#order !== undefined) this.#busyLocks.delete(deviceId);
      },
    );
  }

  /** Events of locks that are held get rows, so that the line goes on without them. */
  #park(events: readonly StoredUplink[]): void {
    const atMs = this.#parts.waits.now();
    for (const { deviceId } of events) this.#order?.parking(deviceId);
    const blocked = events.map(({ id }) => ({ uplinkId: id, atMs }));
    const recorded = this.#parts.record(
      { urlId: this.#url.id, attempts: [], blocked, cursor: this.#line.cursor },
      this,
    );
    this.#run(
      async () => {
        const isSetAside = (await recorded) === 'set-aside';
        this.#retries.changed();
        for (const { id, deviceId } of events) {
          if (isSetAside) this.#retries.setAside(id, deviceId);
          this.#order?.parked(deviceId);
        }
        for (const deviceId of new Set(events.map((event) => event.deviceId))) await this.#order?.release(deviceId);
      },
      () => undefined,
    );
  }

  #run(work: () => Promise<void>, ended: () => void): void {
    this.#underWay += 1;
    void work()
      .catch((error: Error) => this.#reportFailure(error))
      .finally(() => {
        this.#underWay -= 1;
        ended();
        this.wake();
        this.#settle();
      });
  }

  async #attempt(event: StoredUplink, number: number, before: number, hasRow: boolean): Promise<void> {
    const attempted = await this.#courier.attempt(event, number, this.#abort.signal);
    if (attempted === undefined) return await this.#keepDamaged(event);
    // Cut off by our own stop: no outcome, so the cursor stays before it, and the next start attempts it again.
    if (this.#abort.signal.aborted) return;
    if (attempted.result.own !== undefined) return this.#couldNotSend(attempted);
    const record = this.#courier.record(attempted, before, hasRow);
    if (record.outcome.state === 'pending') this.#order?.hold(event.deviceId);
    this.#line.ended(event);
    const concluded = this.#conclude(attempted, record);
    // The next attempt need not wait for the disk: should this one be forgotten, it is made again under its id.
    if (record.outcome.state === 'delivered' && !hasRow) return this.#noteLater(concluded);
    await concluded;
    this.#retries.changed();
    if (record.outcome.state !== 'pending') await this.#order?.release(event.deviceId);
  }

  /**
   * A damaged event waits by itself, with no attempt made, so that nothing else waits for it: neither the cursor nor,
   * at an ordered URL, what its lock sent later.
   */
  async #keepDamaged(event: StoredUplink): Promise<void> {
    const { events, runClock } = this.#parts;
    const { id: urlId } = this.#url;
    this.#line.ended(event);
    const progress = { urlId, attempts: [], damaged: [event.id], cursor: this.#line.cursor };
    if ((await this.#parts.record(progress, this)) === 'set-aside') this.#retries.setAside(event.id, undefined);
    events.emit('event-damaged', { atMs: runClock.now(), mac: event.mac, eventId: eventId(event), urlId });
    this.#retries.changed();
    await this.#order?.release(event.deviceId);
  }

  /** For a reason of our own: no outcome, and no word on the URL. */
  #couldNotSend({ event, result: { own, error } }: Attempted): void {
    this.#line.putBack(event);
    this.#gate.couldNotSend(this.#parts.waits.now());
    if (own !== undefined && !this.#stopped) this.#parts.stalled.began(own, this.#url.id, error ?? own);
  }

  #noteLater(concluded: Promise<void>): void {
    this.#unnoted += 1;
    void concluded
      .catch((error: Error) => this.#reportFailure(error))
      .finally(() => {
        this.#unnoted -= 1;
        if (this.#unnoted === 0 || this.#unnoted === MOST_UNNOTED - 1) this.wake();
        this.#settle();
      });
  }

  async #conclude(attempted: Attempted, record: AttemptRecord): Promise<void> {
    const { events, runClock, waits } = this.#parts;
    const { id: urlId } = this.#url;
    const { circuit, ...changed } = this.#judge(attempted);
    const { event, result } = attempted;
    if (circuit !== undefined) this.#tellCircuit(circuit, result.error ?? 'an attempt went well');
    const { disabledWhy } = changed;
    if (disabledWhy !== undefined) this.#end();
    const recorded = this.#parts.record({ urlId, attempts: [record], cursor: this.#line.cursor, ...changed }, this);
    if ((await recorded) === 'set-aside') this.#leaveAlone(event, record);
    events.emit('delivery', announcement(event, record, runClock.now(), waits));
    if (disabledWhy !== undefined) events.emit('url-disabled', { atMs: runClock.now(), urlId, why: disabledWhy });
  }

  /** Until the store takes what came of the event. Where it was delivered, its lock's later events need not wait. */
  #leaveAlone({ id, deviceId }: StoredUplink, { outcome }: AttemptRecord): void {
    const isAwaited = this.#order !== undefined && outcome.state === 'pending';
    this.#retries.setAside(id, isAwaited ? deviceId : undefined);
  }

  /** What an answer, or none, says of the URL as a whole. */
  #judge({ result }: Attempted): GateChange {
    const { waits, stalled } = this.#parts;
    stalled.ended(this.#url.id);
    return this.#gate.note(result, waits.now(), waits.wall.now(), this.#underWay);
  }

  #tellCircuit(state: 'opened' | 'closed', why: string): void {
    // One that stops has nothing to say of the URL any more: its circuit ends with it.
    if (this.#stopped) return;
    this.#parts.events.emit('circuit', { atMs: this.#parts.runClock.now(), urlId: this.#url.id, state, why });
  }

  /** `workedAtMs`: what was due then was started, or waits for the end of something that will wake the worker. */
  async #sleepUntilDue(workedAtMs: number): Promise<void> {
    const { waits } = this.#parts;
    const opensAtMs = this.#gate.opensAtMs(waits.now());
    if (opensAtMs !== undefined) {
      const dueAtMs = this.#line.length > 0 ? opensAtMs : await this.#retries.nextAtMs();
      // Where nothing waits, whatever comes wakes the worker.
      if (dueAtMs !== null) this.#sleep(Math.max(dueAtMs, opensAtMs) - waits.now());
      return;
    }
    // No more may start before one of those under way ends or the pace allows it, and that wakes the worker.
    if (this.#retries.underWay >= this.#gate.forRetries || this.#room() <= 0) return;
    const dueAtMs = await this.#retries.nextAtMs();
    if (dueAtMs !== null && (dueAtMs > workedAtMs || this.#underWay === 0)) this.#sleep(dueAtMs - waits.now());
  }

  #sleep(delay: number): void {
    this.#timer?.cancel();
    if (!this.#stopped) this.#timer = this.#parts.waits.after(delay, () => this.wake());
  }
}

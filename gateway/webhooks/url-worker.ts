/**
 * One webhook URL following the log.
 *
 * The worker reads the merchant's events behind its cursor and attempts them in order: a lock's next event is not
 * attempted before the first attempt at the one before has ended, so what goes well arrives in order, lock by lock.
 * What fails gets a row and waits for its retry; the line goes on without it, but at an ordered URL, where the lock's
 * later events wait too. The cursor that is kept stands before the oldest event without an outcome, so after a crash
 * nothing is left out, and what was attempted but not yet noted is attempted again under the same id.
 *
 * While the circuit is open the line stands: the cursor waits with it, and no event needs a row.
 */
import { setMaxListeners } from 'node:events';
import { type Clock, Seconds, systemClock, type Timer } from '../../proto/clock.js';
import { eventId } from '../event-id.js';
import type { GatewayEvents } from '../events.js';
import type { AttemptRecord, DeliveryProgress, DueDelivery, Store, StoredUplink, WebhookUrl } from '../store/store.js';
import { Circuit, DISABLED_AFTER } from './circuit.js';
import { type Attempted, announcement, Courier, type CourierParts, type UrlSecrets } from './courier.js';
import { LockOrder } from './lock-order.js';
import type { Pace } from './pace.js';
import { AttemptWindow, MOST_AT_ONCE } from './window.js';

/** Events read at once, and read ahead of their attempts at the most. */
const READ_AT_ONCE = 128;
const MOST_AHEAD = 4096;
/** So many a URL may always have, whatever the others have. */
const LEAST_AHEAD = 128;
/** Deliveries that went well and are not noted yet, at the most: after a kill they are made again, under their ids. */
const MOST_UNNOTED = 1024;
/** The wait after the store failed to read, before it is asked again. */
const AFTER_STORE_FAILURE = Seconds(1);

/** What a worker needs of the parts around it. */
export interface WorkerParts extends CourierParts {
  readonly store: Store;
  /** The run's clock, for events. */
  readonly runClock: Clock;
  readonly events: GatewayEvents;
  /** Whether all URLs together have little enough read ahead for one to read more than {@link LEAST_AHEAD}. */
  readonly mayReadAhead: () => boolean;
  /** Of all URLs together. */
  readonly pace: Pace;
  /** Makes it durable, soon; resolves when it is. What is given first is durable first. */
  readonly record: (progress: DeliveryProgress) => Promise<void>;
}

export class UrlWorker {
  readonly #url: WebhookUrl;
  readonly #courier: Courier;
  readonly #parts: WorkerParts;
  readonly #abort = new AbortController();
  readonly #circuit = new Circuit();
  readonly #window = new AttemptWindow();
  /** Only where the URL keeps its locks' order. */
  readonly #order: LockOrder | undefined;
  #failingSinceMs: number | null;
  /** Read, not attempted yet; oldest first. */
  #ahead: StoredUplink[] = [];
  /** Events whose first attempt was started and has no outcome yet, by uplink id, and the locks that are busy. */
  readonly #first = new Set<number>();
  readonly #busyLocks = new Set<number>();
  /** Retries under way, by uplink id. */
  readonly #retries = new Set<number>();
  /** When the next retry is due; null where none waits, undefined where the store has to be asked. */
  #dueAtMs: number | null | undefined;
  /** How often what is due has changed. */
  #dueChanges = 0;
  /** Events after the cursor that had an outcome in an earlier life: they are not new. */
  #known: Set<number> | undefined;
  /** Attempts that run now, with their notes but for those of what went well at once. */
  #underWay = 0;
  /** Those notes. */
  #unnoted = 0;
  /** The last event that was read. */
  #position: number;
  #reading: Promise<void> | undefined;
  #readAgain = false;
  /** How often something was forgotten: what is being read meanwhile may be gone. */
  #forgets = 0;
  #timer: Timer | undefined;
  #stopped = false;
  #onIdle: (() => void)[] = [];

  constructor(url: WebhookUrl, secrets: UrlSecrets, parts: WorkerParts) {
    this.#url = url;
    this.#courier = new Courier(url, secrets, parts);
    this.#parts = parts;
    this.#order = url.ordered ? new LockOrder(url.id, parts.store.webhooks) : undefined;
    this.#failingSinceMs = url.failingSinceMs;
    this.#position = url.cursor;
    // Each attempt under way listens to it once, and Node takes more than ten listeners for a leak.
    setMaxListeners(MOST_AT_ONCE, this.#abort.signal);
  }

  get merchantId(): number {
    return this.#url.merchantId;
  }

  get isCircuitOpen(): boolean {
    return this.#circuit.isOpen;
  }

  /** When its open circuit lets one attempt through; undefined while it is closed. */
  get probeAtMs(): number | undefined {
    return this.#circuit.probeAtMs;
  }

  /** Deliveries were made due behind its back. */
  reconsider(): void {
    this.#order?.markStale();
    this.#dueChanged();
    this.wake();
  }

  #dueChanged(): void {
    this.#dueChanges += 1;
    this.#dueAtMs = undefined;
  }

  /** Events that were read and wait for their attempt. */
  get ahead(): number {
    return this.#ahead.length;
  }

  /** Deliveries that were read or are under way and have no outcome yet. */
  get waiting(): number {
    return (this.#stopped ? 0 : this.#ahead.length) + this.#underWay + this.#unnoted;
  }

  /** Looks for work: called when the merchant has new events, when a retry falls due, and when an attempt ended. */
  wake(): void {
    if (this.#stopped) return;
    if (this.#reading !== undefined) {
      this.#readAgain = true;
      return;
    }
    this.#reading = this.#work().finally(() => {
      this.#reading = undefined;
      if (this.#readAgain) {
        this.#readAgain = false;
        this.wake();
      }
      this.#settle();
    });
  }

  /** A lock's events were erased from the log: those that were read and not attempted yet are left out. */
  forget(deviceId: number): void {
    this.#forgets += 1;
    this.#dueChanged();
    this.#ahead = this.#ahead.filter((event) => event.deviceId !== deviceId);
    this.wake();
  }

  /** Starts nothing new, gives what is under way up to `grace` ms to end, then cuts it off. May be called again. */
  async stop(grace: number): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    if (this.#isIdle) return;
    const idle = new Promise<void>((resolve) => this.#onIdle.push(resolve));
    const cut = systemClock.after(grace, () => this.#abort.abort());
    await idle;
    cut.cancel();
  }

  get #isIdle(): boolean {
    return this.#underWay === 0 && this.#unnoted === 0 && this.#reading === undefined;
  }

  #settle(): void {
    if (!this.#stopped || !this.#isIdle) return;
    for (const each of this.#onIdle.splice(0)) each();
  }

  async #work(): Promise<void> {
    const nowMs = this.#parts.clock.now();
    try {
      await this.#order?.load();
      await this.#startRetries(nowMs);
      await this.#startNew();
      await this.#sleepUntilDue(nowMs);
    } catch (error) {
      this.#tellFailure(error as Error);
      this.#sleep(AFTER_STORE_FAILURE);
    }
  }

  #tellFailure(error: Error): void {
    this.#parts.events.emit('store-failed', { atMs: this.#parts.runClock.now(), why: error.message });
  }

  /** How many attempts may start now. While the circuit is open: one, when a probe is due and nothing else runs. */
  #room(): number {
    const { probeAtMs } = this.#circuit;
    const isProbing = probeAtMs !== undefined;
    if (isProbing && (this.#underWay > 0 || this.#parts.clock.now() < probeAtMs)) return 0;
    if (this.#unnoted >= MOST_UNNOTED) return 0;
    const room = (isProbing ? 1 : this.#window.size) - this.#underWay;
    return room <= 0 ? 0 : Math.min(room, this.#parts.pace.room(this));
  }

  async #startRetries(nowMs: number): Promise<void> {
    const free = Math.min(this.#window.forRetries - this.#retries.size, this.#room());
    if (free <= 0 || (this.#dueAtMs !== undefined && (this.#dueAtMs ?? Number.POSITIVE_INFINITY) > nowMs)) return;
    // Those under way are still due in the store, and an ordered URL's busy locks are skipped, so look past them.
    const limit = free + this.#retries.size + this.#busyLocks.size;
    const forgets = this.#forgets;
    const due = await this.#parts.store.readDueDeliveries(this.#url.id, nowMs, limit);
    // Whoever forgets wakes the worker.
    if (forgets !== this.#forgets) return;
    for (const delivery of due) {
      if (this.#stopped || this.#retries.size >= this.#window.forRetries || this.#room() <= 0) return;
      const { id, deviceId } = delivery.uplink;
      const mustWait = this.#order !== undefined && this.#busyLocks.has(deviceId);
      if (!this.#retries.has(id) && !mustWait) this.#startRetry(delivery);
    }
  }

  /**
   * Starts events while there is room, reading on where none of those at hand may start: a lock with many events that
   * wait for each other must not hold up the others.
   */
  async #startNew(): Promise<void> {
    do this.#startFirst();
    while (!this.#stopped && this.#room() > 0 && this.#mayReadOn() && (await this.#readOn()));
  }

  #mayReadOn(): boolean {
    const { length } = this.#ahead;
    return length < LEAST_AHEAD || (length < MOST_AHEAD && this.#parts.mayReadAhead());
  }

  /** Returns whether there was anything to read. */
  async #readOn(): Promise<boolean> {
    const { store } = this.#parts;
    this.#known ??= new Set(await store.readOutcomesAfter(this.#url.id, this.#position));
    const known = this.#known;
    const forgets = this.#forgets;
    const events = await store.readEvents(this.#url.merchantId, this.#position, READ_AT_ONCE);
    if (forgets !== this.#forgets) return true;
    this.#position = events.at(-1)?.id ?? this.#position;
    this.#ahead.push(...events.filter(({ id }) => !known.delete(id)));
    return events.length > 0;
  }

  /** Starts what may start, in order: an event of a lock that is busy waits, and those of other locks pass it. */
  #startFirst(): void {
    const waiting: StoredUplink[] = [];
    const parked: StoredUplink[] = [];
    const passed = new Set<number>();
    for (const event of this.#ahead) {
      const { deviceId } = event;
      if (this.#order?.isHeld(deviceId)) parked.push(event);
      else if (this.#stopped || this.#busyLocks.has(deviceId) || passed.has(deviceId) || this.#room() <= 0) {
        passed.add(deviceId);
        waiting.push(event);
      } else this.#startEvent(event);
    }
    this.#ahead = waiting;
    if (parked.length > 0) this.#park(parked);
  }

  #startEvent(event: StoredUplink): void {
    this.#parts.pace.begin(this);
    this.#first.add(event.id);
    this.#busyLocks.add(event.deviceId);
    this.#run(
      () => this.#attempt(event, 1, 0, false),
      () => this.#busyLocks.delete(event.deviceId),
    );
  }

  #startRetry({ uplink, attempts, attemptsBefore }: DueDelivery): void {
    const { id, deviceId } = uplink;
    this.#parts.pace.begin(this);
    this.#retries.add(id);
    this.#dueChanged();
    if (this.#order !== undefined) this.#busyLocks.add(deviceId);
    this.#run(
      () => this.#attempt(uplink, attempts + 1, attemptsBefore, true),
      () => {
        this.#retries.delete(id);
        this.#dueChanged();
        if (this.#order !== undefined) this.#busyLocks.delete(deviceId);
      },
    );
  }

  /** Events of locks that are held get rows, so that the line goes on without them. */
  #park(events: readonly StoredUplink[]): void {
    const atMs = this.#parts.clock.now();
    for (const { deviceId } of events) this.#order?.parking(deviceId);
    const parked = events.map(({ id }) => ({ uplinkId: id, atMs }));
    const recorded = this.#parts.record({ urlId: this.#url.id, attempts: [], parked, cursor: this.#cursor() });
    this.#run(
      async () => {
        await recorded;
        this.#dueChanged();
        for (const { deviceId } of events) this.#order?.parked(deviceId);
        for (const deviceId of new Set(events.map((event) => event.deviceId))) await this.#order?.release(deviceId);
      },
      () => undefined,
    );
  }

  #run(work: () => Promise<void>, ended: () => void): void {
    this.#underWay += 1;
    void work()
      .catch((error: Error) => this.#tellFailure(error))
      .finally(() => {
        this.#underWay -= 1;
        ended();
        this.wake();
        this.#settle();
      });
  }

  async #attempt(event: StoredUplink, number: number, before: number, hasRow: boolean): Promise<void> {
    const attempted = await this.#courier.attempt(event, number, this.#abort.signal);
    if (attempted === undefined) return await this.#setAside(event);
    // Cut off by our own stop: no outcome, so the cursor stays before it, and the next start attempts it again.
    if (this.#abort.signal.aborted) return;
    const record = this.#courier.record(attempted, before, hasRow);
    if (record.outcome.state === 'pending') this.#order?.hold(event.deviceId);
    this.#first.delete(event.id);
    const concluded = this.#conclude(attempted, record);
    // The next attempt need not wait for the disk: should this one be forgotten, it is made again under its id.
    if (record.outcome.state === 'delivered' && !hasRow) return this.#noteLater(concluded);
    await concluded;
    this.#dueChanged();
    if (record.outcome.state !== 'pending') await this.#order?.release(event.deviceId);
  }

  /**
   * A damaged event waits by itself, with no attempt made, so that nothing else waits for it: neither the cursor nor,
   * at an ordered URL, what its lock sent later.
   */
  async #setAside(event: StoredUplink): Promise<void> {
    const { events, runClock } = this.#parts;
    const { id: urlId } = this.#url;
    this.#first.delete(event.id);
    await this.#parts.record({ urlId, attempts: [], damaged: [event.id], cursor: this.#cursor() });
    events.emit('event-damaged', { atMs: runClock.now(), mac: event.mac, eventId: eventId(event), urlId });
    this.#dueChanged();
    await this.#order?.release(event.deviceId);
  }

  #noteLater(concluded: Promise<void>): void {
    this.#unnoted += 1;
    void concluded
      .catch((error: Error) => this.#tellFailure(error))
      .finally(() => {
        this.#unnoted -= 1;
        if (this.#unnoted === 0 || this.#unnoted === MOST_UNNOTED - 1) this.wake();
        this.#settle();
      });
  }

  async #conclude(attempted: Attempted, record: AttemptRecord): Promise<void> {
    const { events, runClock } = this.#parts;
    const { id: urlId } = this.#url;
    const changed = this.#judge(attempted);
    const { disabledWhy } = changed;
    if (disabledWhy !== undefined) this.#stopped = true;
    await this.#parts.record({ urlId, attempts: [record], cursor: this.#cursor(), ...changed });
    events.emit('delivery', announcement(attempted.event, record, runClock.now()));
    if (disabledWhy !== undefined) events.emit('url-disabled', { atMs: runClock.now(), urlId, why: disabledWhy });
  }

  /** What an answer, or none, says of the URL as a whole. */
  #judge({ result }: Attempted): Pick<DeliveryProgress, 'disabledWhy' | 'failingSinceMs'> {
    const nowMs = this.#parts.clock.now();
    this.#window.note(result, this.#underWay);
    if (result.error === null) {
      if (this.#circuit.succeeded()) this.#tellCircuit('closed', 'an attempt went well');
      if (this.#failingSinceMs === null) return {};
      this.#failingSinceMs = null;
      return { failingSinceMs: null };
    }
    if (this.#circuit.failed(nowMs)) this.#tellCircuit('opened', result.error);
    const isNew = this.#failingSinceMs === null;
    this.#failingSinceMs ??= nowMs;
    const since = isNew ? { failingSinceMs: nowMs } : {};
    if (result.status === 410) return { ...since, disabledWhy: 'the receiver answered 410: the URL is gone' };
    if (nowMs - this.#failingSinceMs < DISABLED_AFTER) return since;
    return { disabledWhy: `nothing but failure for 5 days; the last: ${result.error}` };
  }

  #tellCircuit(state: 'opened' | 'closed', why: string): void {
    // One that stops has nothing to say of the URL any more: its circuit ends with it.
    if (this.#stopped) return;
    this.#parts.events.emit('circuit', { atMs: this.#parts.runClock.now(), urlId: this.#url.id, state, why });
  }

  /** Before the oldest event that has no outcome: attempted or only read. */
  #cursor(): number {
    let oldest = this.#ahead[0]?.id ?? this.#position + 1;
    for (const id of this.#first) oldest = Math.min(oldest, id);
    return oldest - 1;
  }

  /** `workedAtMs`: what was due then was started, or waits for the end of something that will wake the worker. */
  async #sleepUntilDue(workedAtMs: number): Promise<void> {
    const { store, clock } = this.#parts;
    const { probeAtMs = 0 } = this.#circuit;
    if (probeAtMs > clock.now()) return this.#sleep(probeAtMs - clock.now());
    // No more may start before one of those under way ends or the pace allows it, and that wakes the worker.
    if (this.#retries.size >= this.#window.forRetries || this.#room() <= 0) return;
    if (this.#dueAtMs === undefined) {
      const changes = this.#dueChanges;
      const dueAtMs = await store.nextDueAtMs(this.#url.id, this.#retries);
      // What has changed meanwhile wakes the worker.
      if (changes === this.#dueChanges) this.#dueAtMs = dueAtMs;
    }
    const dueAtMs = this.#dueAtMs ?? null;
    if (dueAtMs !== null && (dueAtMs > workedAtMs || this.#underWay === 0)) this.#sleep(dueAtMs - clock.now());
  }

  #sleep(delay: number): void {
    this.#timer?.cancel();
    if (!this.#stopped) this.#timer = this.#parts.clock.after(delay, () => this.wake());
  }
}

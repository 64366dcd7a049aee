/**
 * One webhook URL following the log.
 *
 * The worker reads the merchant's events behind its cursor and attempts them in order: a lock's next event is not
 * attempted before the first attempt at the one before has ended, so what goes well arrives in order, lock by lock.
 * What fails gets a row and waits for its retry; the line goes on without it. The cursor that is kept stands before
 * the oldest event without an outcome, so after a crash nothing is left out, and what was attempted but not yet noted
 * is attempted again under the same id.
 */
import { setMaxListeners } from 'node:events';
import { type Clock, Seconds, systemClock, type Timer } from '../../proto/clock.js';
import { eventId } from '../event-id.js';
import type { GatewayEvents } from '../events.js';
import type { AttemptRecord, DeliveryProgress, DueDelivery, Store, StoredUplink, WebhookUrl } from '../store/store.js';
import { type AttemptResult, attemptDelivery } from './attempt.js';
import { webhookBody } from './body.js';
import type { GuardedAgents } from './guarded-agents.js';
import { retryDelay } from './schedule.js';
import { signHeaders } from './signature.js';

/** Attempts under way at once to one URL: a slow receiver holds no more of us than this. */
const CONCURRENCY = 16;
/** Retries may take at most this many of them, so that a pile of old ones doesn't hold up what is new. */
const RETRY_SHARE = 8;
/** Events read at once, and read ahead of their attempts at the most. */
const READ_AT_ONCE = 128;
const MOST_AHEAD = 4096;
/** The wait after the store failed to read, before it is asked again. */
const AFTER_STORE_FAILURE = Seconds(1);

/** What a worker needs of the parts around it. */
export interface WorkerParts {
  readonly store: Store;
  readonly agents: GuardedAgents;
  /** The wall's clock: receivers live by it. */
  readonly clock: Clock;
  /** The run's clock, for events. */
  readonly runClock: Clock;
  readonly events: GatewayEvents;
  readonly userAgent: string;
  /** Chance, in [0, 1). */
  readonly random: () => number;
  /** Makes it durable; resolves when it is. */
  readonly record: (progress: DeliveryProgress) => Promise<void>;
}

export class UrlWorker {
  readonly #url: WebhookUrl;
  readonly #secret: string;
  readonly #parts: WorkerParts;
  readonly #abort = new AbortController();
  /** Read, not attempted yet; oldest first. */
  #ahead: StoredUplink[] = [];
  /** Events whose first attempt was started and has no outcome yet, by uplink id, and the locks that they keep busy. */
  readonly #first = new Set<number>();
  readonly #busyLocks = new Set<number>();
  /** Retries under way, by uplink id. */
  readonly #retries = new Set<number>();
  /** Events after the cursor whose first attempt failed in an earlier life: they are retries or dead, and not new. */
  #known: Set<number> | undefined;
  /** Attempts that run now, their notes included. */
  #underWay = 0;
  /** The last event that was read. */
  #position: number;
  #reading: Promise<void> | undefined;
  #readAgain = false;
  /** How often something was forgotten: what is being read meanwhile may be gone. */
  #forgets = 0;
  #timer: Timer | undefined;
  #stopped = false;
  #idle: (() => void) | undefined;

  constructor(url: WebhookUrl, secret: string, parts: WorkerParts) {
    this.#url = url;
    this.#secret = secret;
    this.#parts = parts;
    this.#position = url.cursor;
    // Each attempt under way listens to it once, and Node takes more than ten listeners for a leak.
    setMaxListeners(CONCURRENCY, this.#abort.signal);
  }

  get merchantId(): number {
    return this.#url.merchantId;
  }

  /** Deliveries that were read or are under way and have no outcome yet. */
  get waiting(): number {
    return this.#ahead.length + this.#underWay;
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
    this.#ahead = this.#ahead.filter((event) => event.deviceId !== deviceId);
    this.wake();
  }

  /** Starts nothing new, gives what is under way up to `grace` ms to end, then cuts it off. */
  async stop(grace: number): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    if (this.#underWay === 0 && this.#reading === undefined) return;
    const idle = new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
    const cut = systemClock.after(grace, () => this.#abort.abort());
    await idle;
    cut.cancel();
  }

  #settle(): void {
    if (this.#stopped && this.#underWay === 0 && this.#reading === undefined) this.#idle?.();
  }

  async #work(): Promise<void> {
    try {
      await this.#startRetries();
      await this.#startNew();
      await this.#sleepUntilDue();
    } catch (error) {
      this.#parts.events.emit('store-failed', { atMs: this.#parts.runClock.now(), why: (error as Error).message });
      this.#sleep(AFTER_STORE_FAILURE);
    }
  }

  async #startRetries(): Promise<void> {
    const free = Math.min(RETRY_SHARE - this.#retries.size, CONCURRENCY - this.#underWay);
    if (free <= 0) return;
    const { store, clock } = this.#parts;
    // Those under way are still due in the store, so look past them.
    const forgets = this.#forgets;
    const due = await store.readDueDeliveries(this.#url.id, clock.now(), free + this.#retries.size);
    // Whoever forgets wakes the worker.
    if (forgets !== this.#forgets) return;
    for (const delivery of due) {
      if (this.#stopped || this.#retries.size >= RETRY_SHARE || this.#underWay >= CONCURRENCY) return;
      if (!this.#retries.has(delivery.uplink.id)) this.#startRetry(delivery);
    }
  }

  /**
   * Starts events while there is room, reading on where none of those at hand may start: a lock with many events that
   * wait for each other must not hold up the others.
   */
  async #startNew(): Promise<void> {
    do this.#startFirst();
    while (!this.#stopped && this.#underWay < CONCURRENCY && this.#ahead.length < MOST_AHEAD && (await this.#readOn()));
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
    const held = new Set<number>();
    for (const event of this.#ahead) {
      const isHeld = this.#busyLocks.has(event.deviceId) || held.has(event.deviceId);
      if (this.#stopped || isHeld || this.#underWay >= CONCURRENCY) {
        held.add(event.deviceId);
        waiting.push(event);
      } else this.#startEvent(event);
    }
    this.#ahead = waiting;
  }

  #startEvent(event: StoredUplink): void {
    this.#first.add(event.id);
    this.#busyLocks.add(event.deviceId);
    this.#run(event, 1, () => this.#busyLocks.delete(event.deviceId));
  }

  #startRetry({ uplink, attempts }: DueDelivery): void {
    this.#retries.add(uplink.id);
    this.#run(uplink, attempts + 1, () => this.#retries.delete(uplink.id));
  }

  #run(event: StoredUplink, number: number, ended: () => void): void {
    this.#underWay += 1;
    void this.#attempt(event, number).finally(() => {
      this.#underWay -= 1;
      ended();
      this.wake();
      this.#settle();
    });
  }

  async #attempt(event: StoredUplink, number: number): Promise<void> {
    const atMs = this.#parts.clock.now();
    const result = await this.#post(event, atMs);
    // Cut off by our own stop: no outcome, so the cursor stays before it, and the next start attempts it again.
    if (this.#abort.signal.aborted) return;
    await this.#conclude(event, number, atMs, result);
  }

  async #post(event: StoredUplink, atMs: number): Promise<AttemptResult> {
    const { clock, agents } = this.#parts;
    const body = bodyOf(event);
    // A damaged row must not keep the rest from being delivered: it fails, is retried, and is dead in the end.
    if (body === undefined)
      return { status: null, durationMs: 0, error: 'the stored ping is damaged', answer: null, retryAfter: undefined };
    const headers = this.#headers(eventId(event), atMs, body);
    return await attemptDelivery({ url: this.#url.url, headers, body }, agents, clock, this.#abort.signal);
  }

  #headers(id: string, nowMs: number, body: string): Record<string, string> {
    return {
      ...this.#url.headers,
      'content-type': 'application/json',
      'user-agent': this.#parts.userAgent,
      ...signHeaders([this.#secret], id, nowMs, body),
    };
  }

  async #conclude(event: StoredUplink, number: number, atMs: number, result: AttemptResult): Promise<void> {
    const gone = result.status === 410;
    const outcome = this.#outcome(number, result);
    const { status, durationMs, error, answer } = result;
    const record: AttemptRecord = {
      urlId: this.#url.id,
      uplinkId: event.id,
      number,
      atMs,
      durationMs,
      status,
      error,
      answer,
      outcome,
    };
    this.#first.delete(event.id);
    const why = 'the receiver answered 410: the URL is gone';
    if (gone) this.#stopped = true;
    await this.#parts.record({
      urlId: this.#url.id,
      attempts: [record],
      cursor: this.#cursor(),
      ...(gone && { disabledWhy: why }),
    });
    this.#announce(event, record);
    if (gone) this.#parts.events.emit('url-disabled', { atMs: this.#parts.runClock.now(), urlId: this.#url.id, why });
  }

  #outcome(number: number, result: AttemptResult): AttemptRecord['outcome'] {
    if (result.error === null) return { state: 'delivered' };
    if (result.status === 410) return { state: 'dead' };
    const delay = retryDelay(number, this.#parts.random(), result.retryAfter);
    if (delay === undefined) return { state: 'dead' };
    return { state: 'pending', nextAttemptAtMs: this.#parts.clock.now() + delay };
  }

  #announce(event: StoredUplink, { number, status, durationMs, error, outcome }: AttemptRecord): void {
    this.#parts.events.emit('delivery', {
      atMs: this.#parts.runClock.now(),
      urlId: this.#url.id,
      mac: event.mac,
      eventId: eventId(event),
      number,
      status,
      durationMs,
      error,
      outcome: outcome.state,
      nextAttemptAtMs: outcome.state === 'pending' ? outcome.nextAttemptAtMs : null,
    });
  }

  /** Before the oldest event that has no outcome: attempted or only read. */
  #cursor(): number {
    let oldest = this.#ahead[0]?.id ?? this.#position + 1;
    for (const id of this.#first) oldest = Math.min(oldest, id);
    return oldest - 1;
  }

  async #sleepUntilDue(): Promise<void> {
    const { store, clock } = this.#parts;
    const dueAtMs = await store.nextDueAtMs(this.#url.id);
    // While attempts are under way, their ends wake the worker; what is due now is among them or waits for them.
    if (dueAtMs !== null && (dueAtMs > clock.now() || this.#underWay === 0)) this.#sleep(dueAtMs - clock.now());
  }

  #sleep(delay: number): void {
    this.#timer?.cancel();
    if (!this.#stopped) this.#timer = this.#parts.clock.after(delay, () => this.wake());
  }
}

/** The text of the body; undefined where what is stored can't be read any more. */
function bodyOf(event: StoredUplink): string | undefined {
  try {
    return JSON.stringify(webhookBody(event));
  } catch {
    return undefined;
  }
}

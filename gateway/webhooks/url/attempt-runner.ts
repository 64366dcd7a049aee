/**
 * Attempts at one URL, each from its start until its outcome is stored. The worker (url-worker.ts) decides which start
 * when.
 *
 * An attempt ends in one of four ways:
 *
 * - It has an *outcome*: delivered, pending (it is retried) or dead. The outcome is stored together with the cursor.
 * - It was *not made*, for a reason of our own (own-failure.ts). Nothing is stored, and the event returns to its place
 *   in the queue.
 * - It was *cut off* by our own stop. Nothing is stored, and the next worker attempts the event again.
 * - Its outcome is *set aside*, since the store refuses this one outcome (progress-recorder.ts). Until it is stored, no
 *   attempt at the event is made, nor, at an ordered URL, at the lock's later events.
 *
 * An event whose stored ping is damaged is not attempted; it gets a row with that state.
 */
import type { Clock } from '../../../proto/clock.js';
import type { GatewayEvents } from '../../events.js';
import type { AttemptRecord, DeliveryProgress, Store, StoredUplink, WebhookUrl } from '../../store/contract/store.js';
import { eventId } from '../event-id.js';
import {
  type Attempted,
  DeliverySender,
  type DeliverySenderParts,
  deliveryEvent,
  type UrlSecrets,
} from '../sending/delivery-sender.js';
import type { EventQueue } from './event-queue.js';
import type { LockOrder } from './lock-order.js';
import type { Recorded, Recording } from './progress-recorder.js';
import type { StalledUrls } from './stalled-urls.js';
import type { AvailabilityChange, UrlAvailability } from './url-availability.js';
import type { UrlRetries } from './url-retries.js';

export interface AttemptRunnerParts extends DeliverySenderParts {
  readonly store: Store;
  /** The run's clock, for events. */
  readonly runClock: Clock;
  readonly events: GatewayEvents;
  readonly stalled: StalledUrls;
  /** Stores the progress soon; resolves when it is stored or set aside. What is given first is stored first. */
  readonly record: (progress: DeliveryProgress, by: Recording) => Promise<Recorded>;
}

/** What is known of a URL while a worker follows it. */
export interface UrlState {
  readonly availability: UrlAvailability;
  readonly queue: EventQueue;
  readonly retries: UrlRetries;
  /** Only at a URL that keeps each lock's order. */
  readonly order: LockOrder | undefined;
}

/** The worker, as its attempts see it. */
export interface AttemptOwner extends Recording {
  /** How many attempts run now. */
  readonly underWay: number;
  readonly isStopped: boolean;
  /** Starts nothing any more: the URL is being disabled. */
  halt(): void;
  /** The attempt has ended; its outcome is still being stored, and nothing waits for that but `stop`. */
  recordLater(recorded: Promise<void>): void;
}

/** An attempt to be made. */
export interface PlannedAttempt {
  readonly event: StoredUplink;
  /** 1 for the first. */
  readonly number: number;
  /** Attempts that were made before an operator had the event sent again. */
  readonly attemptsBefore: number;
  /** Whether the store has a row for the event at this URL. */
  readonly hasRow: boolean;
}

export interface RunnerOfUrl {
  readonly url: WebhookUrl;
  readonly secrets: UrlSecrets;
  readonly parts: AttemptRunnerParts;
  readonly state: UrlState;
  /** Aborted where attempts under way are to be cut off. */
  readonly signal: AbortSignal;
}

export class AttemptRunner {
  readonly #urlId: number;
  readonly #parts: AttemptRunnerParts;
  readonly #state: UrlState;
  readonly #signal: AbortSignal;
  readonly #sender: DeliverySender;
  readonly #owner: AttemptOwner;

  constructor({ url, secrets, parts, state, signal }: RunnerOfUrl, owner: AttemptOwner) {
    this.#urlId = url.id;
    this.#parts = parts;
    this.#state = state;
    this.#signal = signal;
    this.#sender = new DeliverySender(url, secrets, parts);
    this.#owner = owner;
  }

  /** Makes an attempt. Resolves when the next one at the same lock may start. Rejects where the store can't be read. */
  async run({ event, number, attemptsBefore, hasRow }: PlannedAttempt): Promise<void> {
    const { queue, retries, order } = this.#state;
    const attempted = await this.#sender.attempt(event, number, this.#signal);
    if (attempted === undefined) return await this.#storeDamaged(event);
    // Cut off by our own stop: the cursor stays before the event, and the next start attempts it again.
    if (this.#signal.aborted) return;
    if (attempted.result.own !== undefined) return this.#notMade(attempted);
    const record = this.#sender.attemptRecord(attempted, attemptsBefore, hasRow);
    if (record.outcome.state === 'pending') order?.block(event.deviceId);
    queue.concluded(event);
    const concluded = this.#conclude(attempted, record);
    // The lock's next event need not wait for the disk: should this outcome be lost, the event is sent again by its id.
    if (record.outcome.state === 'delivered' && !hasRow) return this.#owner.recordLater(concluded);
    await concluded;
    retries.changed();
    if (record.outcome.state !== 'pending') await order?.release(event.deviceId);
  }

  /** Gives rows to events that wait behind an earlier one of their lock. */
  async storeBlocked(events: readonly StoredUplink[]): Promise<void> {
    const { queue, retries, order } = this.#state;
    const atMs = this.#parts.waits.now();
    for (const { deviceId } of events) order?.storing(deviceId);
    const blocked = events.map(({ id }) => ({ uplinkId: id, atMs }));
    const progress = { urlId: this.#urlId, attempts: [], blocked, cursor: queue.cursor };
    const isSetAside = (await this.#parts.record(progress, this.#owner)) === 'set-aside';
    retries.changed();
    for (const { id, deviceId } of events) {
      if (isSetAside) retries.setAside(id, deviceId);
      order?.stored(deviceId);
    }
    for (const deviceId of new Set(events.map((event) => event.deviceId))) await order?.release(deviceId);
  }

  /** A damaged event gets a row without an attempt, so that neither the cursor nor its lock's later events wait. */
  async #storeDamaged(event: StoredUplink): Promise<void> {
    const { events, runClock, record } = this.#parts;
    const { queue, retries, order } = this.#state;
    queue.concluded(event);
    const progress = { urlId: this.#urlId, attempts: [], damaged: [event.id], cursor: queue.cursor };
    if ((await record(progress, this.#owner)) === 'set-aside') retries.setAside(event.id, undefined);
    const { mac } = event;
    events.emit('event-damaged', { atMs: runClock.now(), mac, eventId: eventId(event), urlId: this.#urlId });
    retries.changed();
    await order?.release(event.deviceId);
  }

  /** A failure of our own has no outcome, and says nothing about the URL. */
  #notMade({ event, result: { own, error } }: Attempted): void {
    const { queue, availability } = this.#state;
    queue.putBack(event);
    availability.couldNotSend(this.#parts.waits.now());
    if (own !== undefined && !this.#owner.isStopped) this.#parts.stalled.stall(own, this.#urlId, error ?? own);
  }

  async #conclude(attempted: Attempted, record: AttemptRecord): Promise<void> {
    const { events, runClock, waits } = this.#parts;
    const urlId = this.#urlId;
    const { circuit, ...changed } = this.#judge(attempted);
    const { event, result } = attempted;
    if (circuit !== undefined) this.#reportCircuit(circuit, result.error ?? 'an attempt went well');
    const { disabledWhy } = changed;
    if (disabledWhy !== undefined) this.#owner.halt();
    const progress = { urlId, attempts: [record], cursor: this.#state.queue.cursor, ...changed };
    if ((await this.#parts.record(progress, this.#owner)) === 'set-aside') this.#setAside(event, record);
    events.emit('delivery', deliveryEvent(event, record, runClock.now(), waits));
    if (disabledWhy !== undefined) events.emit('url-disabled', { atMs: runClock.now(), urlId, why: disabledWhy });
  }

  /** No attempt until the store takes the outcome. Where it is `delivered`, the lock's later events need not wait. */
  #setAside({ id, deviceId }: StoredUplink, { outcome }: AttemptRecord): void {
    const isAwaited = this.#state.order !== undefined && outcome.state === 'pending';
    this.#state.retries.setAside(id, isAwaited ? deviceId : undefined);
  }

  /** What the result changes about the URL as a whole. */
  #judge({ result }: Attempted): AvailabilityChange {
    const { waits, stalled } = this.#parts;
    stalled.resume(this.#urlId);
    return this.#state.availability.note(result, waits.now(), waits.wall.now(), this.#owner.underWay);
  }

  #reportCircuit(state: 'opened' | 'closed', why: string): void {
    // The circuit of a worker that has stopped ends with it.
    if (this.#owner.isStopped) return;
    this.#parts.events.emit('circuit', { atMs: this.#parts.runClock.now(), urlId: this.#urlId, state, why });
  }
}

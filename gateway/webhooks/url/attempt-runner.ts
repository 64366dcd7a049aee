/**
 * Runs the attempts to deliver events (stored pings) to one URL, each from its start until its outcome is stored. The
 * worker (url-worker.ts) decides which attempt starts when. The URL's cursor is the position before its oldest events
 * without an outcome. The store's table of deliveries has no row for an event whose first attempt succeeds, unless the
 * event first had to wait for an earlier event of its lock (`storeBlocked`).
 *
 * An attempt ends in one of four ways:
 *
 * - It has an *outcome*: delivered, pending (to be retried) or dead (given up). The outcome is stored together with the
 *   cursor.
 * - It was *not made*, since this machine lacked something (own-failure.ts). Nothing is stored, and the event returns
 *   to its place in the queue.
 * - It was *cut off* by the worker's stop. Nothing is stored, and the next worker attempts the event again.
 * - Its outcome is *set aside*, since the store refuses this outcome only (progress-recorder.ts). Until the outcome is
 *   stored, the event is not attempted. At an ordered URL, the lock's later events wait too if the outcome is pending.
 *
 * An event whose stored ping is damaged is not attempted. It gets a row with the state `damaged`.
 */
import type { Clock } from '../../../proto/clock.js';
import type { GatewayEvents } from '../../events.js';
import type { StoredUplink } from '../../store/contract/log/stored-uplink.js';
import type { Store } from '../../store/contract/store.js';
import type { AttemptRecord, DeliveryProgress } from '../../store/contract/webhooks/delivery.js';
import type { WebhookUrl } from '../../store/contract/webhooks/webhook-url.js';
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
import type { Recorded, RecordingWorker } from './progress-recorder.js';
import type { StalledUrls } from './stalled-urls.js';
import type { AvailabilityChange, UrlAvailability } from './url-availability.js';
import type { UrlRetries } from './url-retries.js';

export interface AttemptRunnerParts extends DeliverySenderParts {
  readonly store: Store;
  /** Stamps the gateway's events: wall-clock time, except in a sped-up simulation. */
  readonly runClock: Clock;
  readonly events: GatewayEvents;
  readonly stalled: StalledUrls;
  /** Stores the progress soon; resolves when it is stored or set aside. Calls are stored in order. */
  readonly record: (progress: DeliveryProgress, by: RecordingWorker) => Promise<Recorded>;
}

/** The state of a URL while a worker follows it. */
export interface UrlState {
  readonly availability: UrlAvailability;
  readonly queue: EventQueue;
  readonly retries: UrlRetries;
  /** Only at an ordered URL, which gets each lock's events in order. */
  readonly order: LockOrder | undefined;
}

/** The part of the worker that its attempts use. */
export interface AttemptOwner extends RecordingWorker {
  /** The number of running attempts. */
  readonly underWay: number;
  readonly isStopped: boolean;
  /** Stops starting attempts: the URL is being disabled. */
  stopStarting(): void;
  /** The attempt has ended, but its outcome is still being stored. Only `stop` waits for `recorded`. */
  recordLater(recorded: Promise<void>): void;
}

/** An attempt to be made. */
export interface PlannedAttempt {
  readonly event: StoredUplink;
  /** The attempt's number at this event and URL, 1 for the first. */
  readonly number: number;
  /** Attempts made before an operator last had the event sent again. */
  readonly attemptsBefore: number;
  /** Whether the store's table of deliveries has a row for the event at this URL. */
  readonly hasRow: boolean;
}

/** What an {@link AttemptRunner} needs for its URL. */
export interface AttemptRunnerUrl {
  readonly url: WebhookUrl;
  readonly secrets: UrlSecrets;
  readonly parts: AttemptRunnerParts;
  readonly state: UrlState;
  /** Aborts running attempts. */
  readonly signal: AbortSignal;
}

export class AttemptRunner {
  readonly #urlId: number;
  readonly #parts: AttemptRunnerParts;
  readonly #state: UrlState;
  readonly #signal: AbortSignal;
  readonly #sender: DeliverySender;
  readonly #owner: AttemptOwner;

  constructor({ url, secrets, parts, state, signal }: AttemptRunnerUrl, owner: AttemptOwner) {
    this.#urlId = url.id;
    this.#parts = parts;
    this.#state = state;
    this.#signal = signal;
    this.#sender = new DeliverySender(url, secrets, parts);
    this.#owner = owner;
  }

  /** Makes an attempt. Resolves when the lock's next attempt may start. Rejects if the store can't be read. */
  async run({ event, number, attemptsBefore, hasRow }: PlannedAttempt): Promise<void> {
    const { queue, retries, order } = this.#state;
    const attempted = await this.#sender.attempt(event, number, this.#signal);
    if (attempted === undefined) return await this.#storeDamaged(event);
    // Cut off by the stop: the cursor stays before the event, and the next worker attempts the event again.
    if (this.#signal.aborted) return;
    if (attempted.result.ownFailure !== undefined) return this.#notMade(attempted);
    const record = this.#sender.attemptRecord(attempted, attemptsBefore, hasRow);
    if (record.outcome.state === 'pending') order?.block(event.deviceId);
    queue.concluded(event);
    const concluded = this.#conclude(attempted, record);
    // The lock's next event need not wait for the disk: if this outcome is lost, the event is sent again under its id.
    if (record.outcome.state === 'delivered' && !hasRow) return this.#owner.recordLater(concluded);
    await concluded;
    retries.changed();
    if (record.outcome.state !== 'pending') await order?.release(event.deviceId);
  }

  /**
   * Stores delivery rows for events that wait for an earlier event of their lock, so that the cursor can pass them. The
   * rows are due at once.
   */
  async storeBlocked(events: readonly StoredUplink[]): Promise<void> {
    const { queue, retries, order } = this.#state;
    const atMs = this.#parts.deliveryClock.now();
    for (const { deviceId } of events) order?.rowWriteStarted(deviceId);
    const blocked = events.map(({ id }) => ({ uplinkId: id, atMs }));
    const progress = { urlId: this.#urlId, attempts: [], blocked, cursor: queue.cursor };
    const isSetAside = (await this.#parts.record(progress, this.#owner)) === 'set-aside';
    retries.changed();
    for (const { id, deviceId } of events) {
      if (isSetAside) retries.setAside(id, deviceId);
      order?.rowWriteEnded(deviceId);
    }
    for (const deviceId of new Set(events.map((event) => event.deviceId))) await order?.release(deviceId);
  }

  /** Gives a damaged event a row without an attempt, so that neither the cursor nor its lock's later events wait. */
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

  /** Puts the event of an own failure (own-failure.ts) back into the queue: the attempt has no outcome. */
  #notMade({ event, result: { ownFailure, error } }: Attempted): void {
    const { queue, availability } = this.#state;
    queue.putBack(event);
    availability.couldNotSend(this.#parts.deliveryClock.now());
    if (ownFailure !== undefined && !this.#owner.isStopped)
      this.#parts.stalled.stall(ownFailure, this.#urlId, error ?? ownFailure);
  }

  /** Stores the attempt's outcome with what it changes at the URL, and announces both. */
  async #conclude(attempted: Attempted, record: AttemptRecord): Promise<void> {
    const { events, runClock, deliveryClock } = this.#parts;
    const urlId = this.#urlId;
    const { circuit, ...storedChange } = this.#noteResult(attempted);
    const { event, result } = attempted;
    if (circuit !== undefined) this.#reportCircuit(circuit, result.error ?? 'an attempt succeeded');
    const { disabledWhy } = storedChange;
    if (disabledWhy !== undefined) this.#owner.stopStarting();
    const progress = { urlId, attempts: [record], cursor: this.#state.queue.cursor, ...storedChange };
    if ((await this.#parts.record(progress, this.#owner)) === 'set-aside') this.#setAside(event, record);
    events.emit('delivery', deliveryEvent(event, record, runClock.now(), deliveryClock));
    if (disabledWhy !== undefined) events.emit('url-disabled', { atMs: runClock.now(), urlId, why: disabledWhy });
  }

  /**
   * Makes no attempt at the event until the store accepts its outcome. The lock's later events wait only if the outcome
   * is `pending`, since the event is final after `delivered` and `dead`.
   */
  #setAside({ id, deviceId }: StoredUplink, { outcome }: AttemptRecord): void {
    const blocksLock = this.#state.order !== undefined && outcome.state === 'pending';
    this.#state.retries.setAside(id, blocksLock ? deviceId : undefined);
  }

  /** Updates the URL's availability by the result. Returns what has changed. */
  #noteResult({ result }: Attempted): AvailabilityChange {
    const { deliveryClock, stalled } = this.#parts;
    stalled.resume(this.#urlId);
    return this.#state.availability.note(result, deliveryClock.now(), deliveryClock.wall.now(), this.#owner.underWay);
  }

  #reportCircuit(state: 'opened' | 'closed', why: string): void {
    // A stopped worker's circuit does not matter any more.
    if (this.#owner.isStopped) return;
    this.#parts.events.emit('circuit', { atMs: this.#parts.runClock.now(), urlId: this.#urlId, state, why });
  }
}

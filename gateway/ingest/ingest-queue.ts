/**
 * The queue in front of the judge: uplinks, other events of locks, and exclusive work, which runs while nothing is
 * being judged or committed. First in, first out, so that the judge sees everything in the order of arrival.
 */
import type {
  CommandEvent,
  ConnectEvent,
  DisconnectEvent,
  Finding,
  GatewayEvent,
  TickEvent,
} from '../../proto/power/judge/event.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Answer, PendingUplink, Sender } from './pending-uplink.js';

/** An event of a lock that is not an uplink. */
export type DeviceEvent = ConnectEvent | DisconnectEvent | CommandEvent | GatewayEvent | TickEvent;

/** Received bytes that can't be decoded as an uplink. They are stored in the quarantine. */
export interface QueuedRejection {
  readonly type: 'rejection';
  readonly sender: Sender;
  readonly bytes: Buffer;
  readonly rejection: { readonly code: string; readonly message: string };
  readonly receivedAtMs: number;
  readonly answer: Answer;
}

/** An event of a lock that is not an uplink, such as a connect, in the queue. */
export interface QueuedEvent {
  readonly type: 'event';
  readonly deviceId: number;
  readonly mac: Mac;
  readonly event: DeviceEvent;
  /**
   * Called when the event has been judged and stored, in order with the announcements of uplinks. `isRefused`: it is
   * the sending of a command, and the store refused it, so the command must not be sent.
   */
  readonly announce: (isRefused: boolean) => void;
  /** Whether the store refused it: it is the sending of a command that was cancelled, for example. */
  isRefused: boolean;
  /** The judge's findings about the event. */
  findings: readonly Finding[];
}

/** Exclusive work: runs while nothing is being judged or committed. */
export interface QueuedWork {
  readonly type: 'work';
  readonly deviceId: number;
  readonly run: () => Promise<void>;
  /** Whether uplinks of the lock that wait when the work ends are refused, since the lock's account has changed. */
  readonly refusesWaiting: boolean;
  /** Called when the work has ended, with its error if it failed. */
  readonly done: (error?: Error) => void;
}

/** An item that goes into the draft of a commit. */
export type Judgeable = PendingUplink | QueuedRejection | QueuedEvent;

/** An item of the queue. */
export type Queued = Judgeable | QueuedWork;

/** Number of removed items at the front of the array at which the array is copied without them. */
const MAX_REMOVED_ITEMS = 4096;

/**
 * A first-in, first-out queue with constant-time operations. It has no limit: callers of `add` must limit its length.
 */
export class IngestQueue {
  #items: Queued[] = [];
  /** The index of the first item. Items before it were removed. */
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  /** The next item; undefined if the queue is empty. */
  get first(): Queued | undefined {
    return this.#items[this.#head];
  }

  add(item: Queued): void {
    this.#items.push(item);
  }

  /** Removes the first item. The queue must not be empty. */
  removeFirst(): void {
    this.#head += 1;
    if (this.#head === this.#items.length) this.#items.length = 0;
    else if (this.#head < MAX_REMOVED_ITEMS) return;
    else this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }

  /** Puts items back at the front. */
  putBack(items: readonly Queued[]): void {
    this.#items = [...items, ...this.#items.slice(this.#head)];
    this.#head = 0;
  }

  /** Removes and returns the items for which `fits` returns true. */
  takeOut<T extends Queued>(fits: (item: Queued) => item is T): T[] {
    const items = this.#items.slice(this.#head);
    this.#items = items.filter((item) => !fits(item));
    this.#head = 0;
    return items.filter(fits);
  }
}

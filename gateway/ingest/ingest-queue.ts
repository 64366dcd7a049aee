/**
 * The queue of what is to be judged: uplinks, other events of locks, and exclusive work, which runs while nothing is
 * being judged or committed. It is first in, first out, so that the judge sees everything in the order of arrival.
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

/** Bytes that are no uplink, for quarantine. */
export interface QueuedRejection {
  readonly type: 'rejection';
  readonly sender: Sender;
  readonly bytes: Buffer;
  readonly rejection: { readonly code: string; readonly message: string };
  readonly receivedAtMs: number;
  readonly answer: Answer;
}

export interface QueuedEvent {
  readonly type: 'event';
  readonly deviceId: number;
  readonly mac: Mac;
  readonly event: DeviceEvent;
  /** Called when it has been judged and stored, in order with the announcements of uplinks. */
  readonly announce: () => void;
  /** The findings of judging it. */
  findings: readonly Finding[];
}

/** Exclusive work: it runs while nothing is being judged or committed. */
export interface QueuedWork {
  readonly type: 'work';
  readonly deviceId: number;
  readonly run: () => Promise<void>;
  /** Whether uplinks of the lock that wait when it ends are refused, since the lock's account has changed. */
  readonly turnsAway: boolean;
  /** Called when it ended, with its error if it failed. */
  readonly done: (error?: Error) => void;
}

export type Judgeable = PendingUplink | QueuedRejection | QueuedEvent;

export type Queued = Judgeable | QueuedWork;

/** How many removed items at the front are tolerated before the array is copied. */
const MAX_SLACK = 4096;

/** First in, first out, in constant time. It has no limit of its own: whoever adds has one. */
export class IngestQueue {
  #items: Queued[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  /** The next item; undefined where nothing waits. */
  get first(): Queued | undefined {
    return this.#items[this.#head];
  }

  add(waiting: Queued): void {
    this.#items.push(waiting);
  }

  /** Removes the first item. There must be one. */
  removeFirst(): void {
    this.#head += 1;
    if (this.#head === this.#items.length) this.#items.length = 0;
    else if (this.#head < MAX_SLACK) return;
    else this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }

  /** Puts items back at the front. */
  putBack(waiting: readonly Queued[]): void {
    this.#items = [...waiting, ...this.#items.slice(this.#head)];
    this.#head = 0;
  }

  /** Removes and returns the items for which `fits` is true. */
  takeOut<T extends Queued>(fits: (waiting: Queued) => waiting is T): T[] {
    const items = this.#items.slice(this.#head);
    this.#items = items.filter((waiting) => !fits(waiting));
    this.#head = 0;
    return items.filter(fits);
  }
}

/**
 * What waits to be judged: what locks sent, what else happened to them, and work that is done while nothing else is. It
 * is first in, first out, so that the judge hears of everything in the order in which it happened.
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

/** What happens to a lock besides its uplinks. */
export type DeviceEvent = ConnectEvent | DisconnectEvent | CommandEvent | GatewayEvent | TickEvent;

export interface QueuedRejection {
  readonly type: 'rejection';
  readonly sender: Sender;
  readonly bytes: Buffer;
  readonly rejection: { readonly code: string; readonly message: string };
  readonly receivedAtMs: number;
  readonly answer: Answer;
}

export interface QueuedEvent {
  readonly type: 'happening';
  readonly deviceId: number;
  readonly mac: Mac;
  readonly event: DeviceEvent;
  /** Called when it has been judged and stored, in order with what is told of uplinks. */
  readonly announce: () => void;
  /** What judging it brought. */
  findings: readonly Finding[];
}

/** Something that is done to a lock while nothing of any lock is being judged or committed. */
export interface QueuedWork {
  readonly type: 'work';
  readonly deviceId: number;
  readonly run: () => Promise<void>;
  /** Whether uplinks of the lock that wait by its end are turned away, since its account is another one then. */
  readonly turnsAway: boolean;
  /** Told how it ended. */
  readonly ended: (error?: Error) => void;
}

export type Judgeable = PendingUplink | QueuedRejection | QueuedEvent;

export type Queued = Judgeable | QueuedWork;

/** Places at the front that were left, from which on they are given up though something waits behind them. */
const LEFT_MOST = 4096;

/** First in, first out; taking one costs the same however many wait. Whoever adds has a limit of its own. */
export class IngestQueue {
  #line: Queued[] = [];
  #head = 0;

  get length(): number {
    return this.#line.length - this.#head;
  }

  /** Who is next; undefined where nothing waits. */
  get first(): Queued | undefined {
    return this.#line[this.#head];
  }

  add(waiting: Queued): void {
    this.#line.push(waiting);
  }

  /** Takes the first out, of which there is one. */
  leave(): void {
    this.#head += 1;
    if (this.#head === this.#line.length) this.#line.length = 0;
    else if (this.#head < LEFT_MOST) return;
    else this.#line = this.#line.slice(this.#head);
    this.#head = 0;
  }

  /** These were first, and are again. */
  putBack(waiting: readonly Queued[]): void {
    this.#line = [...waiting, ...this.#line.slice(this.#head)];
    this.#head = 0;
  }

  /** Takes those out that `fits` lets through. */
  takeOut<T extends Queued>(fits: (waiting: Queued) => waiting is T): T[] {
    const line = this.#line.slice(this.#head);
    this.#line = line.filter((waiting) => !fits(waiting));
    this.#head = 0;
    return line.filter(fits);
  }
}

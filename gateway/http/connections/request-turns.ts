/**
 * Requests that a client sends without waiting for the answers (pipelining, RFC 9112 §9.3.2) are served one after the
 * other, one in each turn of the event loop.
 *
 * Node hands over every request that it has read, a thousand of one connection at once. The answers of all but the
 * first would be made, and kept, until those before them have gone out; and a response that waits behind another never
 * hears that its client has hung up, so that whatever it has open stays open. Here the next request begins when the
 * response before it is closed. What waits costs its head alone, and is forgotten with the connection.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterThisTurn } from '../../../proto/clock.js';
import type { LoopShare } from './loop-share.js';

export interface TurnLimits {
  /** Requests that may wait behind the one under way, of one connection. */
  readonly waitingOfOne: number;
  /** Requests that may wait, of all connections of the port. */
  readonly waiting: number;
}

export const TURN_LIMITS: TurnLimits = { waitingOfOne: 1_000, waiting: 8_000 };

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

type Waiting = readonly [request: IncomingMessage, response: ServerResponse];

/** How many requests of all connections wait. */
export class WaitingCount {
  count = 0;
}

export interface TurnOptions {
  /** Called with each request when its turn has come. */
  readonly handle: RequestHandler;
  /** Nothing is under way any more, and nothing waits. */
  readonly onIdle: () => void;
  /** Shared by all connections of a port. */
  readonly all: WaitingCount;
  /** So is this. */
  readonly share: LoopShare;
  readonly limits?: TurnLimits;
}

/** The requests of one connection. */
export class RequestTurns {
  readonly #limits: TurnLimits;
  readonly #all: WaitingCount;
  readonly #share: LoopShare;
  readonly #handle: RequestHandler;
  readonly #onIdle: () => void;
  /** In the order of their arrival; taken from `#next` on. */
  #waiting: Waiting[] = [];
  #next = 0;
  #isBusy = false;
  #isClosed = false;

  constructor({ handle, onIdle, all, share, limits = TURN_LIMITS }: TurnOptions) {
    this.#handle = handle;
    this.#onIdle = onIdle;
    this.#all = all;
    this.#share = share;
    this.#limits = limits;
  }

  /** Takes a request; false where too many wait already, and the connection is to be ended. */
  take(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.#isClosed) return true;
    if (!this.#isBusy) {
      this.#begin([request, response]);
      return true;
    }
    if (this.#count >= this.#limits.waitingOfOne || this.#all.count >= this.#limits.waiting) return false;
    this.#waiting.push([request, response]);
    this.#all.count += 1;
    return true;
  }

  /** The connection is closed: what waits is forgotten. */
  close(): void {
    this.#isClosed = true;
    this.#all.count -= this.#count;
    this.#waiting = [];
    this.#next = 0;
  }

  get #count(): number {
    return this.#waiting.length - this.#next;
  }

  #begin([request, response]: Waiting): void {
    this.#isBusy = true;
    response.once('close', () => {
      // Others have their turn first, however many wait here.
      if (this.#count > 0) afterThisTurn(() => this.#goOn());
      else this.#rest();
    });
    this.#share.run(() => {
      // Its client may have gone while it waited.
      if (!this.#isClosed) this.#handle(request, response);
    });
  }

  #goOn(): void {
    const next = this.#waiting[this.#next];
    // An answer may be the last one of its connection, which ends by itself then.
    if (next === undefined || !next[0].socket.writable) {
      this.#rest();
      return;
    }
    this.#next += 1;
    this.#all.count -= 1;
    if (this.#next === this.#waiting.length) {
      this.#waiting = [];
      this.#next = 0;
    }
    this.#begin(next);
  }

  #rest(): void {
    this.#isBusy = false;
    this.#onIdle();
  }
}

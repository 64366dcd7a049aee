/**
 * Serves a client's pipelined requests (sent without waiting for answers, RFC 9112 §9.3.2) one after the other, one per
 * turn of the event loop.
 *
 * Node hands over every request that it has read, up to a thousand of one connection at once. All but the first answer
 * would be made and held until those before it are sent; and a response that waits behind another never learns that its
 * client has hung up, so whatever it has open stays open. Here the next request starts when the response before it is
 * closed. A waiting request costs only its head, and is dropped with the connection.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterThisTurn } from '../../../proto/clock.js';
import type { LoopShare } from './loop-share.js';

export interface TurnLimits {
  /** Requests of one connection that may wait behind the current one. */
  readonly waitingOfOne: number;
  /** Requests of all connections of the port that may wait. */
  readonly waiting: number;
}

export const TURN_LIMITS: TurnLimits = { waitingOfOne: 1_000, waiting: 8_000 };

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

type Waiting = readonly [request: IncomingMessage, response: ServerResponse];

/** The number of waiting requests of all connections. */
export class WaitingCount {
  count = 0;
}

export interface TurnOptions {
  /** Called with each request in its turn. */
  readonly handle: RequestHandler;
  /** Called when nothing is being served and nothing waits. */
  readonly onIdle: () => void;
  /** Shared by all connections of a port. */
  readonly all: WaitingCount;
  /** Shared by all connections of a port. */
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

  /** Takes a request; false if too many wait already, and the caller must close the connection. */
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

  /** The connection is closed: drops what waits. */
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
      // Other connections have their turn first.
      if (this.#count > 0) afterThisTurn(() => this.#goOn());
      else this.#rest();
    });
    this.#share.run(() => {
      // The client may have hung up while it waited.
      if (!this.#isClosed) this.#handle(request, response);
    });
  }

  #goOn(): void {
    const next = this.#waiting[this.#next];
    // The previous answer may have been the last of its connection.
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

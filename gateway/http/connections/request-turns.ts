/**
 * Serves a client's pipelined requests (sent without waiting for answers, RFC 9112 §9.3.2) one after another, one per
 * turn of the event loop.
 *
 * Node emits every request that it has read, up to a thousand of one connection at once. If all were served at once,
 * each answer would be held in memory until all earlier answers of the connection are sent. Also, a response that waits
 * behind another gets no event when its client hangs up, so its resources would stay open. Here a request starts when
 * the previous response is closed. A waiting request costs only its head, and is dropped with the connection.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterThisTurn } from '../../../proto/clock.js';
import type { LoopShare } from './loop-share.js';

export interface TurnLimits {
  /** Maximum number of waiting requests of one connection. */
  readonly perConnection: number;
  /** Maximum number of waiting requests of all connections of the port. */
  readonly total: number;
}

export const TURN_LIMITS: TurnLimits = { perConnection: 1_000, total: 8_000 };

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

type WaitingRequest = readonly [request: IncomingMessage, response: ServerResponse];

/** The number of waiting requests of all connections of a port. */
export class WaitingCount {
  count = 0;
}

export interface TurnOptions {
  /** Called with each request in its turn. */
  readonly handle: RequestHandler;
  /** Called when no request is being served and none waits. */
  readonly onIdle: () => void;
  /** The number of waiting requests of all connections of the port. */
  readonly all: WaitingCount;
  /** Starts the requests of all connections of the port, some in each turn of the event loop. */
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
  /** Waiting requests in the order of their arrival; those before `#next` have started. */
  #waiting: WaitingRequest[] = [];
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

  /** Accepts a request. Returns false if too many wait already; the caller must then close the connection. */
  take(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.#isClosed) return true;
    if (!this.#isBusy) {
      this.#serve([request, response]);
      return true;
    }
    if (this.#count >= this.#limits.perConnection || this.#all.count >= this.#limits.total) return false;
    this.#waiting.push([request, response]);
    this.#all.count += 1;
    return true;
  }

  /** Drops the waiting requests; to be called when the connection is closed. */
  close(): void {
    this.#isClosed = true;
    this.#all.count -= this.#count;
    this.#waiting = [];
    this.#next = 0;
  }

  get #count(): number {
    return this.#waiting.length - this.#next;
  }

  #serve([request, response]: WaitingRequest): void {
    this.#isBusy = true;
    response.once('close', () => {
      // Other connections get a turn first.
      if (this.#count > 0) afterThisTurn(() => this.#serveNext());
      else this.#becomeIdle();
    });
    this.#share.run(() => {
      // The client may have hung up meanwhile.
      if (!this.#isClosed) this.#handle(request, response);
    });
  }

  #serveNext(): void {
    const next = this.#waiting[this.#next];
    // The previous answer may have closed the connection.
    if (next === undefined || !next[0].socket.writable) {
      this.#becomeIdle();
      return;
    }
    this.#next += 1;
    this.#all.count -= 1;
    if (this.#next === this.#waiting.length) {
      this.#waiting = [];
      this.#next = 0;
    }
    this.#serve(next);
  }

  #becomeIdle(): void {
    this.#isBusy = false;
    this.#onIdle();
  }
}

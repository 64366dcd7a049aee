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
import type { PagePace } from './page-pace.js';

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
  /** Spreads what our pages read, on all ports. */
  readonly pages: PagePace;
  readonly limits?: TurnLimits;
}

/** The requests of one connection. */
export class RequestTurns {
  readonly #limits: TurnLimits;
  readonly #all: WaitingCount;
  readonly #share: LoopShare;
  readonly #pages: PagePace;
  readonly #handle: RequestHandler;
  readonly #onIdle: () => void;
  /** In the order of their arrival. */
  #waiting: WaitingRequest[] = [];
  #isBusy = false;
  /** Takes the request that is served, if it has not started, out of the line of those that wait. */
  #giveUpTurn: (() => void) | undefined;
  #isClosed = false;

  constructor({ handle, onIdle, all, share, pages, limits = TURN_LIMITS }: TurnOptions) {
    this.#handle = handle;
    this.#onIdle = onIdle;
    this.#all = all;
    this.#share = share;
    this.#pages = pages;
    this.#limits = limits;
  }

  /** Accepts a request. Returns false if too many wait already; the caller must then close the connection. */
  take(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.#isClosed) return true;
    if (!this.#isBusy) {
      this.#serve([request, response]);
      return true;
    }
    if (this.#waiting.length >= this.#limits.perConnection || this.#all.count >= this.#limits.total) return false;
    this.#waiting.push([request, response]);
    this.#all.count += 1;
    return true;
  }

  /** Drops the waiting requests; to be called when the connection is closed. */
  close(): void {
    this.#isClosed = true;
    this.#giveUpTurn?.();
    this.#all.count -= this.#waiting.length;
    this.#waiting = [];
  }

  #serve([request, response]: WaitingRequest): void {
    this.#isBusy = true;
    response.once('close', () => {
      // Other connections get a turn first.
      if (this.#waiting.length > 0) afterThisTurn(() => this.#serveNext());
      else this.#becomeIdle();
    });
    const start = (): void => {
      // The client may have hung up meanwhile.
      if (!this.#isClosed) this.#handle(request, response);
    };
    this.#giveUpTurn = this.#pages.run(request, () => this.#share.run(start));
  }

  #serveNext(): void {
    const [next] = this.#waiting;
    // The previous answer may have closed the connection.
    if (next === undefined || !next[0].socket.writable) {
      this.#becomeIdle();
      return;
    }
    this.#waiting.shift();
    this.#all.count -= 1;
    this.#serve(next);
  }

  #becomeIdle(): void {
    this.#isBusy = false;
    this.#onIdle();
  }
}

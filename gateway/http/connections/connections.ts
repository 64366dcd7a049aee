/**
 * Manages the connections of one HTTP port: decides which of them may stay (places.ts), and which request is served
 * next (request-turns.ts). The merchants' and the operators' port have an instance each. Does not read or answer
 * requests.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { DescriptorRoom } from '../../network/descriptors.js';
import type { TrustedProxies } from '../../network/trusted-proxies.js';
import { HTTP_LIMITS } from '../shared/limits.js';
import { LoopShare } from './loop-share.js';
import { PagePace } from './page-pace.js';
import { type OpenConnection, type PlaceLimits, Places } from './places.js';
import { type RequestHandler, RequestTurns, WaitingCount } from './request-turns.js';
import { limitUnreadBody } from './unread-body.js';

export interface ConnectionsOptions {
  readonly limits: PlaceLimits;
  readonly proxies: TrustedProxies;
  /** Whether the process has a free file descriptor for a connection; by default it always has. */
  readonly roomFor?: (socket: Socket) => DescriptorRoom;
  /** Spreads what our pages read; by default it starts at once. */
  readonly pages?: PagePace;
  /** Reads a monotonic clock in ms; tests pass their own. */
  readonly monotonic?: () => number;
}

/**
 * How many connections were closed for lack of room, or for too many pipelined requests (sent without waiting for
 * answers), since the start.
 */
export interface EndedConnections {
  /** Silent or idle connections that were closed to make room for a new one. */
  evicted: number;
  /** New connections for which there was no room. */
  refused: number;
  /** Connections with more waiting requests than allowed. */
  pipelined: number;
}

/** An open connection, which holds a place (places.ts) and whose requests take turns. */
interface Connection extends OpenConnection {
  readonly turns: RequestTurns;
}

export class HttpConnections {
  readonly ended: EndedConnections = { evicted: 0, refused: 0, pipelined: 0 };
  readonly #options: ConnectionsOptions;
  readonly #places: Places;
  readonly #waiting = new WaitingCount();
  readonly #share: LoopShare;
  readonly #pages: PagePace;
  readonly #connections = new WeakMap<Socket, Connection>();

  constructor(options: ConnectionsOptions) {
    this.#options = options;
    this.#places = new Places(options.limits);
    this.#share = new LoopShare(options.monotonic);
    this.#pages = options.pages ?? new PagePace({ isBusy: () => false });
  }

  /** The number of open connections. */
  get count(): number {
    return this.#places.count;
  }

  /** Whether the request came over a connection of the reserve, which is for operators and probes only. */
  isReserved(request: IncomingMessage): boolean {
    const connection = this.#connections.get(request.socket);
    return connection !== undefined && this.#places.isReserved(connection);
  }

  /** A server whose requests go to `handle`, for Fastify. */
  readonly makeServer = (handle: RequestHandler): Server => {
    const { keepAliveTimeout, requestTimeout, http } = HTTP_LIMITS;
    const server = createServer({ ...http, keepAliveTimeout, requestTimeout });
    const { total, reserve } = this.#options.limits;
    // A safety net: Node itself closes connections beyond this number. One more than the places, so that `#admit` can
    // close an old connection for a new one.
    server.maxConnections = total + reserve + 1;
    server.on('connection', (socket) => this.#admit(socket, handle));
    server.on('request', (request, response) => this.#take(request, response));
    // A connection that can't be accepted, for example for lack of a descriptor, must not affect open connections.
    server.on('error', () => undefined);
    return server;
  };

  #admit(socket: Socket, handle: RequestHandler): void {
    const address = socket.remoteAddress;
    // Node has no address for a socket that is closed already.
    if (address === undefined) return void socket.destroy();
    const connection: Connection = {
      address,
      isProxy: this.#options.proxies.trusts(address),
      end: () => {
        this.ended.evicted += 1;
        socket.destroy();
      },
      turns: new RequestTurns({
        handle,
        onIdle: () => this.#places.note(connection, 'idle'),
        all: this.#waiting,
        share: this.#share,
        pages: this.#pages,
      }),
    };
    if (!this.#places.admit(connection, this.#options.roomFor?.(socket))) {
      this.ended.refused += 1;
      return void socket.destroy();
    }
    this.#connections.set(socket, connection);
    socket.once('close', () => {
      this.#places.leave(connection);
      connection.turns.close();
    });
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.#connections.get(socket);
    if (connection === undefined) return void socket.destroy();
    // A connection of the reserve serves only one request.
    if (this.#places.isReserved(connection)) response.shouldKeepAlive = false;
    this.#places.note(connection, 'busy');
    limitUnreadBody(request, response);
    if (connection.turns.take(request, response)) return;
    this.ended.pipelined += 1;
    socket.destroy();
  }
}

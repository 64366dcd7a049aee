/**
 * Listens for locks over TCP or TLS, and hands each connection to its owner. It must not know MQTT.
 *
 * For TLS too, the server is a plain TCP server: the byte counts of the raw socket are what went over the air,
 * handshake included. A TLSSocket counts decrypted bytes.
 */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { type SecureContext, TLSSocket } from 'node:tls';
import { listenFailure } from '../listen-failure.js';
import type { ProxiedConnections } from './proxied-connections.js';
import type { SocketCopier, SocketCopy } from './socket-copier.js';

/** Connections that the system queues until they are accepted: after an outage all locks connect at once. */
const MAX_QUEUED_CONNECTIONS = 4096;
/** How many copies of its socket a listener has, each of which accepts a connection in a turn of the event loop. */
const SOCKET_COPIES = 7;

/** A connection of which no byte has been read yet. */
export interface Connection {
  /** Transports MQTT, decrypted. */
  readonly stream: Socket;
  /** The TCP socket, which counts the bytes that went over the air. Without TLS it is `stream` itself. */
  readonly raw: Socket;
  /** The client's address: behind a balancer that says so, not the balancer's. */
  readonly address: string;
  /** How many of the socket's first bytes were a balancer's header, and did not go over the air. */
  readonly headerBytes: number;
}

export interface ListenerOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** Returns the current certificate and key; plain TCP if undefined. */
  readonly tls?: (() => SecureContext) | undefined;
  /** Finds the addresses of clients behind balancers. */
  readonly proxied: ProxiedConnections;
  readonly onConnection: (connection: Connection) => void;
}

export class Listener {
  readonly #options: ListenerOptions;
  readonly #server: Server;
  /** Those that listen on copies of the server's socket. */
  readonly #copies: Server[] = [];

  private constructor(options: ListenerOptions) {
    this.#options = options;
    this.#server = this.#createServer();
  }

  #createServer(): Server {
    const { tls, proxied, onConnection } = this.#options;
    return createServer({ noDelay: true }, (raw) => {
      const socketAddress = raw.remoteAddress;
      // No address: the client has disconnected already.
      if (socketAddress === undefined) return void raw.destroy();
      proxied.take(raw, socketAddress, (address, headerBytes) => {
        const stream = tls === undefined ? raw : new TLSSocket(raw, { isServer: true, secureContext: tls() });
        onConnection({ stream, raw, address, headerBytes });
      });
    });
  }

  /** @throws LockgateError `port-taken`, `input-address` */
  static async start(options: ListenerOptions): Promise<Listener> {
    const listener = new Listener(options);
    await listener.#listen();
    return listener;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Copies the socket, so that several connections are accepted in one turn of the event loop. */
  async copySocket(copier: Pick<SocketCopier, 'copy'>): Promise<void> {
    for (const copy of await copier.copy(this.#server, SOCKET_COPIES)) {
      // It may have been closed meanwhile.
      if (this.#server.listening) this.#listenOn(copy);
      else copy.close();
    }
  }

  /** Accepts no new connections; resolves when the last one has closed. */
  async close(): Promise<void> {
    const closed = (server: Server): Promise<void> => new Promise((resolve) => server.close(() => resolve()));
    await Promise.all([this.#server, ...this.#copies].map(closed));
  }

  #listenOn(copy: SocketCopy): void {
    const server = this.#createServer();
    // An error leaves one server less, which only makes the listener slower.
    server.on('error', () => undefined);
    server.listen(copy, MAX_QUEUED_CONNECTIONS);
    this.#copies.push(server);
  }

  async #listen(): Promise<void> {
    const { host, port } = this.#options;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error) => reject(listenFailure('MQTT', { host, port }, error)));
      this.#server.listen({ port, host, backlog: MAX_QUEUED_CONNECTIONS }, () => {
        // An accept that fails, such as for lack of file descriptors, must not stop the listener.
        this.#server.on('error', () => undefined);
        resolve();
      });
    });
  }
}

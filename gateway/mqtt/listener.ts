/**
 * Where locks' connections come in: listens, over TCP or TLS, and hands each connection on. It knows nothing of MQTT.
 *
 * The TCP server is ours for TLS too, so that the raw socket is at hand: its counts are what went over the air, the
 * handshake included, where those of a TLSSocket are what was said.
 */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { type SecureContext, TLSSocket } from 'node:tls';
import { listenFailure } from '../listen-failure.js';

/** Connections that the system keeps until they are taken: after an outage all locks come at once. */
const BACKLOG = 4096;

/** A connection from its first byte. */
export interface Connection {
  /** What MQTT is spoken on. */
  readonly stream: Socket;
  /** The socket under it, whose counts are what went over the air: over TLS it is another one than `stream`. */
  readonly raw: Socket;
  readonly address: string;
}

export interface ListenerOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** What to prove ourselves with to those who connect now; plain TCP where it is left out. */
  readonly tls?: (() => SecureContext) | undefined;
  readonly onConnection: (connection: Connection) => void;
}

export class Listener {
  readonly #server: Server;

  private constructor({ tls, onConnection }: ListenerOptions) {
    this.#server = createServer({ noDelay: true }, (raw) => {
      const address = raw.remoteAddress;
      // It has gone already.
      if (address === undefined) return void raw.destroy();
      const stream = tls === undefined ? raw : new TLSSocket(raw, { isServer: true, secureContext: tls() });
      onConnection({ stream, raw, address });
    });
  }

  /** @throws LockgateError `port-taken`, `input-address` */
  static async start(options: ListenerOptions): Promise<Listener> {
    const listener = new Listener(options);
    await listener.#listen(options);
    return listener;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Takes no new connection; resolves when the last one is gone. */
  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  async #listen({ host, port }: ListenerOptions): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error) => reject(listenFailure('MQTT', { host, port }, error)));
      this.#server.listen({ port, host, backlog: BACKLOG }, () => {
        // One connection that can't be taken, for want of a file descriptor say, must not end the others.
        this.#server.on('error', () => undefined);
        resolve();
      });
    });
  }
}

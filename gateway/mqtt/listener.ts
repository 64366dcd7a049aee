/** Where locks' connections come in: listens, and hands each socket on. It knows nothing of MQTT. */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { LockgateError } from '../../proto/errors.js';

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
  readonly onConnection: (connection: Connection) => void;
}

export class Listener {
  readonly #server: Server;
  readonly #open = new Set<Connection>();

  private constructor(options: ListenerOptions) {
    this.#server = createServer((socket) => {
      const connection = { stream: socket, raw: socket, address: socket.remoteAddress ?? '' };
      this.#open.add(connection);
      socket.on('close', () => this.#open.delete(connection));
      socket.setNoDelay(true);
      options.onConnection(connection);
    });
  }

  /** @throws LockgateError `port-taken` */
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

  /** Reads no byte any more. */
  pauseAll(): void {
    for (const { stream } of this.#open) stream.pause();
  }

  /**
   * Says goodbye to every connection: what was written still arrives, then the end. What comes meanwhile is read and
   * thrown away, because closing a socket with bytes unread resets it, and a reset takes from the other side what it
   * has not read yet, PUBACKs too.
   */
  endAll(): void {
    for (const { stream } of this.#open) {
      stream.removeAllListeners('readable').on('data', () => undefined);
      stream.resume();
      stream.end();
    }
  }

  /** Ends every connection, without ceremony. */
  destroyAll(): void {
    for (const { stream } of this.#open) stream.destroy();
  }

  async #listen({ host, port }: ListenerOptions): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EADDRINUSE') return reject(error);
        reject(new LockgateError('port-taken', `MQTT can't listen on ${host}:${port}: something else does already`));
      });
      this.#server.listen(port, host, resolve);
    });
  }
}

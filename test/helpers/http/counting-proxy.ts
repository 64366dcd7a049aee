/**
 * A TCP proxy that counts the bytes between lock and gateway, as a mobile network would bill them. It does not parse
 * the bytes, so TLS is counted as well.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { ChangeSignal } from '../clocks/change-signal.js';
import type { Teardown } from '../store/temp-folder.js';

/** One connection through the proxy; `up` is from the lock to the gateway. */
export interface ProxiedConnection {
  /** Bytes so far from the lock to the gateway, and from the gateway to the lock. */
  up: number;
  down: number;
  /** Whether both sides are closed. */
  isClosed: boolean;
}

/** The proxy, and the counts of its connections. */
export class CountingProxy {
  readonly connections: ProxiedConnection[] = [];
  readonly #server: Server;
  readonly #changeSignal = new ChangeSignal();
  readonly #sockets = new Set<Socket>();

  private constructor(target: () => number) {
    this.#server = createServer({ allowHalfOpen: true }, (lock) => this.#forward(lock, target()));
  }

  /** Forwards each connection to the port that `target` returns at that time. */
  static async start(test: Teardown, target: () => number): Promise<CountingProxy> {
    const proxy = new CountingProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    test.teardown(() => {
      for (const socket of proxy.#sockets) socket.destroy();
      return new Promise<void>((resolve) => proxy.#server.close(() => resolve()));
    });
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The bytes of all connections together. */
  get bytes(): { up: number; down: number } {
    const sum = (of: (connection: ProxiedConnection) => number): number =>
      this.connections.map(of).reduce((a, b) => a + b, 0);
    return { up: sum(({ up }) => up), down: sum(({ down }) => down) };
  }

  /** Resolves when at least `count` connections were made and all of them are closed. */
  async waitForAllClosed(count: number): Promise<void> {
    await this.waitUntil(() => this.connections.length >= count && this.connections.every(({ isClosed }) => isClosed));
  }

  /** Resolves when the condition is true; checks it after each chunk and close. @throws Error after 20 s */
  async waitUntil(condition: () => boolean): Promise<void> {
    await this.#changeSignal.waitUntil(
      condition,
      20,
      () => `the proxy, where there were ${JSON.stringify(this.connections)}`,
    );
  }

  #forward(lock: Socket, port: number): void {
    const gateway = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    const connection: ProxiedConnection = { up: 0, down: 0, isClosed: false };
    this.connections.push(connection);
    // The socket to the lock and the socket to the gateway.
    let openSides = 2;
    const forwardBytes = (from: Socket, to: Socket, count: (bytes: number) => void): void => {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on('data', (chunk: Buffer) => {
        count(chunk.length);
        to.write(chunk);
        this.#changeSignal.notify();
      });
      from.on('end', () => to.end());
      from.on('error', () => to.destroy());
      from.on('close', () => {
        openSides -= 1;
        connection.isClosed = openSides === 0;
        to.destroySoon();
        this.#sockets.delete(from);
        this.#changeSignal.notify();
      });
    };
    forwardBytes(lock, gateway, (bytes) => {
      connection.up += bytes;
    });
    forwardBytes(gateway, lock, (bytes) => {
      connection.down += bytes;
    });
  }
}

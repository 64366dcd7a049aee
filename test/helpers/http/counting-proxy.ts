/**
 * A TCP proxy that counts: what a network between lock and gateway would put on its bill. It understands nothing of
 * what passes, so it counts TLS as well.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Bell } from '../clocks/bell.js';
import type { Teardown } from '../store/temp-folder.js';

/** One connection through the proxy. */
export interface Passed {
  /** Bytes from the lock, and to it. */
  up: number;
  down: number;
  /** Both sides are closed. */
  isOver: boolean;
}

export class CountingProxy {
  readonly connections: Passed[] = [];
  readonly #server: Server;
  readonly #bell = new Bell();
  readonly #sockets = new Set<Socket>();

  private constructor(target: () => number) {
    this.#server = createServer({ allowHalfOpen: true }, (lock) => this.#pass(lock, target()));
  }

  /** Passes everything on to the port that `target` says when a connection comes. */
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

  /** All connections together. */
  get bytes(): { up: number; down: number } {
    const sum = (of: (passed: Passed) => number): number => this.connections.map(of).reduce((a, b) => a + b, 0);
    return { up: sum(({ up }) => up), down: sum(({ down }) => down) };
  }

  /** Resolves when so many connections were made, and all of them are over. */
  async over(count: number): Promise<void> {
    await this.until(() => this.connections.length >= count && this.connections.every(({ isOver }) => isOver));
  }

  /** Resolves when what has passed `fits`. */
  async until(fits: () => boolean): Promise<void> {
    await this.#bell.until(fits, 20, () => `the proxy, where there were ${JSON.stringify(this.connections)}`);
  }

  #pass(lock: Socket, port: number): void {
    const gateway = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    const passed: Passed = { up: 0, down: 0, isOver: false };
    this.connections.push(passed);
    let open = 2;
    const join = (from: Socket, to: Socket, count: (bytes: number) => void): void => {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on('data', (chunk: Buffer) => {
        count(chunk.length);
        to.write(chunk);
        this.#bell.ring();
      });
      from.on('end', () => to.end());
      from.on('error', () => to.destroy());
      from.on('close', () => {
        open -= 1;
        passed.isOver = open === 0;
        to.destroySoon();
        this.#sockets.delete(from);
        this.#bell.ring();
      });
    };
    join(lock, gateway, (bytes) => {
      passed.up += bytes;
    });
    join(gateway, lock, (bytes) => {
      passed.down += bytes;
    });
  }
}

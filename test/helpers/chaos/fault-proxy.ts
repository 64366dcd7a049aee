/**
 * A TCP proxy between a gateway and its database that fails as networks do: it resets connections, refuses new ones,
 * lets nothing pass without closing anything (a half-open link), delays all bytes, or holds them back for a while.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { type Milliseconds, systemClock } from '../../../proto/clock.js';
import type { Teardown } from '../store/temp-folder.js';

/** One connection: from the gateway, and on to the database. */
interface Link {
  readonly sockets: readonly [Socket, Socket];
  /** Whether nothing passes any more. */
  isSilent: boolean;
  /** What waits to be passed on, in order, while the link is held; undefined while it is not. */
  held: (() => void)[] | undefined;
}

/** The proxy; a test or a fault makes it fail. */
export class FaultProxy {
  readonly #server: Server;
  readonly #target: () => number;
  readonly #links = new Set<Link>();
  /** Whether new connections are closed at once. */
  isRefusing = false;
  /** How long bytes take in each direction. */
  delayMs: Milliseconds = 0;
  /** How many pieces of data have come from the gateway, at least one for each statement. */
  sent = 0;

  private constructor(target: () => number) {
    this.#target = target;
    this.#server = createServer((gateway) => this.#open(gateway));
  }

  /** Forwards each new connection to the port that `target` returns at that time. */
  static async start(test: Teardown, target: () => number): Promise<FaultProxy> {
    const proxy = new FaultProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, '127.0.0.1', resolve));
    test.teardown(() => {
      proxy.cut();
      return new Promise<void>((resolve) => proxy.#server.close(() => resolve()));
    });
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Resets all connections. */
  cut(): void {
    for (const { sockets } of this.#links) for (const socket of sockets) socket.resetAndDestroy();
  }

  /** Lets nothing pass on the present connections any more, without closing them. */
  silence(): void {
    for (const link of this.#links) link.isSilent = true;
  }

  /** Holds back all bytes of the present connections. Returns a function that lets them pass, late. */
  hold(): () => void {
    const links = [...this.#links];
    for (const link of links) link.held ??= [];
    return () => {
      for (const link of links) {
        const late = link.held ?? [];
        link.held = undefined;
        for (const pass of late) pass();
      }
    };
  }

  #open(gateway: Socket): void {
    if (this.isRefusing) {
      gateway.resetAndDestroy();
      return;
    }
    const database = connect({ port: this.#target(), host: '127.0.0.1', noDelay: true });
    const link: Link = { sockets: [gateway, database], isSilent: false, held: undefined };
    this.#links.add(link);
    this.#forward(link, gateway, database);
    this.#forward(link, database, gateway);
  }

  #forward(link: Link, from: Socket, to: Socket): void {
    from.setNoDelay(true);
    from.on('error', () => undefined);
    from.on('data', (chunk: Buffer) => {
      if (from === link.sockets[0]) this.sent += 1;
      if (this.delayMs > 0) systemClock.after(this.delayMs, () => this.#pass(link, to, chunk));
      else this.#pass(link, to, chunk);
    });
    from.on('close', () => {
      this.#links.delete(link);
      // On a silent link not even the close passes.
      if (link.isSilent) return;
      if (link.held === undefined) to.destroySoon();
      else link.held.push(() => to.destroySoon());
    });
  }

  #pass(link: Link, to: Socket, chunk: Buffer): void {
    if (link.isSilent || to.destroyed) return;
    if (link.held === undefined) to.write(chunk);
    else link.held.push(() => void (to.destroyed || to.write(chunk)));
  }
}

/** A link within the process: for tests, and for runs without a gateway. All that it does, it does at once. */
import type { Mac } from '../proto/mac.js';
import type { Downlink, Uplink } from '../proto/ping.js';
import type { Link, LinkEvents, OpenLink } from './link.js';

/** What the other side of memory links gets to know. */
export interface MemoryListener {
  connected?(mac: Mac): void;
  uplink?(mac: Mac, uplink: Uplink): void;
  /** `closed`: the lock said that it goes. */
  ended?(mac: Mac, cause: 'closed' | 'dropped'): void;
}

/** The other side. It takes every lock, and can be made to refuse, to swallow or to break. */
export class MemoryGateway {
  /** Whether it lets locks connect. */
  accepts = true;
  /** Whether it acknowledges what it gets. */
  acknowledges = true;
  readonly #listener: MemoryListener;
  readonly #links = new Map<Mac, MemoryLink>();

  constructor(listener: MemoryListener = {}) {
    this.#listener = listener;
  }

  /** Makes links to this gateway. */
  readonly open: OpenLink = (mac, events) => {
    const link = new MemoryLink(mac, events, this, this.#listener);
    this.#links.set(mac, link);
    return link;
  };

  /** Sends a command to a lock; false where it isn't connected. */
  send(mac: Mac, downlink: Downlink): boolean {
    return this.#links.get(mac)?.deliver(downlink) ?? false;
  }

  /** Breaks the connection of one lock, as a network does. */
  cut(mac: Mac): void {
    this.#links.get(mac)?.cut();
  }

  isConnected(mac: Mac): boolean {
    return this.#links.get(mac)?.isUp ?? false;
  }
}

class MemoryLink implements Link {
  readonly #mac: Mac;
  readonly #events: LinkEvents;
  readonly #gateway: MemoryGateway;
  readonly #listener: MemoryListener;
  isUp = false;

  constructor(mac: Mac, events: LinkEvents, gateway: MemoryGateway, listener: MemoryListener) {
    this.#mac = mac;
    this.#events = events;
    this.#gateway = gateway;
    this.#listener = listener;
  }

  connect(): void {
    if (!this.#gateway.accepts) {
      this.#events.failed({ message: 'refused' });
      return;
    }
    this.isUp = true;
    this.#listener.connected?.(this.#mac);
    this.#events.connected();
  }

  publish(uplink: Uplink): void {
    if (!this.isUp) return;
    this.#listener.uplink?.(this.#mac, uplink);
    if (this.#gateway.acknowledges) this.#events.acknowledged(uplink);
  }

  disconnect(): void {
    if (!this.#end('closed')) return;
    this.#events.ended(null);
  }

  drop(): void {
    this.#end('dropped');
  }

  async close(): Promise<void> {
    this.#end('closed');
  }

  cut(): void {
    if (this.#end('dropped')) this.#events.ended({ message: 'cut' });
  }

  deliver(downlink: Downlink): boolean {
    if (this.isUp) this.#events.command(downlink);
    return this.isUp;
  }

  #end(cause: 'closed' | 'dropped'): boolean {
    if (!this.isUp) return false;
    this.isUp = false;
    this.#listener.ended?.(this.#mac, cause);
    return true;
  }
}

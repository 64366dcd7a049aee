/**
 * A link (a simulated lock's way to the gateway) within the process, for tests and for runs without a gateway. Each
 * call takes effect and is answered at once.
 */
import type { Clock, Timer } from '../../proto/clock.js';
import type { DisconnectCause } from '../../proto/power/judge/event.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Downlink, Uplink } from '../../proto/wire/ping.js';
import type { Link, LinkEvents, OpenLink } from './link.js';

/** The events that a {@link MemoryGateway} reports. */
export interface MemoryListener {
  connected?(mac: Mac): void;
  uplink?(mac: Mac, uplink: Uplink): void;
  disconnected?(mac: Mac, cause: DisconnectReason): void;
}

/** Why a connection closed: `closed` by the lock, otherwise broken or expired. */
export type DisconnectReason = Exclude<DisconnectCause, 'gateway'>;

/** A server closes a connection that is silent for one and a half times its keepalive (MQTT 3.1.1, 3.1.2.10). */
const { keepalive: KEEPALIVE_MS } = POWER_MODEL.timings;
const KEEPALIVE_EXPIRY_MS = 1.5 * KEEPALIVE_MS;

/** The gateway's side of memory links. It accepts every lock. A test can make it refuse, not acknowledge or break. */
export class MemoryGateway {
  /** Whether it lets locks connect. */
  accepts = true;
  /** Whether it acknowledges uplinks. */
  acknowledges = true;
  /** Whether it accepts uplinks without a connection, unlike any MQTT server. */
  acceptsUnconnected = false;
  readonly #listener: MemoryListener;
  readonly #clock: Clock | undefined;
  readonly #links = new Map<Mac, MemoryLink>();

  /** @param clock expires abandoned connections; without it they stay open until they are taken over */
  constructor(listener: MemoryListener = {}, clock?: Clock) {
    this.#listener = listener;
    this.#clock = clock;
  }

  /** Makes links to this gateway. */
  readonly open: OpenLink = (mac, events) => {
    const link = new MemoryLink(mac, events, this, this.#listener, this.#clock);
    this.#links.set(mac, link);
    return link;
  };

  /**
   * Makes a lock's link with its own listener and clock. Such a link gets no commands and is never cut. So all locks of
   * a fleet can share one gateway.
   */
  openApart(mac: Mac, events: LinkEvents, listener: MemoryListener, clock: Clock): Link {
    return new MemoryLink(mac, events, this, listener, clock);
  }

  /** Sends a command to a lock. Returns false if the lock is not connected. */
  send(mac: Mac, downlink: Downlink): boolean {
    return this.#links.get(mac)?.deliver(downlink) ?? false;
  }

  /** Breaks the connection of one lock, as a network does. */
  cut(mac: Mac): void {
    this.#links.get(mac)?.breakConnection();
  }

  isConnected(mac: Mac): boolean {
    return this.#links.get(mac)?.isUp ?? false;
  }
}

/** The link of one lock. */
class MemoryLink implements Link {
  readonly #mac: Mac;
  readonly #events: LinkEvents;
  readonly #gateway: MemoryGateway;
  readonly #listener: MemoryListener;
  readonly #clock: Clock | undefined;
  /** Runs while the gateway still considers a connection open that the lock has abandoned. */
  #abandonedExpiry: Timer | undefined;
  /** When the lock last sent an uplink or acknowledged a command; before the first, when the connection started. */
  #lastPacketMs = 0;
  isUp = false;

  constructor(
    mac: Mac,
    events: LinkEvents,
    gateway: MemoryGateway,
    listener: MemoryListener,
    clock: Clock | undefined,
  ) {
    this.#mac = mac;
    this.#events = events;
    this.#gateway = gateway;
    this.#listener = listener;
    this.#clock = clock;
  }

  connect(): void {
    if (!this.#gateway.accepts) {
      this.#events.failed({ message: 'refused' });
      return;
    }
    this.#expireAbandoned('takeover');
    this.isUp = true;
    this.#lastPacketMs = this.#clock?.now() ?? 0;
    this.#listener.connected?.(this.#mac);
    this.#events.connected();
  }

  publish(uplink: Uplink): void {
    if (!this.isUp && !this.#gateway.acceptsUnconnected) return;
    if (this.#clock !== undefined) this.#lastPacketMs = this.#clock.now();
    this.#listener.uplink?.(this.#mac, uplink);
    if (this.isUp && this.#gateway.acknowledges) this.#events.acknowledged(uplink);
  }

  disconnect(): void {
    if (!this.#goDown('closed')) return;
    this.#events.disconnected(null);
  }

  drop(): void {
    this.#goDown('dropped');
  }

  abandon(): void {
    if (!this.isUp) return;
    this.isUp = false;
    const expire = (): void => this.#expireAbandoned('keepalive');
    // A silent lock sends a PINGREQ in each keepalive interval, and the gateway counts from the last PINGREQ. A lock
    // that gives up a connection when a PINGREQ is due does not send it.
    const elapsedMs = (this.#clock?.now() ?? 0) - this.#lastPacketMs;
    const silentMs = elapsedMs === 0 ? 0 : ((elapsedMs - 1) % KEEPALIVE_MS) + 1;
    // Without a clock, a timer that never runs marks the connection as abandoned.
    this.#abandonedExpiry = this.#clock?.after(KEEPALIVE_EXPIRY_MS - silentMs, expire) ?? { cancel: () => undefined };
  }

  async close(): Promise<void> {
    this.#goDown('closed');
    this.#expireAbandoned('dropped');
  }

  breakConnection(): void {
    if (this.#goDown('dropped')) this.#events.disconnected({ message: 'cut' });
  }

  deliver(downlink: Downlink): boolean {
    if (!this.isUp) return false;
    if (this.#clock !== undefined) this.#lastPacketMs = this.#clock.now();
    this.#events.command(downlink);
    return this.isUp;
  }

  #expireAbandoned(cause: DisconnectReason): void {
    if (this.#abandonedExpiry === undefined) return;
    this.#abandonedExpiry.cancel();
    this.#abandonedExpiry = undefined;
    this.#listener.disconnected?.(this.#mac, cause);
  }

  /** Ends the connection, and notifies the gateway's side. Returns whether there was one. */
  #goDown(cause: 'closed' | 'dropped'): boolean {
    if (!this.isUp) return false;
    this.isUp = false;
    this.#listener.disconnected?.(this.#mac, cause);
    return true;
  }
}

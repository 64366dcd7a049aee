/**
 * Counts the traffic of each lock in a virtual run, a simulation without a gateway, as the gateway would meter it:
 * connections, messages, keepalives and bytes, with the sizes of wire-size.ts.
 *
 * A lock sends a PINGREQ after each keepalive interval without other traffic (MQTT 3.1.1, 3.1.2.10). Simulated locks
 * report no event for that, so the number of PINGREQs is computed from the silence before each event.
 */

import { POWER_MODEL } from '../../proto/power/model.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Downlink, Uplink } from '../../proto/wire/ping.js';
import type { VirtualSink } from '../fleet/virtual-sink.js';
import type { DisconnectReason } from '../link/memory-link.js';
import type { WireBytes, WireSize } from '../link/wire-size.js';

/** The traffic of one lock. "Up" is from the lock to the gateway. */
export interface LockTraffic {
  readonly connections: number;
  readonly messagesUp: number;
  readonly messagesDown: number;
  /** PINGREQs, each with its answer. */
  readonly keepalives: number;
  readonly bytesUp: number;
  readonly bytesDown: number;
}

type TrafficCounter = { -readonly [Name in keyof LockTraffic]: LockTraffic[Name] } & {
  /** The time of the last traffic on the open connection, ms since the epoch; null while no connection is open. */
  lastMs: number | null;
};

const { keepalive: KEEPALIVE_MS } = POWER_MODEL.timings;

/** Receives the events of a virtual run and counts the traffic of each lock. */
export class Traffic implements Required<VirtualSink> {
  readonly #wire: WireSize;
  readonly #fromMs: number;
  readonly #toMs: number;
  readonly #locks = new Map<Mac, TrafficCounter>();

  /** Counts only events in [fromMs, toMs), ms since the epoch; connections may start earlier and end later. */
  constructor(wire: WireSize, fromMs: number, toMs: number) {
    this.#wire = wire;
    this.#fromMs = fromMs;
    this.#toMs = toMs;
  }

  connect(mac: Mac, atMs: number): void {
    const counter = this.#counterOf(mac);
    counter.lastMs = atMs;
    if (!this.#isMeasured(atMs)) return;
    counter.connections += 1;
    add(counter, this.#wire.connect);
  }

  uplink(mac: Mac, atMs: number, uplink: Uplink): void {
    const counter = this.#counterOf(mac);
    this.#countKeepalivesUntil(counter, atMs);
    if (!this.#isMeasured(atMs)) return;
    counter.messagesUp += 1;
    add(counter, this.#wire.uplink(uplink));
  }

  command(mac: Mac, atMs: number, downlink: Downlink): void {
    const counter = this.#counterOf(mac);
    this.#countKeepalivesUntil(counter, atMs);
    if (!this.#isMeasured(atMs)) return;
    counter.messagesDown += 1;
    add(counter, this.#wire.downlink(downlink));
  }

  disconnect(mac: Mac, atMs: number, cause: DisconnectReason): void {
    const counter = this.#counterOf(mac);
    this.#countKeepalivesUntil(counter, atMs);
    counter.lastMs = null;
    if (this.#isMeasured(atMs) && cause === 'closed') add(counter, this.#wire.close);
  }

  /** Counts the keepalives of connections that are still open. To be called at the end of the run. */
  finish(): void {
    for (const counter of this.#locks.values()) this.#countKeepalivesUntil(counter, this.#toMs);
  }

  /** The traffic of a lock; zero for an unknown one. */
  of(mac: Mac): LockTraffic {
    return this.#counterOf(mac);
  }

  #isMeasured(atMs: number): boolean {
    return atMs >= this.#fromMs && atMs < this.#toMs;
  }

  #counterOf(mac: Mac): TrafficCounter {
    let counter = this.#locks.get(mac);
    if (counter === undefined) {
      counter = {
        connections: 0,
        messagesUp: 0,
        messagesDown: 0,
        keepalives: 0,
        bytesUp: 0,
        bytesDown: 0,
        lastMs: null,
      };
      this.#locks.set(mac, counter);
    }
    return counter;
  }

  /** Counts keepalives since the last traffic. A message at the moment of a due PINGREQ replaces the PINGREQ. */
  #countKeepalivesUntil(counter: TrafficCounter, atMs: number): void {
    if (counter.lastMs === null) return;
    for (let dueMs = counter.lastMs + KEEPALIVE_MS; dueMs < atMs; dueMs += KEEPALIVE_MS) {
      if (!this.#isMeasured(dueMs)) continue;
      counter.keepalives += 1;
      add(counter, this.#wire.keepalive);
    }
    counter.lastMs = atMs;
  }
}

function add(counter: TrafficCounter, { up, down }: WireBytes): void {
  counter.bytesUp += up;
  counter.bytesDown += down;
}

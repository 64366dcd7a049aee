/**
 * Counts the traffic of each lock in a virtual run as the gateway would meter it, with the sizes of wire-size.ts:
 * connections, messages, keepalives and bytes.
 *
 * A lock sends a PINGREQ after each keepalive interval without other traffic (MQTT 3.1.1, 3.1.2.10). Simulated locks
 * report no event for that, so the number of PINGREQs is computed from the silence before each event.
 */

import { POWER_MODEL } from '../../proto/power/model.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Downlink, Uplink } from '../../proto/wire/ping.js';
import type { VirtualSink } from '../fleet/virtual-run.js';
import type { DisconnectReason } from '../link/memory-link.js';
import type { WireBytes, WireSize } from '../link/wire-size.js';

/** The traffic of one lock. */
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
  /** The last traffic on its connection, ms since the epoch; null while it has none. */
  lastMs: number | null;
};

const { keepalive: KEEPALIVE_MS } = POWER_MODEL.timings;

/** A sink of a virtual run that counts traffic. */
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
    const lock = this.#counterOf(mac);
    lock.lastMs = atMs;
    if (!this.#isMeasured(atMs)) return;
    lock.connections += 1;
    add(lock, this.#wire.connect);
  }

  uplink(mac: Mac, atMs: number, uplink: Uplink): void {
    const lock = this.#counterOf(mac);
    this.#countKeepalivesUntil(lock, atMs);
    if (!this.#isMeasured(atMs)) return;
    lock.messagesUp += 1;
    add(lock, this.#wire.uplink(uplink));
  }

  command(mac: Mac, atMs: number, downlink: Downlink): void {
    const lock = this.#counterOf(mac);
    this.#countKeepalivesUntil(lock, atMs);
    if (!this.#isMeasured(atMs)) return;
    lock.messagesDown += 1;
    add(lock, this.#wire.downlink(downlink));
  }

  disconnect(mac: Mac, atMs: number, cause: DisconnectReason): void {
    const lock = this.#counterOf(mac);
    this.#countKeepalivesUntil(lock, atMs);
    lock.lastMs = null;
    if (this.#isMeasured(atMs) && cause === 'closed') add(lock, this.#wire.close);
  }

  /** Counts the keepalives of connections that are still open. To be called at the end of the run. */
  finish(): void {
    for (const lock of this.#locks.values()) this.#countKeepalivesUntil(lock, this.#toMs);
  }

  /** The traffic of a lock; zero for an unknown one. */
  of(mac: Mac): LockTraffic {
    return this.#counterOf(mac);
  }

  #isMeasured(atMs: number): boolean {
    return atMs >= this.#fromMs && atMs < this.#toMs;
  }

  #counterOf(mac: Mac): TrafficCounter {
    let lock = this.#locks.get(mac);
    if (lock === undefined) {
      lock = {
        connections: 0,
        messagesUp: 0,
        messagesDown: 0,
        keepalives: 0,
        bytesUp: 0,
        bytesDown: 0,
        lastMs: null,
      };
      this.#locks.set(mac, lock);
    }
    return lock;
  }

  /** Counts keepalives since the last traffic. A message at the moment of a due PINGREQ replaces the PINGREQ. */
  #countKeepalivesUntil(lock: TrafficCounter, atMs: number): void {
    if (lock.lastMs === null) return;
    for (let dueMs = lock.lastMs + KEEPALIVE_MS; dueMs < atMs; dueMs += KEEPALIVE_MS) {
      if (!this.#isMeasured(dueMs)) continue;
      lock.keepalives += 1;
      add(lock, this.#wire.keepalive);
    }
    lock.lastMs = atMs;
  }
}

function add(lock: TrafficCounter, { up, down }: WireBytes): void {
  lock.bytesUp += up;
  lock.bytesDown += down;
}

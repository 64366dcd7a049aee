/** The receiver of a virtual run's events, and how the links of its locks report to it. */
import type { Clock } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Downlink, Uplink } from '../../proto/wire/ping.js';
import type { DisconnectReason, MemoryListener } from '../link/memory-link.js';

/** Receives the events of a run, in order of time. */
export interface VirtualSink {
  connect?(mac: Mac, atMs: number): void;
  uplink?(mac: Mac, atMs: number, uplink: Uplink): void;
  /** A command is sent to a lock. */
  command?(mac: Mac, atMs: number, downlink: Downlink): void;
  disconnect?(mac: Mac, atMs: number, cause: DisconnectReason): void;
}

/** Reports the events of locks with this clock to the sink. */
export class SinkListener implements Required<MemoryListener> {
  readonly #sink: VirtualSink | undefined;
  readonly #clock: Clock;

  constructor(sink: VirtualSink | undefined, clock: Clock) {
    this.#sink = sink;
    this.#clock = clock;
  }

  connected(mac: Mac): void {
    this.#sink?.connect?.(mac, this.#clock.now());
  }

  uplink(mac: Mac, uplink: Uplink): void {
    this.#sink?.uplink?.(mac, this.#clock.now(), uplink);
  }

  disconnected(mac: Mac, cause: DisconnectReason): void {
    this.#sink?.disconnect?.(mac, this.#clock.now(), cause);
  }
}

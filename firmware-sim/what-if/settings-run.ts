/**
 * A what-if replays a recorded trace with other settings of the locks. This file runs the locks of the trace under
 * given settings, without a gateway and without waiting, and counts what they do: pings by reason, connections, bytes
 * on the air and consumption.
 */
import { Days } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Downlink, Uplink } from '../../proto/wire/ping.js';
import type { TracedLock } from '../inference/from-trace.js';
import { tracedLockOptions } from '../inference/traced-run.js';
import { CommandQueue } from '../link/command-queue.js';
import { type DisconnectReason, MemoryGateway } from '../link/memory-link.js';
import type { WireSize } from '../link/wire-size.js';
import { Lock } from '../lock/lock.js';
import { type BatterySize, byCause, meanBattery } from '../plan/battery-size.js';
import { Traffic } from '../plan/traffic.js';
import { VirtualClock } from '../virtual-clock.js';
import { lockWith, type WhatIfSettings } from './settings.js';

/** The locks to run again, and their settings. */
export interface SettingsRunOptions {
  /** The locks of a trace. A run consumes the events of their worlds, so each run needs new ones. */
  readonly locks: readonly TracedLock[];
  readonly settings: WhatIfSettings;
  /** When the trace starts, ms since the epoch. */
  readonly fromMs: number;
  /** When the trace ends, ms since the epoch. */
  readonly untilMs: number;
  readonly wire: WireSize;
}

/** What the locks did. */
export interface SettingsOutcome {
  /** Pings that arrived, by reason. */
  readonly pings: ReadonlyMap<string, number>;
  readonly connections: number;
  readonly bytesUp: number;
  readonly bytesDown: number;
  /** How long all locks together had a battery below 10 %, ms. */
  readonly lowBatteryMs: number;
  /** The mean consumption of a lock, and how long a full battery lasts; null for a trace without duration. */
  readonly battery: BatterySize | null;
}

/** Below this percentage a lock is silent, except for thefts (specification, Limits). */
const LOW_PERCENT = 10;

/** A run that the caller advances in steps. */
export class SettingsRun {
  readonly endMs: number;
  readonly #fromMs: number;
  readonly #clock: VirtualClock;
  readonly #traffic: Traffic;
  readonly #locks: readonly Lock[];
  readonly #pings = new Map<string, number>();
  /** Since when a lock's battery has been low, ms since the epoch; only for locks whose battery is low. */
  readonly #lowSinceMs = new Map<Mac, number>();
  #lowBatteryMs = 0;

  constructor({ locks, settings, fromMs, untilMs, wire }: SettingsRunOptions) {
    const clock = new VirtualClock(fromMs);
    this.endMs = untilMs;
    this.#fromMs = fromMs;
    this.#clock = clock;
    this.#traffic = new Traffic(wire, fromMs, untilMs);
    const gateway = this.#gatewayOf(clock);
    const queue = gateway.queue;
    this.#locks = locks.map((recorded) => {
      const traced = lockWith(recorded, settings);
      this.#noteBattery(traced.mac, fromMs, traced.world.initialState.batteryPercent);
      const lock = new Lock({
        ...tracedLockOptions(traced),
        clock,
        openLink: gateway.memory.open,
        // The diary, the lock's own log, receives everything that happens to the lock.
        diary: (mac, atMs, entry) => {
          if (entry.type === 'world' && entry.change.type === 'battery')
            this.#noteBattery(mac, atMs, entry.change.percent);
        },
      });
      clock.after(traced.startMs - fromMs, () => lock.start());
      const ids = new Set<number>();
      for (const { id, atMs, command } of traced.commands) {
        // A command that was sent again has the same id.
        if (ids.has(id)) continue;
        ids.add(id);
        clock.after(atMs - fromMs, () => queue.enqueue(traced.mac, command));
      }
      return lock;
    });
  }

  get nowMs(): number {
    return this.#clock.now();
  }

  /** Advances to `untilMs`, but not beyond the end of the trace. */
  advance(untilMs: number): void {
    this.#clock.run(Math.min(untilMs, this.endMs));
  }

  /** The result. To be called once, at the end of the run. */
  finish(): SettingsOutcome {
    this.#traffic.finish();
    // A full battery ends the time with a low battery.
    for (const mac of [...this.#lowSinceMs.keys()]) this.#noteBattery(mac, this.endMs, 100);
    const traffic = this.#locks.map(({ mac }) => this.#traffic.of(mac));
    const total = (countOf: (lock: (typeof traffic)[number]) => number): number => {
      return traffic.reduce((sum, lock) => sum + countOf(lock), 0);
    };
    return {
      pings: this.#pings,
      connections: total(({ connections }) => connections),
      bytesUp: total(({ bytesUp }) => bytesUp),
      bytesDown: total(({ bytesDown }) => bytesDown),
      lowBatteryMs: this.#lowBatteryMs,
      battery: this.#batterySize(),
    };
  }

  /** The mean consumption of a lock; null for a trace without duration. */
  #batterySize(): BatterySize | null {
    const days = (this.endMs - this.#fromMs) / Days(1);
    if (days <= 0) return null;
    return meanBattery(
      this.#locks.map(({ battery }) => {
        const used = battery?.usedMah(this.endMs) ?? null;
        return { locks: 1, used: used && byCause((cause) => used[cause] / days) };
      }),
    );
  }

  /** Measures the time with a low battery from each change of a lock's battery. */
  #noteBattery(mac: Mac, atMs: number, percent: number): void {
    const sinceMs = this.#lowSinceMs.get(mac);
    if (percent < LOW_PERCENT) {
      if (sinceMs === undefined) this.#lowSinceMs.set(mac, atMs);
      return;
    }
    if (sinceMs === undefined) return;
    this.#lowSinceMs.delete(mac);
    this.#lowBatteryMs += atMs - sinceMs;
  }

  /** A gateway that counts what it receives, and sends commands as soon as a lock can receive them. */
  #gatewayOf(clock: VirtualClock): { readonly memory: MemoryGateway; readonly queue: CommandQueue } {
    const traffic = this.#traffic;
    const queue: CommandQueue = new CommandQueue({
      clock,
      send: (mac: Mac, downlink: Downlink) => memory.send(mac, downlink),
      onSend: (mac, downlink) => traffic.command(mac, clock.now(), downlink),
    });
    const memory = new MemoryGateway(
      {
        connected: (mac: Mac) => {
          traffic.connect(mac, clock.now());
          queue.connected(mac);
        },
        uplink: (mac: Mac, uplink: Uplink) => {
          traffic.uplink(mac, clock.now(), uplink);
          if (uplink.body.kind !== 'ack') {
            const { reason } = uplink.body;
            this.#pings.set(reason, (this.#pings.get(reason) ?? 0) + 1);
          }
          queue.uplink(mac, uplink);
        },
        disconnected: (mac: Mac, cause: DisconnectReason) => {
          traffic.disconnect(mac, clock.now(), cause);
          queue.disconnected(mac);
        },
      },
      clock,
    );
    return { memory, queue };
  }
}

/** A fleet without a gateway and without waiting: days of many locks in seconds, told to a sink as they happen. */
import { Days } from '../proto/clock.js';
import type { Mac } from '../proto/mac.js';
import type { Uplink } from '../proto/ping.js';
import type { Diary } from './diary.js';
import { Fleet, fleetMacs } from './fleet.js';
import { MemoryGateway } from './link-memory.js';
import { QueueClock } from './queue-clock.js';

/** What a run tells, in order of time. */
export interface VirtualSink {
  connect?(mac: Mac, atMs: number): void;
  uplink?(mac: Mac, atMs: number, uplink: Uplink): void;
  /** `closed`: the lock had said that it goes. */
  disconnect?(mac: Mac, atMs: number, cause: 'closed' | 'dropped'): void;
}

export interface VirtualOptions {
  readonly seed: string | number;
  readonly locks: number;
  readonly days: number;
  /** When the run begins, ms since the epoch. */
  readonly startMs: number;
  readonly pace?: 'everyday' | 'lively';
  /** As `fleetMacs` takes it. */
  readonly periodMinute?: number;
  readonly sink?: VirtualSink;
  readonly diary?: Diary;
}

/** Runs the fleet to its end. The same options give the same calls of the sink. */
export function runVirtual(options: VirtualOptions): void {
  const { seed, startMs, sink, diary } = options;
  const clock = new QueueClock(startMs);
  const gateway = new MemoryGateway({
    connected: (mac) => sink?.connect?.(mac, clock.now()),
    uplink: (mac, uplink) => sink?.uplink?.(mac, clock.now(), uplink),
    ended: (mac, cause) => sink?.disconnect?.(mac, clock.now(), cause),
  });
  const fleet = new Fleet({
    seed,
    clock,
    macs: fleetMacs(seed, options.locks, options.periodMinute),
    openLink: gateway.open,
    pace: options.pace ?? 'everyday',
    startEvery: 0,
    ...(diary && { diary }),
  });
  fleet.start();
  clock.run(startMs + Days(options.days));
}

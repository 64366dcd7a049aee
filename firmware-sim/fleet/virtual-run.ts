/**
 * A virtual run simulates a fleet without a gateway and without waiting, so that days of many locks take seconds. The
 * run reports the locks' events to a sink in order of time.
 */
import { type Clock, Days } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Downlink, Uplink } from '../../proto/wire/ping.js';
import { FaultNetwork } from '../faults/fault-network.js';
import type { FaultName } from '../faults/faults.js';
import { CommandQueue } from '../link/command-queue.js';
import { type DisconnectReason, MemoryGateway, type MemoryListener } from '../link/memory-link.js';
import type { Lock } from '../lock/lock.js';
import { VirtualClock } from '../virtual-clock.js';
import { type CommandSchedule, scheduleCommands } from './command-schedule.js';
import { Fleet, type FleetOptions, fleetMacs } from './fleet.js';

/** Receives the events of a run, in order of time. */
export interface VirtualSink {
  connect?(mac: Mac, atMs: number): void;
  uplink?(mac: Mac, atMs: number, uplink: Uplink): void;
  /** A command is sent to a lock. */
  command?(mac: Mac, atMs: number, downlink: Downlink): void;
  disconnect?(mac: Mac, atMs: number, cause: DisconnectReason): void;
}

/** The fleet, the length of the run, and where its events go. */
export interface VirtualOptions
  extends Pick<FleetOptions, 'seed' | 'mix' | 'city' | 'path' | 'bugs' | 'worldOf' | 'diary'> {
  /** The number of locks. */
  readonly locks: number;
  readonly days: number;
  /** When the run starts, ms since the epoch. */
  readonly startMs: number;
  readonly pace?: 'everyday' | 'lively';
  /** The UTC minute near which the first lock makes its Period Ping; see `fleetMacs`. */
  readonly periodMinute?: number;
  /** Faults of the network between the locks and the sink; none by default. */
  readonly faults?: readonly FaultName[];
  readonly sink?: VirtualSink;
  /** The commands that locks get; none by default. */
  readonly commandSchedule?: CommandSchedule;
}

/** A run that the caller advances in steps. The size of the steps does not change the events. */
export class VirtualRun {
  /** When the run ends, ms since the epoch. */
  readonly endMs: number;
  /** The simulated locks. */
  readonly locks: readonly Lock[];
  readonly #clock: VirtualClock;
  readonly #network: FaultNetwork | undefined;
  readonly #fleet: Fleet;
  #hasStarted = false;

  constructor(options: VirtualOptions) {
    const { seed, startMs, sink, faults = [] } = options;
    const clock = new VirtualClock(startMs);
    const listener = {
      connected: (mac: Mac) => sink?.connect?.(mac, clock.now()),
      uplink: (mac: Mac, uplink: Uplink) => sink?.uplink?.(mac, clock.now(), uplink),
      disconnected: (mac: Mac, cause: DisconnectReason) => sink?.disconnect?.(mac, clock.now(), cause),
    };
    const macs = fleetMacs(seed, options.locks, options.periodMinute);
    const commandQueue =
      options.commandSchedule &&
      commandQueueOf(options, options.commandSchedule, clock, macs, (mac, downlink) => {
        return gateway.send(mac, downlink);
      });
    const gateway: MemoryGateway = new MemoryGateway(
      commandQueue === undefined ? listener : withCommandQueue(listener, commandQueue),
      clock,
    );
    // Locks with some bugs send without a connection.
    gateway.acceptsUnconnected = options.bugs?.some(({ bug }) => bug.wrapVirtualLink !== undefined) ?? false;
    this.#network = faults.length === 0 ? undefined : new FaultNetwork({ seed, clock, faults });
    this.#clock = clock;
    this.endMs = startMs + Math.round(Days(options.days));
    const { mix, city, path, bugs, worldOf, diary } = options;
    this.#fleet = new Fleet({
      seed,
      clock,
      macs,
      openLink: this.#network?.wrap(gateway.open) ?? gateway.open,
      pace: options.pace ?? 'everyday',
      startEvery: 0,
      ...(mix && { mix }),
      ...(city && { city }),
      ...(path && { path }),
      ...(bugs && { bugs }),
      ...(worldOf && { worldOf }),
      ...(diary && { diary }),
    });
    this.locks = this.#fleet.locks;
  }

  /** The current time of the run, ms since the epoch. */
  get nowMs(): number {
    return this.#clock.now();
  }

  /** Advances to `untilMs`, at most to the end. The first call starts the locks. */
  advance(untilMs: number): void {
    if (!this.#hasStarted) this.#fleet.start();
    this.#hasStarted = true;
    this.#clock.run(Math.min(untilMs, this.endMs));
  }

  /** Stops new faults of the network. */
  stopFaults(): void {
    this.#network?.stopFaults();
  }
}

/** The queue that holds commands until their lock is connected, with commands scheduled for all locks. */
function commandQueueOf(
  { seed, sink }: VirtualOptions,
  commandSchedule: CommandSchedule,
  clock: Clock,
  macs: readonly Mac[],
  send: (mac: Mac, downlink: Downlink) => boolean,
): CommandQueue {
  const onSend = (mac: Mac, downlink: Downlink): void => sink?.command?.(mac, clock.now(), downlink);
  const commandQueue = new CommandQueue({ clock, send, onSend });
  scheduleCommands({ ...commandSchedule, seed, clock, macs }, commandQueue);
  return commandQueue;
}

/** Reports each event to the sink first, and then to the command queue. */
function withCommandQueue(listener: Required<MemoryListener>, commandQueue: CommandQueue): MemoryListener {
  return {
    connected: (mac) => {
      listener.connected(mac);
      commandQueue.connected(mac);
    },
    uplink: (mac, uplink) => {
      listener.uplink(mac, uplink);
      commandQueue.uplink(mac, uplink);
    },
    disconnected: (mac, cause) => {
      listener.disconnected(mac, cause);
      commandQueue.disconnected(mac);
    },
  };
}

/** Runs a fleet to its end. The same options cause the same calls of the sink. */
export function runVirtual(options: VirtualOptions): void {
  const run = new VirtualRun(options);
  run.advance(run.endMs);
}

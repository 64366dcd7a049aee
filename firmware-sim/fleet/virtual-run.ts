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
import type { OpenLink } from '../link/link.js';
import { type DisconnectReason, MemoryGateway, type MemoryListener } from '../link/memory-link.js';
import type { Lock } from '../lock/lock.js';
import { OwnClock } from '../own-clock.js';
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
  /** The first lock makes its Period Ping, its daily ping, soon after this minute of the UTC day; see `fleetMacs`. */
  readonly periodMinute?: number;
  /** Faults of the network between the locks and the sink; none by default. */
  readonly faults?: readonly FaultName[];
  readonly sink?: VirtualSink;
  /**
   * Whether events of different locks may be reported out of order, as where they are only counted. Then each lock is
   * simulated by itself as far as the caller advances, which is faster: its data stay in the processor's cache. Has no
   * effect if locks affect each other, by faults of their network or by the numbers of their commands; see
   * {@link VirtualRun.isEachAlone}.
   */
  readonly anyOrder?: boolean;
  /** Called before each timer of a lock that is simulated by itself, to order the events (firing-log.ts). */
  readonly onFiring?: (lock: number, dueMs: number) => void;
  /** The commands that locks get; none by default. */
  readonly commandSchedule?: CommandSchedule;
}

/** A run that the caller advances in steps. The size of the steps does not change the events. */
export class VirtualRun {
  /** When the run ends, ms since the epoch. */
  readonly endMs: number;
  /** The simulated locks. */
  readonly locks: readonly Lock[];
  /** Whether each lock is simulated by itself. */
  readonly isEachAlone: boolean;
  /** The clock of all locks, or a clock for each lock that is simulated by itself. */
  readonly #clocks: readonly (VirtualClock | OwnClock)[];
  readonly #network: FaultNetwork | undefined;
  readonly #fleet: Fleet;
  #nowMs: number;
  #hasStarted = false;

  constructor(options: VirtualOptions) {
    const { seed, startMs, faults = [] } = options;
    const macs = fleetMacs(seed, options.locks, options.periodMinute);
    const clock = new VirtualClock(startMs);
    const isEachAlone = options.anyOrder === true && areIndependent(options);
    this.isEachAlone = isEachAlone;
    const ownClocks = isEachAlone ? macs.map((_, lock) => ownClockOf(options, lock)) : [];
    this.#clocks = isEachAlone ? ownClocks : [clock];
    this.#network = faults.length === 0 ? undefined : new FaultNetwork({ seed, clock, faults });
    this.#nowMs = startMs;
    this.endMs = startMs + Math.round(Days(options.days));
    const openLink = isEachAlone ? linksOfEach(options, macs, ownClocks) : gatewayOfAll(options, macs, clock).open;
    const { mix, city, path, bugs, worldOf, diary } = options;
    this.#fleet = new Fleet({
      seed,
      clock,
      macs,
      openLink: this.#network?.wrap(openLink) ?? openLink,
      pace: options.pace ?? 'everyday',
      startEvery: 0,
      ...(isEachAlone && { clockOf: (index) => this.#clocks[index] ?? clock }),
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
    return this.#nowMs;
  }

  /** Advances to `untilMs`, at most to the end. The first call starts the locks. */
  advance(untilMs: number): void {
    if (!this.#hasStarted) this.#fleet.start();
    this.#hasStarted = true;
    this.#nowMs = Math.max(this.#nowMs, Math.min(untilMs, this.endMs));
    for (const clock of this.#clocks) clock.run(this.#nowMs);
  }

  /** Stops new faults of the network. */
  stopFaults(): void {
    this.#network?.stopFaults();
  }
}

/**
 * Whether no lock affects another, and each has a single timer. A lock that sends without a connection is excluded
 * since only the gateway that all locks share accepts this.
 */
function areIndependent(options: VirtualOptions): boolean {
  const { faults = [], commandSchedule } = options;
  return faults.length === 0 && commandSchedule === undefined && !sendsUnconnected(options);
}

function ownClockOf({ startMs, onFiring }: VirtualOptions, lock: number): OwnClock {
  return new OwnClock(startMs, onFiring && ((dueMs) => onFiring(lock, dueMs)));
}

/** The gateway of locks that share a clock, with their commands. */
function gatewayOfAll(options: VirtualOptions, macs: readonly Mac[], clock: VirtualClock): MemoryGateway {
  const { commandSchedule } = options;
  const commandQueue =
    commandSchedule &&
    commandQueueOf(options, commandSchedule, clock, macs, (mac, downlink) => gateway.send(mac, downlink));
  const listener = new SinkListener(options.sink, clock);
  const gateway: MemoryGateway = new MemoryGateway(
    commandQueue === undefined ? listener : withCommandQueue(listener, commandQueue),
    clock,
  );
  gateway.acceptsUnconnected = sendsUnconnected(options);
  return gateway;
}

/** The links of locks that have a clock each. */
function linksOfEach(options: VirtualOptions, macs: readonly Mac[], clocks: readonly OwnClock[]): OpenLink {
  // It has a clock for each lock of the run, and links are opened only for these locks.
  const clockOf = new Map(macs.map((mac, index) => [mac, clocks[index] as OwnClock]));
  const gateway = new MemoryGateway();
  return (mac, events) => {
    const clock = clockOf.get(mac) as OwnClock;
    return gateway.openApart(mac, events, new SinkListener(options.sink, clock), clock);
  };
}

/** Whether locks may send without a connection: those with some bugs do. */
function sendsUnconnected({ bugs }: VirtualOptions): boolean {
  return bugs?.some(({ bug }) => bug.wrapVirtualLink !== undefined) ?? false;
}

/** Reports the events of locks with this clock to the sink. */
class SinkListener implements Required<MemoryListener> {
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

/**
 * A virtual run simulates a fleet without a gateway and without waiting, so that days of many locks take seconds. The
 * run reports the locks' events to a sink in order of time.
 */
import { type Clock, Days } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Downlink } from '../../proto/wire/ping.js';
import { FaultNetwork } from '../faults/fault-network.js';
import type { FaultName } from '../faults/faults.js';
import { CommandQueue } from '../link/command-queue.js';
import { MemoryGateway, type MemoryListener } from '../link/memory-link.js';
import type { Lock } from '../lock/lock.js';
import { VirtualClock } from '../virtual-clock.js';
import { type CommandSchedule, scheduleCommands } from './command-schedule.js';
import { Fleet, type FleetOptions, fleetMacs, LockMaker, type OwnSurroundings } from './fleet.js';
import { LoneLocks } from './lone-locks.js';
import { SinkListener, type VirtualSink } from './virtual-sink.js';

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
  /** With {@link anyOrder}: only these locks of the fleet are simulated, by index, `end` exclusive; all by default. */
  readonly range?: { readonly first: number; readonly end: number };
  /** The commands that locks get; none by default. */
  readonly commandSchedule?: CommandSchedule;
}

/** A run that the caller advances in steps. The size of the steps does not change the events. */
export class VirtualRun {
  /** When the run ends, ms since the epoch. */
  readonly endMs: number;
  readonly #locks: LoneLocks | LocksTogether;
  #nowMs: number;

  constructor(options: VirtualOptions) {
    this.#nowMs = options.startMs;
    this.endMs = options.startMs + Math.round(Days(options.days));
    const isEachAlone = options.anyOrder === true && areAlone(options);
    this.#locks = isEachAlone ? loneLocksOf(options, this.endMs) : new LocksTogether(options);
  }

  /** Whether each lock is simulated by itself. */
  get isEachAlone(): boolean {
    return this.#locks instanceof LoneLocks;
  }

  /** The simulated locks. With {@link isEachAlone} they can be asked for only before the end of the run. */
  get locks(): readonly Lock[] {
    return this.#locks.all;
  }

  /** The current time of the run, ms since the epoch. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Advances to `untilMs`, at most to the end. The first call starts the locks. */
  advance(untilMs: number): void {
    this.#nowMs = Math.max(this.#nowMs, Math.min(untilMs, this.endMs));
    this.#locks.run(this.#nowMs);
  }

  /**
   * Simulates the next locks, each from the start to the end of the run. Instead of `advance`, and only with
   * {@link isEachAlone}. Returns how many locks have been simulated so far.
   */
  finishNext(count: number): number {
    if (!(this.#locks instanceof LoneLocks)) throw new Error('locks that affect each other advance together');
    return this.#locks.finishNext(count);
  }

  /** Stops new faults of the network. */
  stopFaults(): void {
    if (this.#locks instanceof LocksTogether) this.#locks.stopFaults();
  }
}

/** Locks that share a clock and a gateway, and may affect each other. */
class LocksTogether {
  readonly #clock: VirtualClock;
  readonly #network: FaultNetwork | undefined;
  readonly #fleet: Fleet;
  #hasStarted = false;

  constructor(options: VirtualOptions) {
    const { seed, faults = [] } = options;
    const macs = macsOf(options);
    const clock = new VirtualClock(options.startMs);
    this.#clock = clock;
    this.#network = faults.length === 0 ? undefined : new FaultNetwork({ seed, clock, faults });
    const openLink = gatewayOfAll(options, macs, clock).open;
    this.#fleet = new Fleet(
      fleetOptionsOf(options, { clock, macs, openLink: this.#network?.wrap(openLink) ?? openLink }),
    );
  }

  get all(): readonly Lock[] {
    return this.#fleet.locks;
  }

  /** Advances to `untilMs`. The first call starts the locks. */
  run(untilMs: number): void {
    if (!this.#hasStarted) this.#fleet.start();
    this.#hasStarted = true;
    this.#clock.run(untilMs);
  }

  stopFaults(): void {
    this.#network?.stopFaults();
  }
}

/** The locks of a run in which no lock affects another. */
function loneLocksOf(options: VirtualOptions, endMs: number): LoneLocks {
  const { startMs, sink, onFiring } = options;
  const clock = new VirtualClock(startMs);
  const openLink = (): never => {
    throw new Error('a lock that is simulated by itself has a link of its own');
  };
  const maker = new LockMaker(fleetOptionsOf(options, { clock, macs: macsOf(options), openLink }));
  const make = (index: number, own: OwnSurroundings): Lock => maker.make(index, own);
  const { first, end } = options.range ?? { first: 0, end: options.locks };
  return new LoneLocks({ first, end, make, startMs, endMs, sink, onFiring });
}

function macsOf({ seed, locks, periodMinute }: VirtualOptions): readonly Mac[] {
  return fleetMacs(seed, locks, periodMinute);
}

function fleetOptionsOf(
  { seed, pace, mix, city, path, bugs, worldOf, diary }: VirtualOptions,
  surroundings: Pick<FleetOptions, 'clock' | 'macs' | 'openLink'>,
): FleetOptions {
  return {
    ...surroundings,
    seed,
    pace: pace ?? 'everyday',
    startEvery: 0,
    ...(mix && { mix }),
    ...(city && { city }),
    ...(path && { path }),
    ...(bugs && { bugs }),
    ...(worldOf && { worldOf }),
    ...(diary && { diary }),
  };
}

/**
 * Whether no lock affects another, and each has a single timer. A lock that sends without a connection is excluded
 * since only the gateway that all locks share accepts this.
 */
export function areAlone(options: Pick<VirtualOptions, 'faults' | 'commandSchedule' | 'bugs'>): boolean {
  const { faults = [], commandSchedule } = options;
  return faults.length === 0 && commandSchedule === undefined && !sendsUnconnected(options);
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

/** Whether locks may send without a connection: those with some bugs do. */
function sendsUnconnected({ bugs }: Pick<VirtualOptions, 'bugs'>): boolean {
  return bugs?.some(({ bug }) => bug.wrapVirtualLink !== undefined) ?? false;
}

/** The queue that holds commands until their lock is connected, with commands scheduled for all locks. */
function commandQueueOf(
  { seed, sink }: VirtualOptions,
  commandSchedule: CommandSchedule,
  clock: Clock,
  macs: readonly Mac[],
  send: (mac: Mac, downlink: Downlink) => void,
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

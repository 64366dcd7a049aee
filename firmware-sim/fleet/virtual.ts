/** A fleet without a gateway and without waiting: days of many locks in seconds, told to a sink as they happen. */
import { type Clock, Days } from '../../proto/clock.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Downlink, Uplink } from '../../proto/wire/ping.js';
import { FaultNetwork } from '../faults/fault-network.js';
import type { FaultName } from '../faults/faults.js';
import { type LinkEnd, MemoryGateway, type MemoryListener } from '../link/memory-link.js';
import { CommandDesk } from '../lock/command-desk.js';
import type { Lock } from '../lock/lock.js';
import { QueueClock } from '../lock/queue-clock.js';
import { type CommandOrder, placeOrders } from './command-orders.js';
import { Fleet, type FleetOptions, fleetMacs } from './fleet.js';

/** What a run tells, in order of time. */
export interface VirtualSink {
  connect?(mac: Mac, atMs: number): void;
  uplink?(mac: Mac, atMs: number, uplink: Uplink): void;
  /** A command is sent to a lock. */
  command?(mac: Mac, atMs: number, downlink: Downlink): void;
  disconnect?(mac: Mac, atMs: number, cause: LinkEnd): void;
}

export interface VirtualOptions
  extends Pick<FleetOptions, 'seed' | 'mix' | 'city' | 'path' | 'bugs' | 'worldOf' | 'diary'> {
  readonly locks: number;
  readonly days: number;
  /** When the run begins, ms since the epoch. */
  readonly startMs: number;
  readonly pace?: 'everyday' | 'lively';
  /** As `fleetMacs` takes it. */
  readonly periodMinute?: number;
  /** What the network between the locks and the sink does; nothing where it is left out. */
  readonly faults?: readonly FaultName[];
  readonly sink?: VirtualSink;
  /** What locks are asked to do; nothing where it is left out. */
  readonly orders?: CommandOrder;
}

/** A run that goes on as far as it is told to: how far at a time changes nothing of what happens. */
export class VirtualRun {
  /** When the run ends, ms since the epoch. */
  readonly endMs: number;
  /** The locks, before the first moment of the run. */
  readonly locks: readonly Lock[];
  readonly #clock: QueueClock;
  readonly #network: FaultNetwork | undefined;
  readonly #fleet: Fleet;
  #hasBegun = false;

  constructor(options: VirtualOptions) {
    const { seed, startMs, sink, faults = [] } = options;
    const clock = new QueueClock(startMs);
    const listener = {
      connected: (mac: Mac) => sink?.connect?.(mac, clock.now()),
      uplink: (mac: Mac, uplink: Uplink) => sink?.uplink?.(mac, clock.now(), uplink),
      ended: (mac: Mac, cause: LinkEnd) => sink?.disconnect?.(mac, clock.now(), cause),
    };
    const macs = fleetMacs(seed, options.locks, options.periodMinute);
    const desk =
      options.orders &&
      deskOf(options, options.orders, clock, macs, (mac, downlink) => {
        return gateway.send(mac, downlink);
      });
    const gateway: MemoryGateway = new MemoryGateway(desk === undefined ? listener : withDesk(listener, desk), clock);
    gateway.hearsUnconnected = options.bugs?.some(({ bug }) => bug.virtualLink !== undefined) ?? false;
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

  /** The moment that the run has come to, ms since the epoch. */
  get nowMs(): number {
    return this.#clock.now();
  }

  /** Goes on to `untilMs`, at most to the end. The first call gives the locks power. */
  advance(untilMs: number): void {
    if (!this.#hasBegun) this.#fleet.start();
    this.#hasBegun = true;
    this.#clock.run(Math.min(untilMs, this.endMs));
  }

  /** Ends the network's faults. */
  calm(): void {
    this.#network?.calm();
  }
}

function deskOf(
  { seed, sink }: VirtualOptions,
  orders: CommandOrder,
  clock: Clock,
  macs: readonly Mac[],
  send: (mac: Mac, downlink: Downlink) => boolean,
): CommandDesk {
  const onSend = (mac: Mac, downlink: Downlink): void => sink?.command?.(mac, clock.now(), downlink);
  const desk = new CommandDesk({ clock, send, onSend });
  placeOrders({ ...orders, seed, clock, macs }, desk);
  return desk;
}

/** The sink hears of everything before the desk acts on it. */
function withDesk(listener: Required<MemoryListener>, desk: CommandDesk): MemoryListener {
  return {
    connected: (mac) => {
      listener.connected(mac);
      desk.connected(mac);
    },
    uplink: (mac, uplink) => {
      listener.uplink(mac, uplink);
      desk.uplink(mac, uplink);
    },
    ended: (mac, cause) => {
      listener.ended(mac, cause);
      desk.ended(mac);
    },
  };
}

/** Runs the fleet to its end. The same options give the same calls of the sink. */
export function runVirtual(options: VirtualOptions): void {
  const run = new VirtualRun(options);
  run.advance(run.endMs);
}

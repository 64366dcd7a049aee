/**
 * The simulated network of a pair check, between one lock and its gateway. Messages have a latency and keep their
 * order. A connection may die for one side long before the other side notices. The guarantees are those of MQTT over
 * TCP: no message arrives on a connection that its receiver has closed.
 */

import type { Prng } from '../../../firmware-sim/prng.js';
import type { VirtualClock } from '../../../firmware-sim/virtual-clock.js';
import { Seconds } from '../../../proto/clock.js';
import type { DisconnectCause } from '../../../proto/power/judge/event.js';
import type { StepInput } from '../../../proto/power/step/io.js';
import type { Downlink, Uplink } from '../../../proto/wire/ping.js';

/**
 * How a network cuts a connection: both sides notice soon (`both`), one side notices first (`lock-first`,
 * `gateway-first`), the lock no longer receives (`deaf`), or the gateway no longer receives (`mute`).
 */
export const CUTS = ['both', 'lock-first', 'gateway-first', 'deaf', 'mute'] as const;
export type Cut = (typeof CUTS)[number];

/** The events that the network reports to the lock and to the gateway. */
export interface NetworkEndpoints {
  /** An input of the lock. */
  input(input: StepInput): void;
  /** The gateway accepts a connection. */
  connected(): void;
  /** The gateway's connection closes. `cutBy` is the event of the world that cut it; null if the lock closed it. */
  disconnected(cause: DisconnectCause, cutBy: string | null): void;
  /** The gateway receives an uplink. */
  received(uplink: Uplink): void;
  /** The simulated world disturbs the network at this moment, which may explain a later finding. */
  recordTrouble(): void;
}

/** A lock that sends nothing for this long sends a PINGREQ (MQTT 3.1.1, 3.1.2.10). */
const KEEPALIVE_MS = Seconds(300);
/** One and a half keepalives: a server closes a connection that is silent for this long (MQTT 3.1.1, 3.1.2.10). */
const KEEPALIVE_EXPIRY_MS = Seconds(450);
/** How long a lock waits for the answer to its connect. */
const CONNACK_TIMEOUT_MS = Seconds(30);

interface Connection {
  /** The lock's view of the connection. `ending`: the lock has sent its DISCONNECT. */
  phase: 'connecting' | 'up' | 'ending' | 'dead';
  /** Whether the gateway considers the connection open. */
  gatewayUp: boolean;
  /** Whether messages up (to the gateway) are lost. */
  isUpDead: boolean;
  /** Whether messages down (to the lock) are lost. */
  isDownDead: boolean;
  /** The event that cut the connection; null if it was not cut. */
  cutBy: string | null;
  /** When the gateway last received a message of the lock. */
  lastUpMs: number;
  /** Since when messages to the gateway are lost; Infinity if they are not. */
  upDeadMs: number;
  /** When the last message to the gateway arrives. A later message must not arrive earlier. */
  upArrivalMs: number;
  /** When the last message to the lock arrives. */
  downArrivalMs: number;
}

/** The network between one lock and its gateway. */
export class PairNetwork {
  /** Whether the gateway accepts connections. */
  accepts = true;
  readonly #clock: VirtualClock;
  readonly #random: Prng;
  readonly #latency: readonly [number, number];
  readonly #endpoints: NetworkEndpoints;
  /** The last connection that the lock opened, and the last one that the gateway accepted. */
  #lockConnection: Connection | undefined;
  #gatewayConnection: Connection | undefined;

  /** @param latency the shortest and longest time that a message takes, whole ms */
  constructor(clock: VirtualClock, random: Prng, latency: readonly [number, number], endpoints: NetworkEndpoints) {
    this.#clock = clock;
    this.#random = random;
    this.#latency = latency;
    this.#endpoints = endpoints;
  }

  /** Whether the gateway considers a connection of the lock open. */
  get gatewayUp(): boolean {
    return this.#gatewayConnection?.gatewayUp ?? false;
  }

  /* Called for the lock. */

  connect(): void {
    const connection: Connection = {
      phase: 'connecting',
      gatewayUp: false,
      isUpDead: false,
      isDownDead: false,
      cutBy: null,
      lastUpMs: 0,
      upDeadMs: Number.POSITIVE_INFINITY,
      upArrivalMs: 0,
      downArrivalMs: 0,
    };
    this.#lockConnection = connection;
    this.#sendUp(connection, () => this.#arriveAtGateway(connection));
    this.#clock.after(CONNACK_TIMEOUT_MS, () => {
      if (connection.phase !== 'connecting') return;
      connection.phase = 'dead';
      this.#scheduleGatewayClose(connection);
      this.#endpoints.input({ type: 'connect-failed' });
    });
  }

  publish(uplink: Uplink): void {
    const connection = this.#lockConnection;
    if (connection?.phase !== 'up') throw new Error('the lock published without a connection');
    this.#sendUp(connection, () => {
      if (!connection.gatewayUp) return;
      this.#endpoints.received(uplink);
      this.#sendDown(connection, () => {
        const { boot, sequence } = uplink;
        if (connection.phase === 'up') this.#endpoints.input({ type: 'acknowledged', boot, sequence });
      });
    });
  }

  disconnect(): void {
    const connection = this.#lockConnection;
    if (connection?.phase !== 'up') throw new Error('the lock disconnected without a connection');
    connection.phase = 'ending';
    this.#sendUp(connection, () => this.#closeAtGateway(connection, 'closed'));
    this.#clock.after(this.#delay(), () => {
      if (connection.phase !== 'ending') return;
      connection.phase = 'dead';
      // If the DISCONNECT was lost, the gateway notices the close later.
      if (connection.isUpDead) this.#scheduleGatewayClose(connection);
      this.#endpoints.input({ type: 'disconnected' });
    });
  }

  /** The lock drops its connection silently. `cause` is the event of the world that caused this; null for none. */
  drop(cause: string | null): void {
    const connection = this.#lockConnection;
    if (connection === undefined || connection.phase === 'dead') return;
    connection.phase = 'dead';
    connection.cutBy ??= cause;
    // Messages that are in transit may still arrive.
    if (this.#random.chance(0.5)) this.#stopUp(connection);
    this.#scheduleGatewayClose(connection);
  }

  /* Called for the gateway. */

  /** Sends a command; returns false if the gateway has no open connection. */
  send(downlink: Downlink): boolean {
    const connection = this.#gatewayConnection;
    if (connection?.gatewayUp !== true) return false;
    // QoS 1: a command waits until the lock has subscribed, and is lost only with the connection.
    const deliver = (): void => {
      if (connection.phase === 'up') this.#endpoints.input({ type: 'command', downlink });
      else if (connection.phase !== 'dead') this.#sendDown(connection, deliver);
    };
    this.#sendDown(connection, deliver);
    return true;
  }

  /** The gateway stops listening and closes its connection. */
  stopListening(): void {
    this.accepts = false;
    const connection = this.#gatewayConnection;
    if (connection?.gatewayUp !== true) return;
    connection.gatewayUp = false;
    connection.cutBy ??= 'gateway';
    this.#scheduleLockClose(connection, this.#delay());
  }

  /* Called for the world. */

  /** Cuts the connection; returns false if there is none. */
  cut(how: Cut): boolean {
    const connection = this.#lockConnection;
    if (connection === undefined || connection.phase === 'dead') return false;
    this.#endpoints.recordTrouble();
    connection.cutBy ??= `a cut (${how})`;
    if (how === 'both' || how === 'lock-first') {
      connection.isDownDead = true;
      if (this.#random.chance(0.5)) this.#stopUp(connection);
      this.#scheduleLockClose(connection, how === 'both' ? this.#delay() : 0);
    } else {
      connection.isDownDead ||= how !== 'mute';
      if (how !== 'deaf') {
        this.#stopUp(connection);
        this.#scheduleGatewayClose(connection);
      }
      if (how === 'gateway-first') this.#closeAtGateway(connection, 'dropped');
      this.#scheduleLockClose(connection, this.#random.integer(0, KEEPALIVE_EXPIRY_MS));
    }
    return true;
  }

  /** The connection dies, and neither side is notified. */
  dieSilently(): void {
    const connection = this.#lockConnection;
    if (connection === undefined) return;
    connection.cutBy ??= 'a silent death';
    connection.isDownDead = true;
    this.#stopUp(connection);
    this.#scheduleGatewayClose(connection);
  }

  /** The lock's connect reaches the gateway. */
  #arriveAtGateway(connection: Connection): void {
    // The lock has given up this connection and started another one.
    if (connection !== this.#lockConnection) return;
    if (!this.accepts) {
      this.#endpoints.recordTrouble();
      this.#sendDown(connection, () => {
        if (connection.phase !== 'connecting') return;
        connection.phase = 'dead';
        this.#endpoints.input({ type: 'connect-failed' });
      });
      return;
    }
    const previous = this.#gatewayConnection;
    this.#gatewayConnection = connection;
    if (previous?.gatewayUp === true) {
      previous.gatewayUp = false;
      this.#endpoints.disconnected('takeover', previous.cutBy);
    }
    connection.gatewayUp = true;
    this.#endpoints.connected();
    if (connection.phase === 'dead') this.#scheduleGatewayClose(connection);
    this.#sendDown(connection, () => {
      if (connection.phase !== 'connecting') return;
      connection.phase = 'up';
      this.#endpoints.input({ type: 'connected' });
    });
  }

  /** Sends a message to the gateway: calls `arrive` after the latency, unless the message is lost. */
  #sendUp(connection: Connection, arrive: () => void): void {
    const nowMs = this.#clock.now();
    connection.upArrivalMs = Math.max(connection.upArrivalMs, nowMs + this.#delay());
    this.#clock.after(connection.upArrivalMs - nowMs, () => {
      if (connection.isUpDead) return;
      connection.lastUpMs = this.#clock.now();
      arrive();
    });
  }

  /** Sends a message to the lock. */
  #sendDown(connection: Connection, arrive: () => void): void {
    const nowMs = this.#clock.now();
    connection.downArrivalMs = Math.max(connection.downArrivalMs, nowMs + this.#delay());
    this.#clock.after(connection.downArrivalMs - nowMs, () => {
      if (!connection.isDownDead) arrive();
    });
  }

  /** A random latency, ms. */
  #delay(): number {
    const [shortest, longest] = this.#latency;
    return shortest === longest ? shortest : this.#random.integer(shortest, longest);
  }

  /** From now on messages to the gateway are lost. */
  #stopUp(connection: Connection): void {
    connection.isUpDead = true;
    connection.upDeadMs = Math.min(connection.upDeadMs, this.#clock.now());
  }

  /** The gateway notices that the connection is closed. */
  #closeAtGateway(connection: Connection, cause: DisconnectCause): void {
    if (!connection.gatewayUp) return;
    connection.gatewayUp = false;
    this.#endpoints.disconnected(cause, connection.cutBy);
  }

  /** Schedules that the gateway notices a dead connection: soon, or when the keepalive expires. */
  #scheduleGatewayClose(connection: Connection): void {
    const isSoon = this.#random.chance(0.5);
    const nowMs = this.#clock.now();
    // The lock's PINGREQs arrived until the direction to the gateway died; the last one restarted the gateway's timer.
    const idle = Math.max(0, Math.min(connection.upDeadMs, nowMs) - connection.lastUpMs - 1);
    const lastUpMs = connection.lastUpMs + Math.floor(idle / KEEPALIVE_MS) * KEEPALIVE_MS;
    const delay = isSoon ? this.#random.integer(0, Seconds(5)) : lastUpMs + KEEPALIVE_EXPIRY_MS - nowMs;
    this.#clock.after(delay, () => this.#closeAtGateway(connection, isSoon ? 'dropped' : 'keepalive'));
  }

  /** Schedules that the lock notices that its connection is dead. */
  #scheduleLockClose(connection: Connection, delay: number): void {
    this.#clock.after(delay, () => {
      if (connection.phase === 'dead') return;
      const wasConnecting = connection.phase === 'connecting';
      connection.phase = 'dead';
      this.#endpoints.recordTrouble();
      this.#scheduleGatewayClose(connection);
      this.#endpoints.input({ type: wasConnecting ? 'connect-failed' : 'disconnected' });
    });
  }
}

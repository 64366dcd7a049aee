/**
 * One MQTT connection of a replayed lock (protocol.md §1): sends the bytes of uplinks (messages of the lock) and
 * reports each PUBACK and the loss of the connection. It must not subscribe: a replayed lock can't carry out commands,
 * so the gateway must not send it any. The simulator's MqttLink does not fit: it subscribes before it counts as
 * connected, encodes uplinks itself, and reports neither the return code of a CONNACK nor each PUBACK as a promise.
 */

import { connect as connectMqtt, type MqttClient } from 'mqtt';
import { Seconds, systemClock, type Timer } from '../../../../proto/clock.js';
import { ok, type Result } from '../../../../proto/errors.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import { clientTlsFailure } from '../../../../proto/tls-failure.js';
import type { Mac } from '../../../../proto/wire/mac.js';

/** Where the gateway listens for MQTT. */
export interface MqttTarget {
  readonly host: string;
  readonly port: number;
}

/** The credentials of a lock. */
export interface ReplayIdentity {
  readonly mac: Mac;
  readonly secret: string;
}

/** Why a CONNECT failed. `code` is the CONNACK's return code; null if no CONNACK arrived. */
export interface ConnectError {
  readonly message: string;
  readonly code: number | null;
}

/** The timeout for a CONNACK and for a PUBACK. */
const ANSWER_TIMEOUT_MS = Seconds(10);
/** How long a connection may take to close after DISCONNECT. */
const CLOSE_TIMEOUT_MS = Seconds(1);

/** An MQTT connection of one lock, from its CONNECT to its end. */
export class ReplayConnection {
  readonly #client: MqttClient;
  readonly #onLost: () => void;
  readonly #closed: Promise<void>;
  #phase: 'connecting' | 'open' | 'closing' | 'closed' = 'connecting';
  /** Called with the outcome of the uplink in flight; like a lock, the connection has at most one. */
  #settleUplink: ((isAcknowledged: boolean) => void) | null = null;

  private constructor(client: MqttClient, onLost: () => void) {
    this.#client = client;
    this.#onLost = onLost;
    this.#closed = new Promise((resolve) => client.once('close', () => resolve()));
    client.on('close', () => this.#onClose());
  }

  /**
   * Connects, unless the signal fires first. `onLost` is called once if the gateway closes the connection unexpectedly.
   */
  static open(
    { host, port }: MqttTarget,
    { mac, secret }: ReplayIdentity,
    signal: AbortSignal,
    onLost: () => void,
  ): Promise<Result<ReplayConnection, ConnectError>> {
    const client = connectMqtt({
      host,
      port,
      protocol: 'mqtt',
      // MQTT 3.1.1 (its §3.1.2.2).
      protocolVersion: 4,
      clientId: mac,
      username: mac,
      password: secret,
      clean: true,
      keepalive: POWER_MODEL.timings.keepalive / Seconds(1),
      connectTimeout: ANSWER_TIMEOUT_MS,
      // 0: never reconnect, because only the trace decides when the lock connects.
      reconnectPeriod: 0,
    });
    const connection = new ReplayConnection(client, onLost);
    const giveUp = (): void => {
      if (connection.#phase === 'connecting') client.end(true);
    };
    signal.addEventListener('abort', giveUp);
    const opened = new Promise<Result<ReplayConnection, ConnectError>>((resolve) => {
      let failure: ConnectError = { message: 'the connection was closed without an answer', code: null };
      client.on('error', (error) => {
        failure = connectErrorOf(error);
        giveUp();
      });
      client.on('connect', () => {
        connection.#phase = 'open';
        resolve(ok(connection));
      });
      client.on('close', () => resolve({ ok: false, error: failure }));
    });
    return opened.finally(() => signal.removeEventListener('abort', giveUp));
  }

  /** Sends one uplink at QoS 1. Resolves to whether its PUBACK arrived in time, on this connection. */
  publish(bytes: Uint8Array): Promise<boolean> {
    if (this.#phase !== 'open') return Promise.resolve(false);
    return new Promise((resolve) => {
      const timer: Timer = systemClock.after(ANSWER_TIMEOUT_MS, () => this.#settleUplink?.(false));
      this.#settleUplink = (isAcknowledged) => {
        timer.cancel();
        this.#settleUplink = null;
        resolve(isAcknowledged);
      };
      const settle = this.#settleUplink;
      this.#client.publish('up', Buffer.from(bytes), { qos: 1 }, (error) => {
        // After a timeout the next uplink may be in flight already.
        if (this.#settleUplink === settle) settle(!error);
      });
    });
  }

  /** From now on the gateway may close the connection, because the lock's next connection will take over. */
  expectTakeover(): void {
    if (this.#phase === 'open') this.#phase = 'closing';
  }

  /** Sends DISCONNECT and resolves when the connection is closed. Destroys the socket if that takes too long. */
  async disconnect(): Promise<void> {
    if (this.#phase === 'closed') return;
    this.#phase = 'closing';
    const forceTimer = systemClock.after(CLOSE_TIMEOUT_MS, () => this.#client.stream.destroy());
    this.#client.end(false);
    await this.#closed;
    forceTimer.cancel();
  }

  /** Destroys the socket without DISCONNECT, and resolves when it is closed. */
  async drop(): Promise<void> {
    if (this.#phase === 'closed') return;
    this.#phase = 'closing';
    this.#client.end(true);
    await this.#closed;
  }

  #onClose(): void {
    const isLost = this.#phase === 'open';
    this.#phase = 'closed';
    // Stops the client's timers; its socket is closed already.
    this.#client.end(true);
    if (isLost) this.#onLost();
    this.#settleUplink?.(false);
  }
}

/** In mqtt.js `error.code` is the CONNACK's return code if it is a number, and a Node error code otherwise. */
function connectErrorOf(error: Error & { code?: unknown }): ConnectError {
  const message = clientTlsFailure(error) ?? (error.message === '' ? String(error.code) : error.message);
  return { message, code: typeof error.code === 'number' ? error.code : null };
}

/**
 * One MQTT connection of a replayed lock (protocol.md §1): it sends the given bytes and reports what happens. It does
 * not subscribe: a replayed lock can't carry out commands, so the gateway must not send it any. This is not
 * firmware-sim's MqttLink, which needs a subscription before it counts as connected, encodes uplinks itself, and
 * reports neither the return code of a CONNACK nor each PUBACK as a promise.
 */
import { connect as connectMqtt, type MqttClient } from 'mqtt';
import { Seconds, systemClock, type Timer } from '../../../../proto/clock.js';
import { ok, type Result } from '../../../../proto/errors.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import type { Mac } from '../../../../proto/wire/mac.js';

/** Where the gateway listens. */
export interface MqttTarget {
  readonly host: string;
  readonly port: number;
}

/** The credentials of a lock. */
export interface ReplayIdentity {
  readonly mac: Mac;
  readonly secret: string;
}

/** Why a CONNECT failed. `code` is the CONNACK's return code; null where there was none. */
export interface ConnectTrouble {
  readonly message: string;
  readonly code: number | null;
}

/** The timeout of a CONNECT for its CONNACK, and of an uplink for its PUBACK. */
const ANSWER_ENDS_AFTER = Seconds(10);
/** The timeout of a DISCONNECT. */
const CLOSE_ENDS_AFTER = Seconds(1);

export class ReplayConnection {
  readonly #client: MqttClient;
  readonly #onLost: () => void;
  readonly #gone: Promise<void>;
  #phase: 'connecting' | 'up' | 'ending' | 'over' = 'connecting';
  /** Called with the outcome of the uplink in flight; there is one at a time, as in a lock. */
  #answer: ((isAcknowledged: boolean) => void) | null = null;

  private constructor(client: MqttClient, onLost: () => void) {
    this.#client = client;
    this.#onLost = onLost;
    this.#gone = new Promise((resolve) => client.once('close', () => resolve()));
    client.on('close', () => this.#closed());
  }

  /**
   * Connects, unless the signal fires first. `onLost` is called once if the other side ends the connection
   * unexpectedly.
   */
  static open(
    { host, port }: MqttTarget,
    { mac, secret }: ReplayIdentity,
    signal: AbortSignal,
    onLost: () => void,
  ): Promise<Result<ReplayConnection, ConnectTrouble>> {
    const client = connectMqtt({
      host,
      port,
      protocol: 'mqtt',
      protocolVersion: 4,
      clientId: mac,
      username: mac,
      password: secret,
      clean: true,
      keepalive: POWER_MODEL.timings.keepalive / Seconds(1),
      connectTimeout: ANSWER_ENDS_AFTER,
      reconnectPeriod: 0,
    });
    const connection = new ReplayConnection(client, onLost);
    const giveUp = (): void => {
      if (connection.#phase === 'connecting') client.end(true);
    };
    signal.addEventListener('abort', giveUp);
    const opened = new Promise<Result<ReplayConnection, ConnectTrouble>>((resolve) => {
      let trouble: ConnectTrouble = { message: 'the connection was closed without an answer', code: null };
      client.on('error', (error) => {
        trouble = troubleOf(error);
        giveUp();
      });
      client.on('connect', () => {
        connection.#phase = 'up';
        resolve(ok(connection));
      });
      client.on('close', () => resolve({ ok: false, error: trouble }));
    });
    return opened.finally(() => signal.removeEventListener('abort', giveUp));
  }

  /** Sends one uplink at QoS 1. Resolves to whether its PUBACK came in time, on this connection. */
  publish(bytes: Uint8Array): Promise<boolean> {
    if (this.#phase !== 'up') return Promise.resolve(false);
    return new Promise((resolve) => {
      const timer: Timer = systemClock.after(ANSWER_ENDS_AFTER, () => this.#answer?.(false));
      this.#answer = (isAcknowledged) => {
        timer.cancel();
        this.#answer = null;
        resolve(isAcknowledged);
      };
      const answer = this.#answer;
      this.#client.publish('up', Buffer.from(bytes), { qos: 1 }, (error) => {
        if (this.#answer === answer) answer(!error);
      });
    });
  }

  /** From now on the other side may end the connection: a takeover is due. */
  expectEnd(): void {
    if (this.#phase === 'up') this.#phase = 'ending';
  }

  /** Sends DISCONNECT and resolves when the connection is closed; by force where that takes too long. */
  async disconnect(): Promise<void> {
    if (this.#phase === 'over') return;
    this.#phase = 'ending';
    const force = systemClock.after(CLOSE_ENDS_AFTER, () => this.#client.stream.destroy());
    this.#client.end(false);
    await this.#gone;
    force.cancel();
  }

  /** Destroys the socket silently and resolves when it is closed. */
  async drop(): Promise<void> {
    if (this.#phase === 'over') return;
    this.#phase = 'ending';
    this.#client.end(true);
    await this.#gone;
  }

  #closed(): void {
    const isLost = this.#phase === 'up';
    this.#phase = 'over';
    // Stops the client's timers; its socket is closed already.
    this.#client.end(true);
    if (isLost) this.#onLost();
    this.#answer?.(false);
  }
}

/** mqtt.js puts the CONNACK's return code, a number, where Node puts its error codes. */
function troubleOf(error: Error & { code?: unknown }): ConnectTrouble {
  const message = error.message === '' ? String(error.code) : error.message;
  return { message, code: typeof error.code === 'number' ? error.code : null };
}

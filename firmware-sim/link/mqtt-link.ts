/**
 * A simulated lock's connection to the gateway (its *link*) over MQTT 3.1.1 (protocol.md §1): client id = user name =
 * the MAC in its wire form, the secret as password, clean sessions, `up` and `down` at QoS 1. Each connection has a new
 * MQTT client, so that the client can't resend uplinks of an old connection: the lock itself retains unacknowledged
 * uplinks and sends the same bytes again.
 */

import { connect as connectMqtt, type IClientOptions, type MqttClient } from 'mqtt';
import { Seconds, systemClock } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { clientTlsFailure } from '../../proto/tls-failure.js';
import { decodeDownlink, encodeUplink } from '../../proto/wire/codec.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Uplink } from '../../proto/wire/ping.js';
import { ConnectQueue, type ConnectSlot } from './connect-queue.js';
import type { Link, LinkEvents, LinkTrouble, OpenLink } from './link.js';

/** Where the gateway listens. */
export interface MqttAddress {
  readonly host: string;
  readonly port: number;
  /** TLS, trusting these certificates (PEM); plain TCP by default. */
  readonly tls?: { readonly ca?: string | Buffer; readonly servername?: string };
}

/** The timeout of an attempt to connect, in real time like all of MQTT: the clock of a run may be faster. */
const CONNECT_TIMEOUT_MS = Seconds(10);
/** How long a link that is closed permanently waits for the gateway. */
const CLOSE_TIMEOUT_MS = Seconds(1);

/**
 * How many locks of one process connect at once. A gateway accepts one connection per turn of its event loop. With a
 * slow disk to commit to, it has about a hundred turns a second.
 */
const MAX_CONCURRENT_CONNECTS = 100;

/** Makes links to a gateway. `secretOf` gives a lock's password. */
export function mqttLinks(address: MqttAddress, secretOf: (mac: Mac) => string): OpenLink {
  const queue = new ConnectQueue(MAX_CONCURRENT_CONNECTS);
  return (mac, events) =>
    new MqttLink(mqttOptions(address, { clientId: mac, mac, secret: secretOf(mac) }), events, queue);
}

/** Who connects: a lock, or a phone that acts for a lock (protocol.md §1). */
export interface MqttIdentity {
  readonly clientId: string;
  /** The lock's MAC, which is the user name in both cases. */
  readonly mac: Mac;
  readonly secret: string;
}

/** Connection options: a clean session, and no automatic reconnects. */
export function mqttOptions({ host, port, tls }: MqttAddress, { clientId, mac, secret }: MqttIdentity): IClientOptions {
  return {
    host,
    port,
    protocol: tls === undefined ? 'mqtt' : 'mqtts',
    ...tls,
    // The number of MQTT 3.1.1 on the wire.
    protocolVersion: 4,
    clientId,
    username: mac,
    password: secret,
    clean: true,
    keepalive: POWER_MODEL.timings.keepalive / Seconds(1),
    connectTimeout: CONNECT_TIMEOUT_MS,
    reconnectPeriod: 0,
    resubscribe: false,
    queueQoSZero: false,
  };
}

/** The link of one lock: one connection after another. */
class MqttLink implements Link {
  readonly #options: IClientOptions;
  readonly #events: LinkEvents;
  readonly #queue: ConnectQueue;
  /** Held by the attempt to connect, both while it is queued and while it is running. */
  #slot: ConnectSlot | undefined;
  /** The current connection; events of an older one are ignored. */
  #connection: MqttConnection | undefined;
  /** A connection that the lock has abandoned and the gateway still considers open. */
  #abandoned: MqttConnection | undefined;

  constructor(options: IClientOptions, events: LinkEvents, queue: ConnectQueue) {
    this.#options = options;
    this.#events = events;
    this.#queue = queue;
  }

  connect(): void {
    this.#slot?.release();
    this.#slot = this.#queue.acquire(() => this.#open());
  }

  #open(): void {
    const connection: MqttConnection = new MqttConnection(connectMqtt(this.#options), {
      ...this.#events,
      connected: () => {
        this.#slot?.release();
        this.#events.connected();
      },
      failed: (trouble) => this.#onConnectionOver(connection, () => this.#events.failed(trouble)),
      disconnected: (trouble) => this.#onConnectionOver(connection, () => this.#events.disconnected(trouble)),
    });
    this.#connection = connection;
  }

  #onConnectionOver(connection: MqttConnection, notify: () => void): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#slot?.release();
    notify();
  }

  publish(uplink: Uplink): void {
    this.#connection?.publish(uplink);
  }

  disconnect(): void {
    this.#connection?.disconnect();
  }

  drop(): void {
    this.#connection?.drop();
    this.#connection = undefined;
    this.#slot?.release();
  }

  breakConnection(afterBytes: number): void {
    this.#connection?.cut(afterBytes);
  }

  abandon(): void {
    this.#abandoned?.drop();
    this.#abandoned = this.#connection;
    this.#connection = undefined;
    this.#abandoned?.abandon();
    this.#slot?.release();
  }

  async close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#slot?.release();
    this.#abandoned?.drop();
    await connection?.close();
  }
}

/** One connection, from the first byte to the last. */
class MqttConnection {
  readonly #client: MqttClient;
  readonly #events: LinkEvents;
  #phase: 'connecting' | 'up' | 'ending' | 'over' = 'connecting';
  #lastTrouble: LinkTrouble = { message: 'the connection was closed' };

  constructor(client: MqttClient, events: LinkEvents) {
    this.#client = client;
    this.#events = events;
    client.on('error', (error) => {
      this.#lastTrouble = troubleOf(error);
      // A server that refuses should close the connection (MQTT 3.1.1, 3.2.2.3). Don't wait for one that doesn't.
      if (this.#phase === 'connecting') client.end(true);
    });
    client.on('connect', () => this.#subscribe());
    client.on('message', (_topic, payload) => this.#receive(payload));
    client.on('close', () => this.#onClose());
  }

  /** A lock counts as connected once it can receive commands. */
  #subscribe(): void {
    this.#client.subscribe('down', { qos: 1 }, (error, granted) => {
      if (this.#phase !== 'connecting') return;
      if (error !== null || granted?.[0]?.qos !== 1) {
        this.#lastTrouble = { message: `the subscription to down was refused${error ? `: ${error.message}` : ''}` };
        this.#client.end(true);
        return;
      }
      this.#phase = 'up';
      this.#events.connected();
    });
  }

  #receive(payload: Uint8Array): void {
    if (this.#phase !== 'up') return;
    const downlink = decodeDownlink(payload);
    if (downlink.ok) this.#events.command(downlink.value);
    else this.#events.unreadable(downlink.error.message);
  }

  #onClose(): void {
    const phase = this.#phase;
    this.#phase = 'over';
    if (phase === 'connecting') this.#events.failed(this.#lastTrouble);
    else if (phase === 'up') this.#events.disconnected(this.#lastTrouble);
    else if (phase === 'ending') this.#events.disconnected(null);
  }

  publish(uplink: Uplink): void {
    this.#client.publish('up', Buffer.from(encodeUplink(uplink)), { qos: 1 }, (error) => {
      if (!error && this.#phase === 'up') this.#events.acknowledged(uplink);
    });
  }

  disconnect(): void {
    if (this.#phase !== 'up') return;
    this.#phase = 'ending';
    this.#client.end();
  }

  drop(): void {
    this.#phase = 'over';
    this.#client.end(true);
  }

  /** Sends `afterBytes` more bytes, then destroys the socket, even in the middle of a packet. */
  cut(afterBytes: number): void {
    const { stream } = this.#client;
    if (afterBytes <= 0) stream.destroy();
    else limitBytes(stream, afterBytes, () => stream.destroy());
  }

  /** Sends nothing more and ignores what arrives, but keeps the socket open until the gateway closes it. */
  abandon(): void {
    this.#phase = 'over';
    limitBytes(this.#client.stream, 0, () => undefined);
    this.#client.once('close', () => this.#client.end(true));
  }

  /**
   * Ends the connection as a lock does that loses its power: without a DISCONNECT, which would look as if the lock
   * closed the connection and forgot its close-connection ping. What was sent before still arrives.
   */
  close(): Promise<void> {
    const isUp = this.#phase === 'up' || this.#phase === 'ending';
    this.#phase = 'over';
    return new Promise((resolve) => {
      const timeout = systemClock.after(CLOSE_TIMEOUT_MS, () => {
        this.#client.stream.destroy();
        resolve();
      });
      const done = (): void => {
        timeout.cancel();
        resolve();
      };
      // A missing PUBACK must not delay the close.
      if (isUp) {
        this.#client.stream.once('close', done);
        this.#client.stream.end();
      } else this.#client.end(true, done);
    });
  }
}

/** Makes the stream send `bytes` more bytes and discard all others. `onSent` is called once they are sent. */
function limitBytes(stream: MqttClient['stream'], bytes: number, onSent: () => void): void {
  // Of the overloads of `write`, mqtt.js uses only those with a chunk and its encoding, without a callback.
  const write = stream.write.bind(stream) as (chunk: Uint8Array, done: () => void) => boolean;
  let remainingBytes = bytes;
  const limited = (chunk: Uint8Array | string, encoding?: BufferEncoding): boolean => {
    const packet = typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk;
    const part = packet.subarray(0, remainingBytes);
    if (part.length > 0) write(part, remainingBytes <= packet.length ? onSent : () => undefined);
    remainingBytes -= part.length;
    return true;
  };
  stream.write = limited as typeof stream.write;
}

/** mqtt.js stores the CONNACK's return code, a number, in the member that Node uses for its error codes. */
function troubleOf(error: Error & { code?: unknown }): LinkTrouble {
  if (error.code === 'EMFILE') return { message: 'this process has too many open files: raise "ulimit -n"' };
  const tls = clientTlsFailure(error);
  if (tls !== undefined) return { message: tls };
  return typeof error.code === 'number' ? { message: error.message, code: error.code } : { message: error.message };
}

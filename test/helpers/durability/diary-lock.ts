/**
 * A test lock that records which uplinks (messages) it made, and which of them the gateway acknowledged: its diary. As
 * a real lock does, it sends unacknowledged uplinks again after a reconnect, with the same bytes.
 */
import { connect, type MqttClient } from 'mqtt';
import { encodeUplink } from '../../../proto/wire/codec.js';
import { DEFAULT_POWER, type Ping } from '../../../proto/wire/ping.js';
import { realDelay } from '../clocks/change-signal.js';
import type { SeededChance } from '../pair/seeded-chance.js';

/** The key of an uplink within its lock. */
export interface PingKey {
  readonly boot: number;
  readonly sequence: number;
}

/** An uplink with its bytes, which are the same each time that it is sent. */
interface SentUplink extends PingKey {
  readonly bytes: Buffer;
}

/** The lock's identity, how fast it sends, and who hears of its diary. */
export interface DiaryLockOptions {
  readonly mac: string;
  readonly secret: string;
  /** The gateway's port; a function says which gateway the lock connects to next. */
  readonly port: number | (() => number);
  /** Maximum number of unacknowledged uplinks. */
  readonly maxUnacked: number;
  readonly chance: SeededChance;
  /** Whether the lock may make new uplinks now: the run pauses while the merchant is far behind. */
  readonly mayCreateUplinks: () => boolean;
  /** Called with each line of the diary: an uplink was sent, or acknowledged. */
  readonly onLine: (what: 'sent' | 'acked') => void;
}

/** The lock's clock before the first uplink of each boot. */
const FIRST_TIME_MS = Date.UTC(2026, 10, 20, 6);
/** The delay before the lock reconnects, if the connection closed although the gateway should be running. */
const RECONNECT_MS = 50;

/** The share of connects before which the lock reboots. */
const REBOOT_SHARE = 0.1;

/** One lock with its diary. */
export class DiaryLock {
  readonly mac: string;
  /** The acknowledged uplinks, in the order of their acknowledgements. */
  readonly acked: PingKey[] = [];
  readonly #options: DiaryLockOptions;
  #client: MqttClient | undefined;
  #unacked: SentUplink[] = [];
  #boot = 1;
  #sequence = 0;
  #isCreating = true;
  #mayConnect = false;

  constructor(options: DiaryLockOptions) {
    this.#options = options;
    this.mac = options.mac;
  }

  /** The number of unacknowledged uplinks. */
  get unackedCount(): number {
    return this.#unacked.length;
  }

  /** Stops making uplinks; existing uplinks are still sent until they are acknowledged. */
  stopCreating(): void {
    this.#isCreating = false;
  }

  /** Connects, and reconnects from now on. Must be called when the gateway has started. */
  allowConnections(): void {
    this.#mayConnect = true;
    this.#connect();
  }

  /** No reconnects from now on. Must be called before the gateway is stopped or killed. Closes no open connection. */
  forbidConnections(): void {
    this.#mayConnect = false;
  }

  /** Breaks the connection, as a loss of coverage does. */
  cut(): void {
    this.#mayConnect = false;
    this.#client?.end(true);
    this.#client = undefined;
  }

  #connect(): void {
    if (this.#client !== undefined || !this.#mayConnect) return;
    const { port, mac, secret } = this.#options;
    const client = connect({
      host: '127.0.0.1',
      port: typeof port === 'number' ? port : port(),
      clientId: mac,
      username: mac,
      password: secret,
      // MQTT 3.1.1, without the library's own reconnects and keepalive.
      protocolVersion: 4,
      reconnectPeriod: 0,
      keepalive: 0,
    });
    this.#client = client;
    client.on('connect', () => this.#onConnected(client));
    // An error is ignored: lost uplinks are missing in the diary, and `close` follows.
    client.on('error', () => undefined);
    client.on('close', () => {
      client.end(true);
      if (this.#client !== client) return;
      this.#client = undefined;
      if (this.#mayConnect) void realDelay(RECONNECT_MS).then(() => this.#connect());
    });
  }

  #onConnected(client: MqttClient): void {
    client.subscribe('down', { qos: 1 });
    if (this.#options.chance.next() < REBOOT_SHARE) this.#reboot();
    for (const uplink of this.#unacked) this.#send(client, uplink);
    this.createUplinks();
  }

  /** Simulates a boot; unacknowledged uplinks are still in flash. */
  #reboot(): void {
    this.#boot += 1;
    this.#sequence = 0;
  }

  /** Makes uplinks as fast as they are acknowledged; called again when the fleet may continue. */
  createUplinks(): void {
    const client = this.#client;
    if (client?.connected !== true) return;
    while (this.#isCreating && this.#options.mayCreateUplinks() && this.#unacked.length < this.#options.maxUnacked) {
      this.#sequence += 1;
      const uplink = { boot: this.#boot, sequence: this.#sequence, bytes: this.#encode() };
      this.#unacked.push(uplink);
      this.#send(client, uplink);
    }
  }

  #encode(): Buffer {
    const uplink = {
      boot: this.#boot,
      sequence: this.#sequence,
      timeMs: FIRST_TIME_MS + this.#sequence * 1000,
      power: DEFAULT_POWER,
      kept: 0,
      dropped: 0,
      body: randomPing(this.#options.chance),
    };
    return Buffer.from(encodeUplink(uplink));
  }

  #send(client: MqttClient, uplink: SentUplink): void {
    client.publish('up', uplink.bytes, { qos: 1 }, (error) => {
      // The callback has no error only if the gateway acknowledged the uplink (PUBACK).
      if (error || !this.#unacked.includes(uplink)) return;
      this.#unacked = this.#unacked.filter((each) => each !== uplink);
      this.acked.push({ boot: uplink.boot, sequence: uplink.sequence });
      this.#options.onLine('acked');
      this.createUplinks();
    });
    this.#options.onLine('sent');
  }
}

function randomPing(chance: SeededChance): Ping {
  const common = { lockState: 'unlocked', batteryPercent: chance.between(10, 101), ebikeVolts: null } as const;
  // Most pings are cellular, since GPS pings so often, and from all over the world, break rules of the power model.
  if (chance.next() < 0.9) {
    const others = { firmwareVersion: '2.4.1', tetherState: 'detached', position: null } as const;
    return { kind: 'cellular', reason: 'REASON_UNLOCKED_MOVEMENT', ...common, ...others };
  }
  return {
    kind: 'gps',
    reason: 'REASON_UNLOCKED_PING',
    ...common,
    tetherState: 'detached',
    position: {
      latitudeDegrees: chance.between(-90, 90),
      longitudeDegrees: chance.between(-180, 180),
      uncertaintyMeters: chance.between(1, 50),
    },
    speedMetersPerSecond: chance.between(0, 9),
    directionDegrees: chance.between(0, 360),
  };
}

/**
 * A test lock that records in a diary which uplinks it made, and which uplinks the gateway acknowledged. As a real lock
 * does, it sends unacknowledged uplinks again after a reconnect, with the same bytes.
 */
import { connect, type MqttClient } from 'mqtt';
import { encodeUplink } from '../../../proto/wire/codec.js';
import { DEFAULT_POWER, type Ping } from '../../../proto/wire/ping.js';
import { oddMoment } from '../clocks/bell.js';
import type { SeededChance } from '../pair/seeded-chance.js';

/** The key of an uplink within its lock. */
export interface PingName {
  readonly boot: number;
  readonly sequence: number;
}

interface Made extends PingName {
  readonly bytes: Buffer;
}

export interface DiaryLockOptions {
  readonly mac: string;
  readonly secret: string;
  readonly port: number;
  /** Maximum number of unacknowledged uplinks. */
  readonly inFlight: number;
  readonly chance: SeededChance;
  /** Whether new uplinks may be made now: a fleet pauses while the merchant is far behind. */
  readonly mayMake: () => boolean;
  /** Called with each line of the diary. */
  readonly onLine: (what: 'sent' | 'acked') => void;
}

const FIRST_TIME_MS = Date.UTC(2026, 10, 20, 6);
/** The delay before the lock reconnects while the gateway should be running. */
const RECONNECT_MS = 50;

export class DiaryLock {
  readonly mac: string;
  /** In the order of their acknowledgements. */
  readonly acked: PingName[] = [];
  readonly #options: DiaryLockOptions;
  #client: MqttClient | undefined;
  #unacked: Made[] = [];
  #boot = 1;
  #sequence = 0;
  #isMaking = true;
  #mayConnect = false;

  constructor(options: DiaryLockOptions) {
    this.#options = options;
    this.mac = options.mac;
  }

  /** The number of unacknowledged uplinks. */
  get waiting(): number {
    return this.#unacked.length;
  }

  /** Stops making uplinks; existing uplinks are still sent until they are acknowledged. */
  finish(): void {
    this.#isMaking = false;
  }

  /** Must be called when the gateway has started. */
  online(): void {
    this.#mayConnect = true;
    this.#connect();
  }

  /** Must be called when the gateway is stopped or killed. An open connection is not closed here. */
  offline(): void {
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
      port,
      clientId: mac,
      username: mac,
      password: secret,
      protocolVersion: 4,
      reconnectPeriod: 0,
      keepalive: 0,
    });
    this.#client = client;
    client.on('connect', () => this.#greet(client));
    // An error is ignored: lost uplinks are missing in the diary, and `close` follows.
    client.on('error', () => undefined);
    client.on('close', () => {
      client.end(true);
      if (this.#client !== client) return;
      this.#client = undefined;
      if (this.#mayConnect) void oddMoment(RECONNECT_MS).then(() => this.#connect());
    });
  }

  #greet(client: MqttClient): void {
    client.subscribe('down', { qos: 1 });
    if (this.#options.chance.next() < 0.1) this.#reboot();
    for (const made of this.#unacked) this.#send(client, made);
    this.make();
  }

  /** Simulates a boot; unacknowledged uplinks are still in flash. */
  #reboot(): void {
    this.#boot += 1;
    this.#sequence = 0;
  }

  /** Makes uplinks as fast as they are acknowledged; called again when the fleet may continue. */
  make(): void {
    const client = this.#client;
    if (client?.connected !== true) return;
    while (this.#isMaking && this.#options.mayMake() && this.#unacked.length < this.#options.inFlight) {
      this.#sequence += 1;
      const made = { boot: this.#boot, sequence: this.#sequence, bytes: this.#encode() };
      this.#unacked.push(made);
      this.#send(client, made);
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
      body: makePing(this.#options.chance),
    };
    return Buffer.from(encodeUplink(uplink));
  }

  #send(client: MqttClient, made: Made): void {
    client.publish('up', made.bytes, { qos: 1 }, (error) => {
      // Called without an error only for the PUBACK.
      if (error || !this.#unacked.includes(made)) return;
      this.#unacked = this.#unacked.filter((each) => each !== made);
      this.acked.push({ boot: made.boot, sequence: made.sequence });
      this.#options.onLine('acked');
      this.make();
    });
    this.#options.onLine('sent');
  }
}

function makePing(chance: SeededChance): Ping {
  const head = { lockState: 'unlocked', batteryPercent: chance.between(10, 101), ebikeVolts: null } as const;
  // Mostly cellular pings: GPS pings at this rate, all over the world, break rules of the judge.
  if (chance.next() < 0.9) {
    const tail = { firmwareVersion: '2.4.1', tetherState: 'detached', position: null } as const;
    return { kind: 'cellular', reason: 'REASON_UNLOCKED_MOVEMENT', ...head, ...tail };
  }
  return {
    kind: 'gps',
    reason: 'REASON_UNLOCKED_PING',
    ...head,
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

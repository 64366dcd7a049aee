/**
 * A lock for commands that writes a diary: it connects briefly, takes commands, carries each id out once, answers, and
 * loses its connection at odd moments. What it has done and what it has to say stand in its flash, which survives.
 *
 * It sends one uplink at a time, the same bytes until they are acknowledged, as real locks do.
 */
import { connect, type MqttClient } from 'mqtt';
import { decodeDownlink, encodeUplink } from '../../../proto/wire/codec.js';
import { type CommandAck, DEFAULT_POWER, type Ping, type Uplink } from '../../../proto/wire/ping.js';
import { oddMoment } from '../clocks/bell.js';
import type { SeededChance } from '../pair/seeded-chance.js';

export interface CommandLockOptions {
  readonly mac: string;
  readonly secret: string;
  readonly port: number;
  readonly chance: SeededChance;
  /** Told of each line of the diary. */
  readonly onLine: () => void;
}

/** Where a connection may be lost: each is a moment that some loss of a command or of its answer could hide in. */
type Moment = 'connected' | 'received' | 'done' | 'answered' | 'acknowledged';

/** The share of those moments at which it is lost. */
const LOST_SHARE = 0.04;
/** How long it stays away, in ms. */
const AWAY_MS = 40;
/** One in so many uplinks is a ping beside the answers. */
const PING_SHARE = 0.2;

interface Kept {
  readonly bytes: Buffer;
  /** The command that it answers. */
  readonly commandId: number | undefined;
}

export class CommandLock {
  readonly mac: string;
  /** Ids in the order in which they were carried out. An id that stood here twice would have been carried out twice. */
  readonly carriedOut: number[] = [];
  /** Ids whose answer was acknowledged. */
  readonly answered = new Set<number>();
  /** Ids that came again on a later connection than the one that acknowledged the answer. */
  readonly sentAfterAnswer: number[] = [];
  /** How many commands came, repeats included, and how many connections were lost on purpose. */
  received = 0;
  lost = 0;
  readonly #options: CommandLockOptions;
  readonly #done = new Set<number>();
  readonly #answeredOn = new Map<number, MqttClient>();
  #kept: Kept[] = [];
  #sequence = 0;
  #client: MqttClient | undefined;
  #inFlight: Kept | undefined;
  #mayConnect = false;

  constructor(options: CommandLockOptions) {
    this.#options = options;
    this.mac = options.mac;
  }

  /** From now on there is a gateway. */
  online(): void {
    this.#mayConnect = true;
    this.#connect();
  }

  /** From now on it stays away. */
  offline(): void {
    this.#mayConnect = false;
    this.#client?.end(true);
    this.#client = undefined;
  }

  #connect(): void {
    if (this.#client !== undefined || !this.#mayConnect) return;
    const { port, mac, secret } = this.#options;
    const identity = { clientId: mac, username: mac, password: secret };
    const client = connect({
      ...identity,
      host: '127.0.0.1',
      port,
      protocolVersion: 4,
      reconnectPeriod: 0,
      keepalive: 0,
    });
    this.#client = client;
    client.on('connect', () => this.#greet(client));
    client.on('message', (_topic, payload) => this.#receive(client, payload));
    // What went wrong shows in the diary, as what is missing; `close` follows.
    client.on('error', () => undefined);
    client.on('close', () => {
      client.end(true);
      if (this.#client === client) this.#client = undefined;
      this.#comeBack();
    });
  }

  #comeBack(): void {
    if (this.#client !== undefined || !this.#mayConnect) return;
    void oddMoment(this.#options.chance.between(1, AWAY_MS)).then(() => this.#connect());
  }

  #greet(client: MqttClient): void {
    this.#inFlight = undefined;
    client.subscribe('down', { qos: 1 });
    this.#make(PING, undefined);
    if (!this.#isLost('connected')) this.#sendNext(client);
  }

  #receive(client: MqttClient, payload: Uint8Array): void {
    if (client !== this.#client) return;
    const downlink = decodeDownlink(payload);
    if (!downlink.ok) throw new Error(downlink.error.message);
    const { id } = downlink.value;
    this.received += 1;
    const answeredOn = this.#answeredOn.get(id);
    if (answeredOn !== undefined && answeredOn !== client) this.sentAfterAnswer.push(id);
    if (this.#isLost('received')) return;
    if (!this.#done.has(id)) {
      this.#done.add(id);
      this.carriedOut.push(id);
      this.#options.onLine();
    }
    // Carried out, and gone before it could say so: the answer was not made.
    if (this.#isLost('done')) return;
    this.#make({ kind: 'ack', commandId: id, result: 'ok', detail: '', highWindow: null }, id);
    if (this.#options.chance.next() < PING_SHARE) this.#make(PING, undefined);
    this.#sendNext(client);
  }

  #make(body: Ping | CommandAck, commandId: number | undefined): void {
    this.#sequence += 1;
    const uplink: Uplink = {
      boot: 1,
      sequence: this.#sequence,
      timeMs: FIRST_TIME_MS + this.#sequence * 1000,
      power: DEFAULT_POWER,
      kept: 0,
      dropped: 0,
      body,
    };
    this.#kept.push({ bytes: Buffer.from(encodeUplink(uplink)), commandId });
  }

  #sendNext(client: MqttClient): void {
    const next = this.#kept[0];
    if (next === undefined || this.#inFlight !== undefined || client !== this.#client) return;
    this.#inFlight = next;
    client.publish('up', next.bytes, { qos: 1 }, (error) => {
      // Without an error it is the PUBACK, and nothing else.
      if (error || client !== this.#client) return;
      this.#inFlight = undefined;
      this.#kept.shift();
      if (next.commandId !== undefined) {
        if (!this.answered.has(next.commandId)) this.#options.onLine();
        this.answered.add(next.commandId);
        this.#answeredOn.set(next.commandId, client);
      }
      if (!this.#isLost('acknowledged')) this.#sendNext(client);
    });
    this.#isLost('answered');
  }

  /** Loses the connection, or not: without a word, as in a tunnel. What was on its way may or may not arrive. */
  #isLost(_moment: Moment): boolean {
    if (this.#options.chance.next() >= LOST_SHARE) return false;
    const client = this.#client;
    this.#client = undefined;
    this.lost += 1;
    client?.stream.destroy();
    client?.end(true);
    this.#comeBack();
    return true;
  }
}

const FIRST_TIME_MS = Date.UTC(2026, 10, 20, 6);

const PING: Ping = {
  kind: 'cellular',
  reason: 'REASON_UNLOCKED_MOVEMENT',
  lockState: 'unlocked',
  batteryPercent: 70,
  firmwareVersion: '2.4.1',
  ebikeVolts: null,
  tetherState: 'detached',
  position: null,
};

/**
 * A simulated lock that executes commands and records what it did. It connects, receives commands, executes each id
 * once, answers, and loses its connection at random moments. Its flash, which survives lost connections, has the
 * executed ids and the unsent uplinks (messages). It sends one uplink at a time, the same bytes until they are
 * acknowledged.
 */
import { connect, type MqttClient } from 'mqtt';
import { decodeDownlink, encodeUplink } from '../../../proto/wire/codec.js';
import { type CommandAck, DEFAULT_POWER, type Ping, type Uplink } from '../../../proto/wire/ping.js';
import { realDelay } from '../clocks/change-signal.js';
import type { SeededChance } from '../pair/seeded-chance.js';

/** A lock's identity, the port of the gateway, and the source of its random moments. */
export interface CommandLockOptions {
  readonly mac: string;
  readonly secret: string;
  readonly port: number;
  readonly chance: SeededChance;
  /** Called for each new line of the lock's record: a command was executed, or its answer was acknowledged. */
  readonly onLine: () => void;
}

/**
 * The moments at which the connection may be lost, each of which could reveal a lost command or answer. `done`: the
 * lock has executed the command. `answered`: the answer is on its way.
 */
type Moment = 'connected' | 'received' | 'done' | 'answered' | 'acknowledged';

/** The probability of a loss at such a moment. */
const LOSS_PROBABILITY = 0.04;
/** The longest time before the lock reconnects. */
const MAX_AWAY_MS = 40;
/** The probability that the lock sends a ping after an answer. */
const PING_PROBABILITY = 0.2;

/** An unsent uplink. */
interface FlashEntry {
  readonly bytes: Buffer;
  /** The command that the uplink answers; undefined for a ping. */
  readonly commandId: number | undefined;
}

/** One lock with its record. */
export class CommandLock {
  readonly mac: string;
  /** Ids in the order in which they were executed. An id that is here twice was executed twice. */
  readonly carriedOut: number[] = [];
  /** Ids whose answer was acknowledged. */
  readonly answered = new Set<number>();
  /** Ids that the gateway sent again on a new connection although it had acknowledged the answer: a mistake. */
  readonly sentAfterAnswer: number[] = [];
  /** How many commands were received, including repeats, and how many connections were lost on purpose. */
  received = 0;
  lost = 0;
  readonly #options: CommandLockOptions;
  readonly #executed = new Set<number>();
  /** The connection on which the gateway acknowledged the answer, by the command's id. */
  readonly #answeredOn = new Map<number, MqttClient>();
  #flash: FlashEntry[] = [];
  #sequence = 0;
  #client: MqttClient | undefined;
  #inFlight: FlashEntry | undefined;
  #mayConnect = false;

  constructor(options: CommandLockOptions) {
    this.#options = options;
    this.mac = options.mac;
  }

  /** Lets the lock connect; call it when the gateway has started. */
  online(): void {
    this.#mayConnect = true;
    this.#connect();
  }

  /** Disconnects the lock, which does not reconnect. */
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
    client.on('connect', () => this.#onConnect(client));
    client.on('message', (_topic, payload) => this.#receive(client, payload));
    // An error is ignored: a lost command is missing in the record, and `close` follows.
    client.on('error', () => undefined);
    client.on('close', () => {
      client.end(true);
      if (this.#client === client) this.#client = undefined;
      this.#reconnectLater();
    });
  }

  #reconnectLater(): void {
    if (this.#client !== undefined || !this.#mayConnect) return;
    void realDelay(this.#options.chance.between(1, MAX_AWAY_MS)).then(() => this.#connect());
  }

  #onConnect(client: MqttClient): void {
    this.#inFlight = undefined;
    client.subscribe('down', { qos: 1 });
    this.#storeUplink(PING, undefined);
    if (!this.#losesConnection('connected')) this.#sendNext(client);
  }

  #receive(client: MqttClient, payload: Uint8Array): void {
    if (client !== this.#client) return;
    const downlink = decodeDownlink(payload);
    if (!downlink.ok) throw new Error(downlink.error.message);
    const { id } = downlink.value;
    this.received += 1;
    const answeredOn = this.#answeredOn.get(id);
    if (answeredOn !== undefined && answeredOn !== client) this.sentAfterAnswer.push(id);
    if (this.#losesConnection('received')) return;
    if (!this.#executed.has(id)) {
      this.#executed.add(id);
      this.carriedOut.push(id);
      this.#options.onLine();
    }
    // The lock has executed the command, but loses the connection before it makes the answer.
    if (this.#losesConnection('done')) return;
    this.#storeUplink({ kind: 'ack', commandId: id, result: 'ok', detail: '', highWindow: null }, id);
    if (this.#options.chance.next() < PING_PROBABILITY) this.#storeUplink(PING, undefined);
    this.#sendNext(client);
  }

  #storeUplink(body: Ping | CommandAck, commandId: number | undefined): void {
    this.#sequence += 1;
    const uplink: Uplink = {
      boot: 1,
      sequence: this.#sequence,
      timeMs: FIRST_TIME_MS + this.#sequence * 1000,
      power: DEFAULT_POWER,
      // Tests of commands do not use these two: how many uplinks wait in the lock, and how many it has discarded.
      kept: 0,
      dropped: 0,
      body,
    };
    this.#flash.push({ bytes: Buffer.from(encodeUplink(uplink)), commandId });
  }

  #sendNext(client: MqttClient): void {
    const next = this.#flash[0];
    if (next === undefined || this.#inFlight !== undefined || client !== this.#client) return;
    this.#inFlight = next;
    client.publish('up', next.bytes, { qos: 1 }, (error) => {
      // No error means that the PUBACK has arrived.
      if (error || client !== this.#client) return;
      this.#inFlight = undefined;
      this.#flash.shift();
      if (next.commandId !== undefined) {
        if (!this.answered.has(next.commandId)) this.#options.onLine();
        this.answered.add(next.commandId);
        this.#answeredOn.set(next.commandId, client);
      }
      if (!this.#losesConnection('acknowledged')) this.#sendNext(client);
    });
    this.#losesConnection('answered');
  }

  /**
   * Loses the connection at random, without a DISCONNECT, and returns whether it did. Bytes under way may or may not
   * arrive. The moment only documents the call.
   */
  #losesConnection(_moment: Moment): boolean {
    if (this.#options.chance.next() >= LOSS_PROBABILITY) return false;
    const client = this.#client;
    this.#client = undefined;
    this.lost += 1;
    client?.stream.destroy();
    client?.end(true);
    this.#reconnectLater();
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

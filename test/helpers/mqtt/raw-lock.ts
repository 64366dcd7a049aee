/**
 * A client that sends exactly the bytes of the test, complete, in chunks or malformed, and records the received bytes.
 * Packets are built here after MQTT 3.1.1, without a library, since no library would send malformed packets.
 */
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { ChangeSignal } from '../clocks/change-signal.js';
import type { Teardown } from '../store/temp-folder.js';

const MAX_WAIT_SECONDS = 20;

/** A packet with its length before it (MQTT 3.1.1, 2.2). */
export function packet(header: number, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([header, ...encodeLength(body.length)]), body]);
}

/** A length as in a packet's head: 7 bits a byte, the lowest first; the eighth bit says that another byte follows. */
export function encodeLength(count: number): number[] {
  const bytes: number[] = [];
  for (let remaining = count; ; remaining >>= 7) {
    bytes.push(remaining > 127 ? (remaining & 127) | 128 : remaining);
    if (remaining <= 127) return bytes;
  }
}

/** A string with its length before it (MQTT 3.1.1, 1.5.3). */
function mqttString(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
}

/** The fields of a CONNECT. The client id is the user name by default. */
export interface ConnectFields {
  readonly user: string;
  readonly secret: string;
  readonly clientId?: string;
  /** In seconds; 300 by default, 0 for none. */
  readonly keepalive?: number;
  /** Whether the packet has a will: a message that the broker would publish when the connection breaks. */
  readonly will?: boolean;
}

/** A CONNECT with a clean session. */
export function connectPacket({ user, secret, clientId = user, keepalive = 300, will = false }: ConnectFields): Buffer {
  // The flags: user name 0x80, password 0x40, will 0x04, clean session 0x02.
  const flags = will ? 0xc6 : 0xc2;
  const protocolLevel = 4;
  const head = [...mqttString('MQTT'), protocolLevel, flags, keepalive >> 8, keepalive & 255];
  // A will has a topic and a message.
  const fields = [clientId, ...(will ? ['up', 'gone'] : []), user, secret].map(mqttString);
  return packet(0x10, Buffer.concat([Buffer.from(head), ...fields]));
}

/** A PUBLISH with packet id `id`. `flags` are the low half of its first byte; 2 is QoS 1. */
export function publishPacket(topic: string, payload: Buffer, id = 1, flags = 0x02): Buffer {
  return packet(0x30 | flags, Buffer.concat([mqttString(topic), Buffer.from([id >> 8, id & 255]), payload]));
}

/** A SUBSCRIBE with packet id 1. */
export function subscribePacket(topic: string, qos = 1): Buffer {
  return packet(0x82, Buffer.concat([Buffer.from([0, 1]), mqttString(topic), Buffer.from([qos])]));
}

/** A complete CONNACK in hex: accepted. */
export const CONNACK_ACCEPTED = '20020000';
/** CONNACK: not authorized. */
export const CONNACK_NOT_AUTHORIZED = '20020005';
/** A complete PINGREQ. */
export const PINGREQ = Buffer.from([0xc0, 0]);

/** The PUBACK of a packet id, in hex. */
export function pubackHex(id = 1): string {
  return Buffer.from([0x40, 2, id >> 8, id & 255]).toString('hex');
}

/** A client on a real socket. */
export class RawLock {
  readonly socket: Socket;
  isClosed = false;
  /** SHA-256 of the gateway's certificate. */
  fingerprint = '';
  readonly #changeSignal = new ChangeSignal();
  #receivedHex = '';

  /** A client on a socket, which is destroyed after the test. */
  constructor(test: Teardown, socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.isClosed = true;
      this.#changeSignal.notify();
    });
    socket.on('data', (chunk: Buffer) => {
      this.#receivedHex += chunk.toString('hex');
      this.#changeSignal.notify();
    });
    test.teardown(() => void socket.destroy());
  }

  /** Connects without sending anything. */
  static async open(test: Teardown, port: number): Promise<RawLock> {
    const lock = new RawLock(test, connect(port, '127.0.0.1'));
    await new Promise<void>((resolve) => lock.socket.once('connect', () => resolve()).once('close', () => resolve()));
    return lock;
  }

  /** Connects over TLS, and trusts the authority `ca` (PEM). @throws Error if the handshake fails */
  static async openTls(test: Teardown, port: number, ca: string): Promise<RawLock> {
    const lock = new RawLock(test, connectTls({ port, host: '127.0.0.1', ca, servername: 'localhost' }));
    await new Promise<void>((resolve, reject) => {
      lock.socket.once('secureConnect', () => resolve()).once('error', reject);
    });
    lock.fingerprint = (lock.socket as TLSSocket).getPeerX509Certificate()?.fingerprint256 ?? '';
    return lock;
  }

  /** Connects, sends a CONNECT and waits for the CONNACK. */
  static async connect(test: Teardown, port: number, fields: ConnectFields): Promise<RawLock> {
    const lock = await RawLock.open(test, port);
    lock.write(connectPacket(fields));
    await lock.waitForHex(CONNACK_ACCEPTED);
    return lock;
  }

  /** All received bytes, hex. */
  get receivedHex(): string {
    return this.#receivedHex;
  }

  write(bytes: Buffer): void {
    this.socket.write(bytes);
  }

  /** Writes, and resolves when the operating system has accepted the bytes. */
  async flush(bytes: Buffer): Promise<void> {
    await new Promise<void>((resolve) => this.socket.write(bytes, () => resolve()));
  }

  /** Resolves when the received bytes end with `hex`. @throws Error if they don't, or the connection closes before */
  async waitForHex(hex: string): Promise<void> {
    const hasArrived = (): boolean => this.#receivedHex.endsWith(hex);
    await this.#changeSignal.waitUntil(
      () => hasArrived() || this.isClosed,
      MAX_WAIT_SECONDS,
      () => `${hex}; received ${this.#receivedHex.slice(-80)}`,
    );
    if (!hasArrived()) throw new Error(`the connection closed before ${hex}; received ${this.#receivedHex.slice(-80)}`);
  }

  /** The first received bytes, hex; empty if the connection closes before. */
  async waitForAnswer(): Promise<string> {
    await this.#changeSignal.waitUntil(
      () => this.#receivedHex !== '' || this.isClosed,
      MAX_WAIT_SECONDS,
      () => 'an answer, or the close of the connection',
    );
    return this.#receivedHex;
  }

  /** Resolves when the connection has closed. */
  async waitForClose(): Promise<void> {
    await this.#changeSignal.waitUntil(
      () => this.isClosed,
      MAX_WAIT_SECONDS,
      () => 'the close of the connection',
    );
  }
}

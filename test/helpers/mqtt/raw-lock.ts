/**
 * A client that sends exactly the bytes of the test, complete, in chunks or malformed, and records the received bytes.
 * Packets are built by hand after MQTT 3.1.1, so that they can be packets that no MQTT library would send.
 */
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { Bell } from '../clocks/bell.js';
import type { Teardown } from '../store/temp-folder.js';

const MAX_WAIT_SECONDS = 20;

/** A packet with its length before it (MQTT 3.1.1, 2.2). */
export function packet(header: number, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([header, ...lengthOf(body.length)]), body]);
}

/** A length in the encoding of the fixed header. */
export function lengthOf(count: number): number[] {
  const bytes: number[] = [];
  for (let left = count; ; left >>= 7) {
    bytes.push(left > 127 ? (left & 127) | 128 : left);
    if (left <= 127) return bytes;
  }
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
}

/** The fields of a CONNECT. The client id is the user name by default. */
export interface Claim {
  readonly user: string;
  readonly secret: string;
  readonly clientId?: string;
  readonly keepalive?: number;
  readonly will?: boolean;
}

/** A CONNECT with a clean session. */
export function connectPacket({ user, secret, clientId = user, keepalive = 300, will = false }: Claim): Buffer {
  const head = [...text('MQTT'), 4, will ? 0xc6 : 0xc2, keepalive >> 8, keepalive & 255];
  const texts = [clientId, ...(will ? ['up', 'gone'] : []), user, secret].map(text);
  return packet(0x10, Buffer.concat([Buffer.from(head), ...texts]));
}

/** A PUBLISH with packet id `id`. */
export function publishPacket(topic: string, payload: Buffer, id = 1, flags = 0x02): Buffer {
  return packet(0x30 | flags, Buffer.concat([text(topic), Buffer.from([id >> 8, id & 255]), payload]));
}

/** A SUBSCRIBE with packet id 1. */
export function subscribePacket(topic: string, qos = 1): Buffer {
  return packet(0x82, Buffer.concat([Buffer.from([0, 1]), text(topic), Buffer.from([qos])]));
}

/** CONNACK: accepted. */
export const ACCEPTED = '20020000';
/** CONNACK: not authorized. */
export const NOT_AUTHORIZED = '20020005';
export const PINGREQ = Buffer.from([0xc0, 0]);

/** PUBACK of a packet id. */
export function puback(id = 1): string {
  return Buffer.from([0x40, 2, id >> 8, id & 255]).toString('hex');
}

export class RawLock {
  readonly socket: Socket;
  isClosed = false;
  /** SHA-256 of the gateway's certificate. */
  fingerprint = '';
  readonly #bell = new Bell();
  #heard = '';

  /** A client on a socket, which is destroyed after the test. */
  constructor(test: Teardown, socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.isClosed = true;
      this.#bell.ring();
    });
    socket.on('data', (piece: Buffer) => {
      this.#heard += piece.toString('hex');
      this.#bell.ring();
    });
    test.teardown(() => void socket.destroy());
  }

  /** Connects without sending anything. */
  static async open(test: Teardown, port: number): Promise<RawLock> {
    const lock = new RawLock(test, connect(port, '127.0.0.1'));
    await new Promise<void>((resolve) => lock.socket.once('connect', () => resolve()).once('close', () => resolve()));
    return lock;
  }

  /** Connects over TLS. */
  static async openTls(test: Teardown, port: number, ca: string): Promise<RawLock> {
    const lock = new RawLock(test, connectTls({ port, host: '127.0.0.1', ca, servername: 'localhost' }));
    await new Promise<void>((resolve, reject) => {
      lock.socket.once('secureConnect', () => resolve()).once('error', reject);
    });
    lock.fingerprint = (lock.socket as TLSSocket).getPeerX509Certificate()?.fingerprint256 ?? '';
    return lock;
  }

  /** Connects, sends a CONNECT and waits for the CONNACK. */
  static async connect(test: Teardown, port: number, claim: Claim): Promise<RawLock> {
    const lock = await RawLock.open(test, port);
    lock.write(connectPacket(claim));
    await lock.receives(ACCEPTED);
    return lock;
  }

  /** All received bytes, hex. */
  get heard(): string {
    return this.#heard;
  }

  write(bytes: Buffer): void {
    this.socket.write(bytes);
  }

  /** Writes, and resolves when the system has the bytes. */
  async written(bytes: Buffer): Promise<void> {
    await new Promise<void>((resolve) => this.socket.write(bytes, () => resolve()));
  }

  /** Resolves when the received bytes end with `hex`. @throws Error if they don't, or the connection closes before */
  async receives(hex: string): Promise<void> {
    const fits = (): boolean => this.#heard.endsWith(hex);
    await this.#bell.until(
      () => fits() || this.isClosed,
      MAX_WAIT_SECONDS,
      () => `${hex}; heard ${this.#heard.slice(-80)}`,
    );
    if (!fits()) throw new Error(`the connection ended before ${hex}; heard ${this.#heard.slice(-80)}`);
  }

  /** The first received bytes, hex; empty if the connection closes before. */
  async answered(): Promise<string> {
    await this.#bell.until(
      () => this.#heard !== '' || this.isClosed,
      MAX_WAIT_SECONDS,
      () => 'an answer, or the end of the connection',
    );
    return this.#heard;
  }

  /** Resolves when the connection has closed. */
  async ended(): Promise<void> {
    await this.#bell.until(
      () => this.isClosed,
      MAX_WAIT_SECONDS,
      () => 'the end of the connection',
    );
  }
}

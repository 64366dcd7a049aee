/**
 * A client of bytes: says exactly what the test writes, whole, in pieces or wrong, and keeps what it hears. Packets are
 * made by hand after MQTT 3.1.1, so that they can be what no MQTT library would send.
 */
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { Bell } from '../clocks/bell.js';
import type { Teardown } from '../store/temp-folder.js';

const SECONDS = 20;

/** A packet with its length before it (MQTT 3.1.1, 2.2). */
export function packet(header: number, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([header, ...lengthOf(body.length)]), body]);
}

/** A length as the fixed header has it. */
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

/** What a CONNECT says; the client id is the user name where none is given. */
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

/** CONNACK: taken. */
export const TAKEN = '20020000';
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
  /** SHA-256 of the certificate that the other side showed. */
  fingerprint = '';
  readonly #bell = new Bell();
  #heard = '';

  /** One on a socket; it is gone after the test. */
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

  /** Connects, and says nothing yet. */
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

  /** Connects, says who it is, and waits for the CONNACK. */
  static async connect(test: Teardown, port: number, claim: Claim): Promise<RawLock> {
    const lock = await RawLock.open(test, port);
    lock.write(connectPacket(claim));
    await lock.hears(TAKEN);
    return lock;
  }

  /** All that was heard, hex. */
  get heard(): string {
    return this.#heard;
  }

  write(bytes: Buffer): void {
    this.socket.write(bytes);
  }

  /** Writes and waits until the system has it. */
  async written(bytes: Buffer): Promise<void> {
    await new Promise<void>((resolve) => this.socket.write(bytes, () => resolve()));
  }

  /** Resolves when what it heard ends in this, hex. @throws Error where it doesn't, or the connection ends before */
  async hears(hex: string): Promise<void> {
    const fits = (): boolean => this.#heard.endsWith(hex);
    await this.#bell.until(
      () => fits() || this.isClosed,
      SECONDS,
      () => `${hex}; heard ${this.#heard.slice(-80)}`,
    );
    if (!fits()) throw new Error(`the connection ended before ${hex}; heard ${this.#heard.slice(-80)}`);
  }

  /** The first that it hears, hex; nothing where the connection ends before that. */
  async answered(): Promise<string> {
    await this.#bell.until(
      () => this.#heard !== '' || this.isClosed,
      SECONDS,
      () => 'an answer, or the end of the connection',
    );
    return this.#heard;
  }

  /** Resolves when the other side has ended the connection. */
  async ended(): Promise<void> {
    await this.#bell.until(
      () => this.isClosed,
      SECONDS,
      () => 'the end of the connection',
    );
  }
}

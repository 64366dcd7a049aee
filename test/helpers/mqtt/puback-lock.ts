/**
 * A minimal MQTT 3.1.1 client for tests and the bench that send many uplinks (a lock's messages) in one write and need
 * the exact order of the PUBACKs. It understands no other packets. raw-lock.ts is for malformed packets and for all
 * answers as bytes.
 */
import { connect, type Socket } from 'node:net';
import { connectPacket, publishPacket } from './raw-lock.js';

/** The first byte of these packets: their type (MQTT 3.1.1, 2.2). */
const PUBACK = 0x40;
const CONNACK = 0x20;
const PUBACK_BYTES = 4;

/** A PUBLISH to `up` at QoS 1, with packet id `id`. */
export function uplinkPacket(id: number, payload: Uint8Array): Buffer {
  return publishPacket('up', Buffer.from(payload), id);
}

/** A lock's connection. */
export class PubackLock {
  readonly socket: Socket;
  /** The packet ids of the PUBACKs, in the order of arrival. */
  readonly acked: number[] = [];
  /** Resolves when the connection has closed. */
  readonly closed: Promise<void>;
  #unparsed = Buffer.alloc(0);
  readonly #onPuback: () => void;

  private constructor(socket: Socket, onPuback: () => void) {
    this.socket = socket;
    this.#onPuback = onPuback;
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.on('data', (chunk) => this.#onData(chunk));
    socket.on('error', () => undefined);
  }

  /**
   * Connects and waits for the CONNACK. `onPuback` is called when PUBACKs have arrived.
   *
   * @throws Error if the connection is refused
   */
  static async connect(
    port: number,
    mac: string,
    secret: string,
    onPuback: () => void,
    clientId?: string,
  ): Promise<PubackLock> {
    const socket = connect(port, '127.0.0.1');
    socket.write(connectPacket({ user: mac, secret, keepalive: 0, ...(clientId !== undefined && { clientId }) }));
    const connack = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
    // The fourth byte is the return code; 0 accepts the connection.
    if (connack[0] !== CONNACK || connack[3] !== 0)
      throw new Error(`the CONNECT was refused: ${connack.toString('hex')}`);
    return new PubackLock(socket, onPuback);
  }

  #onData(chunk: Buffer): void {
    this.#unparsed = Buffer.concat([this.#unparsed, chunk]);
    for (; this.#unparsed.length >= PUBACK_BYTES; this.#unparsed = this.#unparsed.subarray(PUBACK_BYTES)) {
      if (this.#unparsed[0] !== PUBACK) throw new Error(`no PUBACK: ${this.#unparsed.toString('hex')}`);
      this.acked.push(this.#unparsed.readUInt16BE(2));
    }
    this.#onPuback();
  }
}

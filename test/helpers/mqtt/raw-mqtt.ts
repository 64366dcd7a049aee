/** A minimal MQTT 3.1.1 client, for many packets in one write and the exact order of acknowledgements. */
import { connect, type Socket } from 'node:net';

const CONNECT = 0x10;
const PUBLISH_QOS_1 = 0x32;
const PUBACK = 0x40;
const CONNACK = 0x20;

/** A CONNECT with a clean session, as a lock sends it. */
export function connectPacket(mac: string, secret: string, clientId = mac): Buffer {
  const head = Buffer.from([...text('MQTT'), 4, 0xc2, 0, 0]);
  return packet(CONNECT, Buffer.concat([head, text(clientId), text(mac), text(secret)]));
}

/** A PUBLISH to `up` at QoS 1. */
export function publishPacket(id: number, payload: Uint8Array): Buffer {
  return packet(PUBLISH_QOS_1, Buffer.concat([text('up'), Buffer.from([id >> 8, id & 0xff]), payload]));
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes]);
}

function packet(type: number, body: Buffer): Buffer {
  const length: number[] = [];
  let left = body.length;
  do {
    length.push((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
    left >>= 7;
  } while (left > 0);
  return Buffer.concat([Buffer.from([type, ...length]), body]);
}

/** A connection that records the received PUBACKs in order. */
export class RawLock {
  readonly socket: Socket;
  readonly acked: number[] = [];
  /** Resolves when the connection has closed. */
  readonly closed: Promise<void>;
  #rest = Buffer.alloc(0);
  readonly #ring: () => void;

  private constructor(socket: Socket, ring: () => void) {
    this.socket = socket;
    this.#ring = ring;
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
    socket.on('data', (chunk) => this.#take(chunk));
    socket.on('error', () => undefined);
  }

  /** Connects and waits for the CONNACK. `ring` is called for each PUBACK. */
  static async connect(
    port: number,
    mac: string,
    secret: string,
    ring: () => void,
    clientId?: string,
  ): Promise<RawLock> {
    const socket = connect(port, '127.0.0.1');
    socket.write(connectPacket(mac, secret, clientId));
    const connack = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
    if (connack[0] !== CONNACK || connack[3] !== 0)
      throw new Error(`the CONNECT was refused: ${connack.toString('hex')}`);
    return new RawLock(socket, ring);
  }

  #take(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    for (; this.#rest.length >= 4; this.#rest = this.#rest.subarray(4)) {
      if (this.#rest[0] !== PUBACK) throw new Error(`no PUBACK: ${this.#rest.toString('hex')}`);
      this.acked.push(this.#rest.readUInt16BE(2));
    }
    this.#ring();
  }
}

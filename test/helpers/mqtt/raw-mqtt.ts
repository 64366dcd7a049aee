/** A minimal MQTT 3.1.1 client, for many packets in one write and the exact order of acknowledgements. */
import { connect, type Socket } from 'node:net';

const CONNECT = 0x10;
const PUBLISH_QOS_1 = 0x32;
const PUBACK = 0x40;
const CONNACK = 0x20;

/** A CONNECT with a clean session, as a lock sends it. */
export function connectPacket(mac: string, secret: string, clientId = mac): Buffer {
  const variableHeader = Buffer.from([...mqttString('MQTT'), 4, 0xc2, 0, 0]);
  return packet(CONNECT, Buffer.concat([variableHeader, mqttString(clientId), mqttString(mac), mqttString(secret)]));
}

/** A PUBLISH to `up` at QoS 1. */
export function publishPacket(id: number, payload: Uint8Array): Buffer {
  return packet(PUBLISH_QOS_1, Buffer.concat([mqttString('up'), Buffer.from([id >> 8, id & 0xff]), payload]));
}

function mqttString(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes]);
}

function packet(type: number, body: Buffer): Buffer {
  const length: number[] = [];
  let remaining = body.length;
  do {
    length.push((remaining & 0x7f) | (remaining > 0x7f ? 0x80 : 0));
    remaining >>= 7;
  } while (remaining > 0);
  return Buffer.concat([Buffer.from([type, ...length]), body]);
}

/** A connection that records the received PUBACKs in order. */
export class RawLock {
  readonly socket: Socket;
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

  /** Connects and waits for the CONNACK. `onPuback` is called when PUBACKs have arrived. */
  static async connect(
    port: number,
    mac: string,
    secret: string,
    onPuback: () => void,
    clientId?: string,
  ): Promise<RawLock> {
    const socket = connect(port, '127.0.0.1');
    socket.write(connectPacket(mac, secret, clientId));
    const connack = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
    if (connack[0] !== CONNACK || connack[3] !== 0)
      throw new Error(`the CONNECT was refused: ${connack.toString('hex')}`);
    return new RawLock(socket, onPuback);
  }

  #onData(chunk: Buffer): void {
    this.#unparsed = Buffer.concat([this.#unparsed, chunk]);
    for (; this.#unparsed.length >= 4; this.#unparsed = this.#unparsed.subarray(4)) {
      if (this.#unparsed[0] !== PUBACK) throw new Error(`no PUBACK: ${this.#unparsed.toString('hex')}`);
      this.acked.push(this.#unparsed.readUInt16BE(2));
    }
    this.#onPuback();
  }
}

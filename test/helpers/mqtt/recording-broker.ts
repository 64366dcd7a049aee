/**
 * A broker that accepts every CONNECT and records every payload, so that a test sees what a load generator sends. It is
 * not the gateway's broker.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { Teardown } from '../store/temp-folder.js';

/** Packet types of MQTT 3.1.1 (section 2.2.1), and the complete CONNACK that accepts a connection. */
const CONNECT = 1;
/** The type of a PUBLISH, in the high half of its first byte. */
const PUBLISH = 3;
const CONNACK = Buffer.from([0x20, 2, 0, 0]);
const PUBACK_START = [0x40, 2];
/** Where the client id is in a CONNECT: after the protocol's name, its level, the flags and the keep-alive. */
const CLIENT_ID_OFFSET = 10;

/** A PUBLISH that the broker received. */
export interface RecordedPublish {
  readonly clientId: string;
  readonly topic: string;
  readonly payload: Buffer;
}

/** The broker, and what it received. */
export class RecordingBroker {
  readonly port: number;
  readonly publishes: RecordedPublish[] = [];
  /** Answers a PUBLISH. A test may replace it to answer late, wrongly or not at all. */
  answer: (puback: Buffer, socket: Socket) => void = (puback, socket) => void socket.write(puback);

  private constructor(port: number) {
    this.port = port;
  }

  static async start(test: Teardown): Promise<RecordingBroker> {
    // The broker is made once the server has its port; connections come only after that.
    const holder: { broker?: RecordingBroker } = {};
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      holder.broker?.serve(socket.on('error', () => undefined));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    test.teardown(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    holder.broker = new RecordingBroker((server.address() as AddressInfo).port);
    return holder.broker;
  }

  private serve(socket: Socket): void {
    let unparsed = Buffer.alloc(0);
    let clientId = '';
    socket.on('data', (chunk: Buffer) => {
      // Takes the complete packets. They are shorter than 128 bytes, so the length in their second byte is complete.
      for (
        unparsed = Buffer.concat([unparsed, chunk]);
        unparsed.length >= 2 && unparsed.length >= 2 + (unparsed[1] ?? 0);
      ) {
        const [type, body] = [(unparsed[0] ?? 0) >> 4, unparsed.subarray(2, 2 + (unparsed[1] ?? 0))];
        unparsed = unparsed.subarray(2 + (unparsed[1] ?? 0));
        if (type === CONNECT) {
          clientId = textAt(body, CLIENT_ID_OFFSET);
          socket.write(CONNACK);
        } else if (type === PUBLISH) this.#onPublish(clientId, body, socket);
      }
    });
  }

  #onPublish(clientId: string, body: Buffer, socket: Socket): void {
    const topic = textAt(body, 0);
    const packetIdOffset = 2 + topic.length;
    this.publishes.push({ clientId, topic, payload: Buffer.from(body.subarray(packetIdOffset + 2)) });
    this.answer(Buffer.from([...PUBACK_START, ...body.subarray(packetIdOffset, packetIdOffset + 2)]), socket);
  }
}

/** A text in a packet: two bytes with its length, then its bytes. */
function textAt(body: Buffer, offset: number): string {
  const length = body.readUInt16BE(offset);
  return body.toString('utf8', offset + 2, offset + 2 + length);
}

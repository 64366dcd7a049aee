/**
 * Very many locks in a process of their own, as light as can be: plain sockets that write a CONNECT, and perhaps a
 * SUBSCRIBE, and count the answers. It takes one argument, a {@link CrowdRequest} as JSON, and obeys lines of stdin:
 *
 * - `connect`: all connect at once; answers `{"retries":n,"ms":t}` when all have their CONNACK (and SUBACK).
 * - `drop`: all are cut, as by a network that fails; answers `{"dropped":n}`.
 */
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

export interface CrowdRequest {
  readonly port: number;
  readonly locks: number;
  readonly subscribes: boolean;
}

/** The MAC of a lock of the crowd, as it has it in its CONNECT. */
export function crowdMac(number: number): string {
  return (0xa4c138000000 + number).toString(16).toUpperCase();
}

/** Its secret. */
export function crowdSecret(mac: string): string {
  return `lgs_${mac}AAAAAAAAAAAAAAAAAAAA`;
}

/** How many connections are under way at once: below the backlog of 511 that bare aedes listens with. */
const AT_ONCE = 400;
const KEEPALIVE_SECONDS = 300;
const CONNACK_BYTES = 4;
const SUBACK_BYTES = 5;

const SUBSCRIBE_DOWN = Buffer.from([0x82, 9, 0, 1, 0, 4, ...Buffer.from('down'), 1]);

function connectPacket(mac: string): Buffer {
  const texts = [mac, mac, crowdSecret(mac)].flatMap((text) => [0, text.length, ...Buffer.from(text)]);
  const variable = [0, 4, ...Buffer.from('MQTT'), 4, 0xc2, KEEPALIVE_SECONDS >> 8, KEEPALIVE_SECONDS & 0xff];
  return Buffer.from([0x10, variable.length + texts.length, ...variable, ...texts]);
}

class Crowd {
  readonly #request: CrowdRequest;
  readonly #packets: Buffer[];
  #sockets: Socket[] = [];

  constructor(request: CrowdRequest) {
    this.#request = request;
    this.#packets = Array.from({ length: request.locks }, (_, number) => {
      const packet = connectPacket(crowdMac(number));
      return request.subscribes ? Buffer.concat([packet, SUBSCRIBE_DOWN]) : packet;
    });
  }

  async connect(): Promise<{ retries: number; ms: number }> {
    const startedAt = performance.now();
    let [next, retries] = [0, 0];
    const work = async (): Promise<void> => {
      for (let number = next++; number < this.#request.locks; number = next++) {
        const packet = this.#packets[number] as Buffer;
        // As a lock would, it tries again where the system had no place for it.
        while (!(await this.#connectOne(packet))) retries += 1;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return { retries, ms: performance.now() - startedAt };
  }

  #connectOne(packet: Buffer): Promise<boolean> {
    const expected = this.#request.subscribes ? CONNACK_BYTES + SUBACK_BYTES : CONNACK_BYTES;
    return new Promise((resolve) => {
      let bytes = 0;
      const socket = connect({ port: this.#request.port, host: '127.0.0.1', noDelay: true });
      socket.on('data', (piece: Buffer) => {
        if (bytes < CONNACK_BYTES && bytes + piece.length >= CONNACK_BYTES && piece[3 - bytes] !== 0)
          throw new Error('a lock was refused');
        bytes += piece.length;
        if (bytes >= expected) resolve(true);
      });
      socket.on('error', () => undefined);
      socket.on('close', () => resolve(false));
      socket.on('connect', () => this.#sockets.push(socket));
      socket.write(packet);
    });
  }

  async drop(): Promise<{ dropped: number }> {
    const sockets = this.#sockets;
    this.#sockets = [];
    await Promise.all(
      sockets.map((socket) => {
        if (socket.closed) return undefined;
        const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
        socket.resetAndDestroy();
        return closed;
      }),
    );
    return { dropped: sockets.length };
  }
}

async function main(argument: string): Promise<void> {
  const crowd = new Crowd(JSON.parse(argument) as CrowdRequest);
  for await (const line of createInterface({ input: process.stdin }))
    console.log(JSON.stringify(await (line === 'connect' ? crowd.connect() : crowd.drop())));
  process.exit(0);
}

if (process.argv[1] === import.meta.filename) await main(process.argv[2] ?? '');

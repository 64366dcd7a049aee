/**
 * A program that plays thousands of locks with as little code as possible: plain sockets that send a CONNECT, and
 * optionally a SUBSCRIBE, and count the bytes of the answers. It takes one argument, a {@link ManyLocksRequest} as
 * JSON, and reads commands from stdin:
 *
 * - `connect`: all locks connect at once; answers `{"retries":n,"ms":t}` when all have their CONNACK (and SUBACK).
 * - `drop`: resets all connections, as a failing network would; answers `{"dropped":n}`.
 */
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

/** The program's argument. @see lockMac for the locks' names */
export interface ManyLocksRequest {
  readonly port: number;
  readonly locks: number;
  readonly subscribes: boolean;
}

/** The MAC of the lock with this number, as written in its CONNECT: the prefix A4:C1:38 and the number. */
export function lockMac(number: number): string {
  return (0xa4c138000000 + number).toString(16).toUpperCase();
}

/** The secret of the lock with this MAC. */
export function lockSecret(mac: string): string {
  return `lgs_${mac}AAAAAAAAAAAAAAAAAAAA`;
}

/** Fewer than the 511 connections of the backlog with which bare aedes listens. */
const MAX_CONCURRENT_CONNECTS = 400;
const KEEPALIVE_SECONDS = 300;
const CONNACK_BYTES = 4;
const SUBACK_BYTES = 5;

/** SUBSCRIBE with packet id 1 to the topic `down`, QoS 1 (MQTT 3.1.1 §3.8). */
const SUBSCRIBE_DOWN = Buffer.from([0x82, 9, 0, 1, 0, 4, ...Buffer.from('down'), 1]);

/** CONNECT with a clean session, user name and password (flags 0xc2; MQTT 3.1.1 §3.1). */
function connectPacket(mac: string): Buffer {
  // Client id, user name and password, each with its length in two bytes.
  const payload = [mac, mac, lockSecret(mac)].flatMap((text) => [0, text.length, ...Buffer.from(text)]);
  const variableHeader = [0, 4, ...Buffer.from('MQTT'), 4, 0xc2, KEEPALIVE_SECONDS >> 8, KEEPALIVE_SECONDS & 0xff];
  return Buffer.from([0x10, variableHeader.length + payload.length, ...variableHeader, ...payload]);
}

class ManyLocks {
  readonly #request: ManyLocksRequest;
  readonly #packets: Buffer[];
  #sockets: Socket[] = [];

  constructor(request: ManyLocksRequest) {
    this.#request = request;
    this.#packets = Array.from({ length: request.locks }, (_, number) => {
      const packet = connectPacket(lockMac(number));
      return request.subscribes ? Buffer.concat([packet, SUBSCRIBE_DOWN]) : packet;
    });
  }

  async connect(): Promise<{ retries: number; ms: number }> {
    const startedAt = performance.now();
    let [nextNumber, retries] = [0, 0];
    const connectRemaining = async (): Promise<void> => {
      for (let number = nextNumber++; number < this.#request.locks; number = nextNumber++) {
        const packet = this.#packets[number] as Buffer;
        // Like a real lock, tries again if the connection was dropped.
        while (!(await this.#connectOne(packet))) retries += 1;
      }
    };
    await Promise.all(Array.from({ length: MAX_CONCURRENT_CONNECTS }, connectRemaining));
    return { retries, ms: performance.now() - startedAt };
  }

  /** Connects a lock. Resolves with false if the connection was closed before all answers. */
  #connectOne(packet: Buffer): Promise<boolean> {
    const expected = this.#request.subscribes ? CONNACK_BYTES + SUBACK_BYTES : CONNACK_BYTES;
    return new Promise((resolve) => {
      let bytes = 0;
      const socket = connect({ port: this.#request.port, host: '127.0.0.1', noDelay: true });
      socket.on('data', (chunk: Buffer) => {
        // Byte 3 of the CONNACK is its return code; 0 is accepted. The chunk may begin in the middle of it.
        if (bytes < CONNACK_BYTES && bytes + chunk.length >= CONNACK_BYTES && chunk[3 - bytes] !== 0)
          throw new Error('a lock was refused');
        bytes += chunk.length;
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
  const locks = new ManyLocks(JSON.parse(argument) as ManyLocksRequest);
  for await (const line of createInterface({ input: process.stdin }))
    console.log(JSON.stringify(await (line === 'connect' ? locks.connect() : locks.drop())));
  process.exit(0);
}

if (process.argv[1] === import.meta.filename) void main(process.argv[2] ?? '');

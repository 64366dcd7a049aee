/**
 * The hostile neighbour: connections that send one request after the other as fast as they are answered. It knows
 * nothing of HTTP but where an answer ends, so that it takes less CPU than what answers.
 */
import { connect, type Socket } from 'node:net';
import { afterThisTurn } from '../../../proto/clock.js';

/** One request, over and over. */
export interface Flood {
  readonly port: number;
  /** The address that it comes from. */
  readonly from: string;
  readonly connections: number;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Empty for none. */
  readonly body: string;
}

/** What was answered: how many, by status. */
export type Answered = Record<string, number>;

const HEAD_END = '\r\n\r\n';

/** The bytes of the request. */
function requestBytes({ method, path, headers, body }: Flood): Buffer {
  const all = {
    host: '127.0.0.1',
    ...headers,
    ...(body !== '' && { 'content-length': String(Buffer.byteLength(body)) }),
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}${HEAD_END}${body}`);
}

/** One connection, which is opened again when the other side ends it. */
class Flooder {
  readonly #flood: Flood;
  readonly #bytes: Buffer;
  readonly #answered: Answered;
  #socket: Socket | undefined;
  #head = '';
  /** Bytes of the answer's body that have not come. */
  #left = 0;
  #isOver = false;

  constructor(flood: Flood, bytes: Buffer, answered: Answered) {
    this.#flood = flood;
    this.#bytes = bytes;
    this.#answered = answered;
    this.#open();
  }

  end(): void {
    this.#isOver = true;
    this.#socket?.destroy();
  }

  #open(): void {
    const { port, from } = this.#flood;
    const socket = connect({ host: '127.0.0.1', port, localAddress: from });
    this.#socket = socket;
    this.#head = '';
    this.#left = 0;
    socket.on('connect', () => void socket.write(this.#bytes));
    socket.on('data', (bytes) => this.#take(bytes, socket));
    // What was not sent to its end is refused all the same: the answer has come by then.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (!this.#isOver) afterThisTurn(() => this.#open());
    });
  }

  #take(bytes: Buffer, socket: Socket): void {
    if (this.#left === 0) {
      this.#head += bytes.toString('latin1');
      const end = this.#head.indexOf(HEAD_END);
      if (end === -1) return;
      const length = Number(/content-length: (\d+)/i.exec(this.#head)?.[1] ?? 0);
      this.#left = length - (this.#head.length - end - HEAD_END.length);
    } else this.#left -= bytes.length;
    if (this.#left > 0) return;
    const status = this.#head.slice(9, 12);
    this.#answered[status] = (this.#answered[status] ?? 0) + 1;
    this.#head = '';
    this.#left = 0;
    if (socket.writable) socket.write(this.#bytes);
  }
}

/** Begins the flood. @returns what ends it, and says what was answered */
export function startFlood(flood: Flood): () => Answered {
  const [bytes, answered] = [requestBytes(flood), {} as Answered];
  const flooders = Array.from({ length: flood.connections }, () => new Flooder(flood, bytes, answered));
  return () => {
    for (const flooder of flooders) flooder.end();
    return answered;
  };
}

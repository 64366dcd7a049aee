/**
 * A flood of HTTP requests: connections that each send one request after the other as fast as they are answered. The
 * code only finds the status and the end of each answer, so that it uses less CPU than the server.
 */
import { connect, type Socket } from 'node:net';
import { afterThisTurn } from '../../../proto/clock.js';

/** One request, which is sent repeatedly. */
export interface Flood {
  readonly port: number;
  /** The source address of the connections. */
  readonly sourceAddress: string;
  readonly connections: number;
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Empty for none. */
  readonly body: string;
}

/** The number of answers by status. */
export type AnswerCounts = Record<string, number>;

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

/** One connection, which is opened again when the server closes it. */
class Flooder {
  readonly #flood: Flood;
  readonly #bytes: Buffer;
  readonly #answerCounts: AnswerCounts;
  #socket: Socket | undefined;
  /** The head of the answer as far as it has arrived; after its end also the body's first bytes. */
  #head = '';
  /** Bytes of the answer's body that have not arrived. */
  #remainingBodyBytes = 0;
  #isEnded = false;

  constructor(flood: Flood, bytes: Buffer, answerCounts: AnswerCounts) {
    this.#flood = flood;
    this.#bytes = bytes;
    this.#answerCounts = answerCounts;
    this.#open();
  }

  end(): void {
    this.#isEnded = true;
    this.#socket?.destroy();
  }

  #open(): void {
    const { port, sourceAddress } = this.#flood;
    const socket = connect({ host: '127.0.0.1', port, localAddress: sourceAddress });
    this.#socket = socket;
    this.#head = '';
    this.#remainingBodyBytes = 0;
    socket.on('connect', () => void socket.write(this.#bytes));
    socket.on('data', (bytes) => this.#onData(bytes, socket));
    // The server may refuse a request before all of it is sent; the answer has arrived by then.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (!this.#isEnded) afterThisTurn(() => this.#open());
    });
  }

  /** Finds the end of an answer, counts it, and sends the next request. */
  #onData(bytes: Buffer, socket: Socket): void {
    if (this.#remainingBodyBytes === 0) {
      this.#head += bytes.toString('latin1');
      const end = this.#head.indexOf(HEAD_END);
      if (end === -1) return;
      const length = Number(/content-length: (\d+)/i.exec(this.#head)?.[1] ?? 0);
      this.#remainingBodyBytes = length - (this.#head.length - end - HEAD_END.length);
    } else this.#remainingBodyBytes -= bytes.length;
    if (this.#remainingBodyBytes > 0) return;
    // A head begins with `HTTP/1.1 200`.
    const status = this.#head.slice(9, 12);
    this.#answerCounts[status] = (this.#answerCounts[status] ?? 0) + 1;
    this.#head = '';
    this.#remainingBodyBytes = 0;
    if (socket.writable) socket.write(this.#bytes);
  }
}

/** Starts the flood. @returns a function that stops it and returns the counts of answers */
export function startFlood(flood: Flood): () => AnswerCounts {
  const [bytes, answerCounts] = [requestBytes(flood), {} as AnswerCounts];
  const flooders = Array.from({ length: flood.connections }, () => new Flooder(flood, bytes, answerCounts));
  return () => {
    for (const flooder of flooders) flooder.end();
    return answerCounts;
  };
}

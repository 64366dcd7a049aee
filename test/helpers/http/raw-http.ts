/**
 * Writes and reads HTTP on a plain socket, for requests that no client library makes: pipelined requests, and answers
 * that the client reads only partly.
 */
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { ChangeSignal } from '../clocks/change-signal.js';

/** The text of a GET request; `headers` are header lines. */
export function getRequest(path: string, headers: readonly string[] = ['host: a']): string {
  // HTTP/1.1 requires a Host header, with any name.
  return `${[`GET ${path} HTTP/1.1`, ...headers].join('\r\n')}\r\n\r\n`;
}

/** The number of open file descriptors of this process. */
export function openDescriptors(): number {
  // Reading the folder opens one more.
  return readdirSync('/proc/self/fd').length - 1;
}

/** A connection that holds everything it receives. */
export class RawHttp {
  readonly socket: Socket;
  isClosed = false;
  #received = '';
  readonly #changeSignal = new ChangeSignal();

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1').on('data', (text: string) => {
      this.#received += text;
      this.#changeSignal.notify();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.isClosed = true;
      this.#changeSignal.notify();
    });
  }

  /** Connects, from `fromAddress` if given: Linux accepts all of 127.0.0.0/8. */
  static async open(port: number, fromAddress?: string): Promise<RawHttp> {
    const socket = connect({
      port,
      host: '127.0.0.1',
      ...(fromAddress !== undefined && { localAddress: fromAddress }),
    });
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return new RawHttp(socket);
  }

  /** Everything received so far. */
  get received(): string {
    return this.#received;
  }

  /** The statuses of the answers that have started to arrive. */
  get statuses(): number[] {
    return [...this.#received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  }

  write(bytes: string | Buffer): void {
    this.socket.write(bytes);
  }

  /** Writes, and resolves when the system has accepted all bytes. */
  async flush(bytes: string): Promise<void> {
    await new Promise<void>((resolve) => this.socket.write(bytes, () => resolve()));
  }

  /** Resolves when the received text matches. */
  async waitForText(what: RegExp): Promise<void> {
    await this.waitUntil(
      () => what.test(this.#received),
      () => `${what}, after ${JSON.stringify(this.#received.slice(-300))}`,
    );
  }

  /** Resolves when `holds` returns true; checks it when anything arrives. @throws Error with `what` if not in 20 s */
  async waitUntil(holds: () => boolean, what: () => string): Promise<void> {
    await this.#changeSignal.waitUntil(holds, 20, what);
  }

  /** Resolves when the other side has closed the connection. */
  async waitForClose(): Promise<void> {
    await this.waitUntil(
      () => this.isClosed,
      () => 'the end of the connection',
    );
  }
}

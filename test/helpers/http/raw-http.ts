/** HTTP by hand, for what no client library does: many requests in one write, answers that are read in part. */
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { Bell } from '../clocks/bell.js';

/** The bytes of a GET; `headers` are whole lines. */
export function getRequest(where: string, headers: readonly string[] = ['host: a']): string {
  return `${[`GET ${where} HTTP/1.1`, ...headers].join('\r\n')}\r\n\r\n`;
}

/** How many files and sockets this process has open. */
export function openDescriptors(): number {
  // The listing itself is one.
  return readdirSync('/proc/self/fd').length - 1;
}

/** A connection that keeps what it hears. */
export class RawHttp {
  readonly socket: Socket;
  isClosed = false;
  #heard = '';
  readonly #bell = new Bell();

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1').on('data', (text: string) => {
      this.#heard += text;
      this.#bell.ring();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.isClosed = true;
      this.#bell.ring();
    });
  }

  /** Connects, from an address of its own where one is given: Linux has all of 127.0.0.0/8. */
  static async open(port: number, from?: string): Promise<RawHttp> {
    const socket = connect({ port, host: '127.0.0.1', ...(from !== undefined && { localAddress: from }) });
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return new RawHttp(socket);
  }

  /** Everything that has come. */
  get heard(): string {
    return this.#heard;
  }

  /** The statuses of the answers that have begun. */
  get statuses(): number[] {
    return [...this.#heard.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  }

  write(bytes: string | Buffer): void {
    this.socket.write(bytes);
  }

  /** Resolves when the system has taken it all. */
  async flush(bytes: string): Promise<void> {
    await new Promise<void>((resolve) => this.socket.write(bytes, () => resolve()));
  }

  /** Resolves when what was heard fits. */
  async hears(what: RegExp): Promise<void> {
    await this.until(
      () => what.test(this.#heard),
      () => `${what}, after ${JSON.stringify(this.#heard.slice(-300))}`,
    );
  }

  async until(holds: () => boolean, what: () => string): Promise<void> {
    await this.#bell.until(holds, 20, what);
  }

  /** Resolves when the other side has ended it. */
  async ended(): Promise<void> {
    await this.until(
      () => this.isClosed,
      () => 'the end of the connection',
    );
  }
}

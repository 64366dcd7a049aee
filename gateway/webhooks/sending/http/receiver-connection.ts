/**
 * One connection to a receiver. It carries one request at a time, since a receiver that fails after the first of
 * several would leave open which of them it got.
 *
 * A connection is *connecting* until its socket is open and, with TLS, the certificate is checked; *busy* while a
 * request has no complete answer; *idle* between requests; and *closed* for good after a failure, after an answer that
 * does not allow another request, or when its user gives the request up.
 */
import type { Socket } from 'node:net';
import { type Answer, AnswerReader } from './answer-reader.js';
import type { RequestBytes } from './request-text.js';

/** How a request ends: exactly one of these is called, never before `send` returns; none after `close`. */
export interface RequestCallbacks {
  answered(answer: Answer): void;
  failed(error: Error): void;
  /**
   * The receiver had closed the connection while it was idle. That is no failure of the receiver: usually it has not
   * seen the request; if it has, it gets the same event again under the same id.
   */
  wasStale(error: Error): void;
}

/** The part of the pool that its connections use. */
export interface ConnectionOwner {
  /** The connection is idle. */
  becameIdle(connection: ReceiverConnection): void;
  /** The connection is closed. */
  closed(connection: ReceiverConnection): void;
}

const STALE_CODES: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);

export class ReceiverConnection {
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  #reader: AnswerReader | undefined;
  #callbacks: RequestCallbacks | undefined;
  /** What is written when the socket is ready. */
  #waiting: RequestBytes | undefined;
  #isReady = false;
  #wasUsed = false;
  #isClosed = false;

  /** @param readyEvent `connect`, or `secureConnect` with TLS */
  constructor(socket: Socket, readyEvent: 'connect' | 'secureConnect', owner: ConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
    socket.once(readyEvent, () => this.#ready());
    socket.on('data', (bytes: Buffer) => this.#read(bytes));
    socket.on('end', () => this.#ended());
    socket.on('error', (error) => this.#lost(error));
    socket.on('close', () => this.#lost(connectionReset()));
  }

  /** Whether the address is looked up or the socket is being opened. */
  get isConnecting(): boolean {
    return this.#socket.connecting;
  }

  /** Sends a request. The connection must be new or idle. */
  send(request: RequestBytes, callbacks: RequestCallbacks): void {
    this.#callbacks = callbacks;
    this.#reader = new AnswerReader();
    if (this.#wasUsed) this.#socket.ref();
    if (this.#isReady) this.#write(request);
    else this.#waiting = request;
  }

  /** Closes the connection. The end of a request is not reported any more. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#callbacks = undefined;
    this.#reader = undefined;
    this.#waiting = undefined;
    this.#socket.destroy();
    this.#owner.closed(this);
  }

  #ready(): void {
    this.#isReady = true;
    if (this.#waiting !== undefined) this.#write(this.#waiting);
    this.#waiting = undefined;
  }

  #write(request: RequestBytes): void {
    if ('latin1' in request) this.#socket.write(request.latin1, 'latin1');
    else this.#socket.write(request.bytes);
  }

  #read(bytes: Buffer): void {
    const reader = this.#reader;
    try {
      // Bytes that answer nothing: whatever follows could not be told from an answer.
      if (reader === undefined) this.close();
      else if (reader.read(bytes)) this.#complete(reader);
    } catch (error) {
      this.#lost(error as Error);
    }
  }

  #ended(): void {
    if (this.#reader?.end() === true) this.#complete(this.#reader);
    else this.#lost(connectionReset());
  }

  #complete({ answer, keepsConnection }: AnswerReader): void {
    const callbacks = this.#callbacks;
    // An answer that came before the request was sent completely leaves the rest of the request on its way.
    if (keepsConnection && this.#socket.writableLength === 0) {
      this.#callbacks = undefined;
      this.#reader = undefined;
      this.#wasUsed = true;
      // A gateway that stops need not wait for idle connections.
      this.#socket.unref();
      this.#owner.becameIdle(this);
    } else this.close();
    callbacks?.answered(answer);
  }

  #lost(error: Error): void {
    const callbacks = this.#callbacks;
    const { code } = error as NodeJS.ErrnoException;
    const isStale = this.#wasUsed && this.#reader?.hasBegun === false && STALE_CODES.has(code);
    this.close();
    if (isStale) callbacks?.wasStale(error);
    else callbacks?.failed(error);
  }
}

/** The error of a connection that the receiver has closed. */
function connectionReset(): Error {
  return Object.assign(new Error('the receiver closed the connection'), { code: 'ECONNRESET' });
}

/**
 * The connections to one receiver: one scheme, host and port, with the same certificate authorities. A request takes
 * the connection that was idle last, or opens one. The callers limit how many requests are under way.
 */
import type { Answer } from './answer-reader.js';
import type { ConnectionOwner, ReceiverConnection, RequestCallbacks } from './receiver-connection.js';
import type { RequestBytes } from './request-text.js';

/** Maximum number of idle connections to a receiver. */
export const MAX_IDLE_CONNECTIONS = 16;

/**
 * How an exchange ends: exactly one of these is called, after the constructor of {@link Exchange} has returned; none
 * after `cancel`.
 */
export interface ExchangeCallbacks {
  answered(answer: Answer): void;
  failed(error: Error): void;
}

/** Opens a connection. @throws Error if it must not be opened */
type OpenConnection = (owner: ConnectionOwner) => ReceiverConnection;

export class ReceiverPool implements ConnectionOwner {
  readonly #open: OpenConnection;
  readonly #onEmpty: () => void;
  /** In the order in which they became idle. */
  readonly #idle: ReceiverConnection[] = [];
  #count = 0;

  /** @param onEmpty called when the last connection is closed, and when none could be opened */
  constructor(open: OpenConnection, onEmpty: () => void) {
    this.#open = open;
    this.#onEmpty = onEmpty;
  }

  /** An idle connection, or a new one. @throws Error if no connection may be opened */
  take(): ReceiverConnection {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    try {
      const connection = this.#open(this);
      this.#count += 1;
      return connection;
    } finally {
      if (this.#count === 0) this.#onEmpty();
    }
  }

  becameIdle(connection: ReceiverConnection): void {
    if (this.#idle.length < MAX_IDLE_CONNECTIONS) this.#idle.push(connection);
    else connection.close();
  }

  closed(connection: ReceiverConnection): void {
    const index = this.#idle.indexOf(connection);
    if (index !== -1) this.#idle.splice(index, 1);
    this.#count -= 1;
    if (this.#count === 0) this.#onEmpty();
  }

  /** Closes all idle connections. */
  closeIdle(): void {
    for (const connection of [...this.#idle]) connection.close();
  }
}

/** One request and its answer. Stale connections (receiver-connection.ts) are replaced on the way. */
export class Exchange implements RequestCallbacks {
  readonly #pool: ReceiverPool;
  readonly #request: RequestBytes;
  readonly #callbacks: ExchangeCallbacks;
  #connection: ReceiverConnection | undefined;
  /** All idle connections may be stale, so the request may have to be repeated once for each. */
  #repeatsLeft = MAX_IDLE_CONNECTIONS;
  #isOver = false;

  constructor(pool: ReceiverPool, request: RequestBytes, callbacks: ExchangeCallbacks) {
    this.#pool = pool;
    this.#request = request;
    this.#callbacks = callbacks;
    this.#send();
  }

  /** Whether the address is looked up or the socket is being opened. */
  get isConnecting(): boolean {
    return this.#connection?.isConnecting === true;
  }

  /** Gives the request up; its end is not reported any more. */
  cancel(): void {
    this.#isOver = true;
    this.#connection?.close();
  }

  answered(answer: Answer): void {
    this.#isOver = true;
    this.#connection = undefined;
    this.#callbacks.answered(answer);
  }

  failed(error: Error): void {
    this.#connection = undefined;
    if (!this.#isOver) this.#callbacks.failed(error);
    this.#isOver = true;
  }

  wasStale(error: Error): void {
    this.#repeatsLeft -= 1;
    if (this.#repeatsLeft < 0) this.failed(error);
    else this.#send();
  }

  #send(): void {
    try {
      this.#connection = this.#pool.take();
    } catch (error) {
      process.nextTick(() => this.failed(error as Error));
      return;
    }
    this.#connection.send(this.#request, this);
  }
}

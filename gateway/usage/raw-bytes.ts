/**
 * Counts the bytes that a TCP socket has received and that the system has accepted for sending.
 *
 * Node's `bytesWritten` also counts bytes that still wait in libuv's write queue, and that are never sent if the socket
 * is destroyed. Node shows the queue's size only on the socket's handle (node:net reads it there too), which disappears
 * with the socket. So the last reading is taken in `_destroy`, where Node closes the handle.
 *
 * With TLS, pass the raw socket under the TLSSocket: its count includes the handshake.
 */
import type { Socket } from 'node:net';

/** The members of libuv's stream that are read. The handle is null once the socket is destroyed. */
interface SocketWithHandle {
  readonly _handle: {
    readonly bytesRead: number;
    readonly bytesWritten: number;
    readonly writeQueueSize: number;
  } | null;
}

/** The byte counts of one TCP socket: up is received, down is sent. */
export class RawBytes {
  readonly #socket: Socket & SocketWithHandle;
  readonly #skipped: number;
  #up = 0;
  #down = 0;
  /** Whether the last reading found the counts of the one before, and an empty write queue. */
  #isSettled = false;

  /**
   * `socket` must be open. `onEnd` is called once, when the socket is destroyed.
   *
   * @param skipped how many of the received bytes do not count
   */
  constructor(socket: Socket, skipped: number, onEnd: () => void) {
    this.#skipped = skipped;
    this.#socket = socket as Socket & SocketWithHandle;
    const destroy = socket._destroy;
    socket._destroy = (error, done) => {
      this.read();
      onEnd();
      destroy.call(socket, error, done);
    };
  }

  /** Reads the socket's counters. After its end, the counts stay as they were then. */
  read(): void {
    const handle = this.#socket._handle;
    if (handle === null) return;
    const { bytesWritten, writeQueueSize } = handle;
    const bytesRead = handle.bytesRead - this.#skipped;
    const sent = bytesWritten - writeQueueSize;
    this.#isSettled = writeQueueSize === 0 && bytesRead === this.#up && sent === this.#down;
    this.#up = bytesRead;
    this.#down = sent;
  }

  /** Bytes received, when they were last read. */
  get up(): number {
    return this.#up;
  }

  /** Bytes that the system had accepted for sending, when they were last read. */
  get down(): number {
    return this.#down;
  }

  /**
   * Whether the last reading found nothing new, and nothing was received since. Then nothing was sent either, except
   * for messages that the gateway starts on its own: all its other packets answer a packet, within a second. This
   * check costs one of the three native calls of a reading.
   */
  get isQuiet(): boolean {
    const handle = this.#socket._handle;
    return handle === null || (this.#isSettled && handle.bytesRead - this.#skipped === this.#up);
  }
}

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
  #up = 0;
  #down = 0;

  /** `socket` must be open. `onEnd` is called once, when the socket is destroyed. */
  constructor(socket: Socket, onEnd: () => void) {
    this.#socket = socket as Socket & SocketWithHandle;
    const destroy = socket._destroy;
    socket._destroy = (error, done) => {
      this.#readCounters();
      onEnd();
      destroy.call(socket, error, done);
    };
  }

  /** Bytes received. */
  get up(): number {
    this.#readCounters();
    return this.#up;
  }

  /** Bytes that the system has accepted for sending. */
  get down(): number {
    this.#readCounters();
    return this.#down;
  }

  #readCounters(): void {
    const handle = this.#socket._handle;
    if (handle === null) return;
    this.#up = handle.bytesRead;
    this.#down = handle.bytesWritten - handle.writeQueueSize;
  }
}

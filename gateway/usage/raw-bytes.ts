/**
 * What a TCP socket has truly moved, from its first byte to its last.
 *
 * Node's own `bytesWritten` counts what was handed to the socket, and so also what it still holds back; a socket that
 * is destroyed then has counted what never left. The difference is in libuv's write queue, which Node shows only on the
 * socket's handle (node:net itself looks there), and which is gone with the handle. So the last look is taken in
 * `_destroy`, the place where Node lets go of it.
 *
 * Over TLS the raw socket under the TLSSocket is to be given: it counts what is on the air, the handshake included.
 */
import type { Socket } from 'node:net';

/** The part of libuv's stream that is looked at; null once the socket is destroyed. */
interface WithHandle {
  readonly _handle: {
    readonly bytesRead: number;
    readonly bytesWritten: number;
    readonly writeQueueSize: number;
  } | null;
}

export class RawBytes {
  readonly #socket: Socket & WithHandle;
  #up = 0;
  #down = 0;

  /** To be made while the socket is open. `onEnd` is called once, when it will move nothing any more. */
  constructor(socket: Socket, onEnd: () => void) {
    this.#socket = socket as Socket & WithHandle;
    const destroy = socket._destroy;
    socket._destroy = (error, done) => {
      this.#look();
      onEnd();
      destroy.call(socket, error, done);
    };
  }

  /** Bytes that came in. */
  get up(): number {
    this.#look();
    return this.#up;
  }

  /** Bytes that the system has taken to send. */
  get down(): number {
    this.#look();
    return this.#down;
  }

  #look(): void {
    const handle = this.#socket._handle;
    if (handle === null) return;
    this.#up = handle.bytesRead;
    this.#down = handle.bytesWritten - handle.writeQueueSize;
  }
}

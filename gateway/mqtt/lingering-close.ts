/**
 * Closes a connection without losing bytes that are on their way.
 *
 * aedes closes a connection by destroying its socket. Bytes that the client had already sent (over TLS at least its
 * close_notify) then arrive at a closed socket: they are not counted for billing, and the system answers them with a
 * reset, which may overtake the gateway's last bytes. So the gateway closes connections as web servers do: it closes
 * its side, reads and drops what still arrives until the client has closed too, and destroys the socket after a while.
 */
import { Socket } from 'node:net';
import { type Clock, Seconds } from '../../proto/clock.js';
import type { Connection } from './listener.js';

/** How long the client may take to close: a round trip of a slow radio. */
const MAX_LINGER_TIME = Seconds(1);
/** How many bytes the client may still send: many times what a lock sends, one uplink of 1 KiB. */
const MAX_LINGER_BYTES = 64 * 1024;

/**
 * Replaces `destroy` of this connection's stream: the first call closes the connection as described above, unless it is
 * broken or the client has closed its side, so that nothing more can arrive. `onClosing` is called in a later
 * microtask; the caller must then stop the library from serving the connection.
 */
export function makeCloseLinger({ stream, raw }: Connection, clock: Clock, onClosing: () => void): void {
  const destroy = stream.destroy;
  let isClosing = false;
  stream.destroy = (error?: Error) => {
    if (raw.destroyed || stream.readableEnded || isSocketError(error)) return destroy.call(stream, error);
    if (isClosing) return stream;
    isClosing = true;
    const destroyNow = (): void => void destroy.call(stream);
    const timer = clock.after(MAX_LINGER_TIME, destroyNow);
    stream.once('close', () => timer.cancel());
    dropIncoming(stream, destroyNow);
    stream.end();
    queueMicrotask(onClosing);
    return stream;
  };
}

/** Reads and drops everything that still arrives. Removes the listeners that read until now. */
function dropIncoming(stream: Socket, onTooMuch: () => void): void {
  let dropped = 0;
  stream.removeAllListeners('readable');
  stream.removeAllListeners('data');
  stream.read = readForNode;
  stream.on('data', (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > MAX_LINGER_BYTES) onTooMuch();
  });
  stream.resume();
}

/** A `read` that returns nothing to the library: the library passes null as size, Node passes a number or nothing. */
function readForNode(this: Socket, size?: number | null): Buffer | null {
  return size === null ? null : (Socket.prototype.read.call(this, size) as Buffer | null);
}

/** Whether the error is the system's: the connection is broken, so there is nothing to wait for. */
function isSocketError(error: Error | undefined): boolean {
  return error !== undefined && 'syscall' in error;
}

/**
 * Closes a connection without cutting off what is on its way.
 *
 * aedes closes a connection by destroying its socket. What the other side had already sent (over TLS at least its
 * close_notify) then arrives at a closed socket: it went over the air without being counted, and the system answers it
 * with a reset, which may even overtake the last bytes that we sent. So we close connections as web servers do: we
 * close our side, read and drop what still arrives until the other side has closed too, and destroy the socket after a
 * while.
 */
import { Socket } from 'node:net';
import { type Clock, Seconds } from '../../proto/clock.js';
import type { Connection } from './listener.js';

/** How long the other side may take to close: a round trip of a slow radio. */
const LINGER_TIME = Seconds(1);
/** How many bytes it may still send meanwhile: a lock has one uplink of 1 KiB in flight. */
const LINGER_BYTES = 64 * 1024;

/**
 * Replaces `destroy` of this connection: the first call lingers, unless the connection is already broken. `onClosing`
 * is called in a later turn, so that the library stops serving the stream.
 */
export function closeLingering({ stream, raw }: Connection, clock: Clock, onClosing: () => void): void {
  const destroy = stream.destroy;
  let isClosing = false;
  stream.destroy = (error?: Error) => {
    if (raw.destroyed || stream.readableEnded || isSocketError(error)) return destroy.call(stream, error);
    if (isClosing) return stream;
    isClosing = true;
    const cut = (): void => void destroy.call(stream);
    const timer = clock.after(LINGER_TIME, cut);
    stream.once('close', () => timer.cancel());
    dropAll(stream, cut);
    stream.end();
    queueMicrotask(onClosing);
    return stream;
  };
}

/** Reads and drops what still arrives, instead of the listeners that read until now. */
function dropAll(stream: Socket, onTooMuch: () => void): void {
  let dropped = 0;
  stream.removeAllListeners('readable');
  stream.removeAllListeners('data');
  stream.read = readForNode;
  stream.on('data', (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > LINGER_BYTES) onTooMuch();
  });
  stream.resume();
}

/** The library, which reads with null, gets nothing any more. */
function readForNode(this: Socket, size?: number | null): Buffer | null {
  return size === null ? null : (Socket.prototype.read.call(this, size) as Buffer | null);
}

/** An error from the system: the other side is gone, so there is nothing to wait for. */
function isSocketError(error: Error | undefined): boolean {
  return error !== undefined && 'syscall' in error;
}

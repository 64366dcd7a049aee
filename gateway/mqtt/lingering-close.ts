/**
 * A connection's end without cutting off what is on its way.
 *
 * aedes ends a connection by destroying its socket. What the other side had sent already (over TLS at least its
 * close_notify) then meets a closed socket: it went over the air and nobody counted it, and the system answers it with
 * a reset, which may even overtake the last bytes that we sent. So a connection that is ours to end is closed as web
 * servers do it: we say that we are done, read and drop what still comes until the other side is done too, and cut it
 * off after a while.
 */
import { Socket } from 'node:net';
import { type Clock, Seconds } from '../../proto/clock.js';
import type { Connection } from './listener.js';

/** How long the other side may take to say that it is done: a round trip of a slow radio. */
const LINGER = Seconds(1);
/** What it may still send meanwhile, in bytes: a lock has one uplink of 1 KiB in flight. */
const LINGER_BYTES = 64 * 1024;

/**
 * Changes what `destroy` means for this connection: the first call lingers, unless the connection is broken already.
 * `onClosing` is called in a later turn, for whoever serves the stream to stop doing so.
 */
export function closeLingering({ stream, raw }: Connection, clock: Clock, onClosing: () => void): void {
  const destroy = stream.destroy;
  let isClosing = false;
  stream.destroy = (error?: Error) => {
    if (raw.destroyed || stream.readableEnded || isSocketError(error)) return destroy.call(stream, error);
    if (isClosing) return stream;
    isClosing = true;
    const cut = (): void => void destroy.call(stream);
    const timer = clock.after(LINGER, cut);
    stream.once('close', () => timer.cancel());
    dropAll(stream, cut);
    stream.end();
    queueMicrotask(onClosing);
    return stream;
  };
}

/** Reads and drops what still comes; whoever read until now, or stood in its way, does so no more. */
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

/** aedes, which reads with null, gets nothing any more. */
function readForNode(this: Socket, size?: number | null): Buffer | null {
  return size === null ? null : (Socket.prototype.read.call(this, size) as Buffer | null);
}

/** The system's own: there is nobody to wait for. */
function isSocketError(error: Error | undefined): boolean {
  return error !== undefined && 'syscall' in error;
}

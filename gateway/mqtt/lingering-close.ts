/**
 * Closes a connection without losing bytes that are on their way.
 *
 * aedes closes a connection by destroying its socket. Bytes that the client had already sent (over TLS at least its
 * close_notify) then arrive at a closed socket: they are not counted for billing, and the system answers them with a
 * reset, which may overtake the gateway's last bytes. So the gateway closes connections as web servers do: it closes
 * its side, reads and drops what still arrives until the client has closed too, and destroys the socket after a while.
 */
import { Socket } from 'node:net';
import { Seconds, systemClock } from '../../proto/clock.js';
import { type ConnectionFilter, connectionFilterOf } from './connection-filter.js';

/** The original `destroy` of every socket, including TLS sockets. */
const socketDestroy = Socket.prototype.destroy as (this: Socket, error?: Error) => Socket;

/** How long the client may take to close: a round trip of a slow radio. */
const MAX_LINGER_TIME = Seconds(1);
/** How many bytes the client may still send: many times what a lock sends, one uplink of 1 KiB. */
const MAX_LINGER_BYTES = 64 * 1024;

/**
 * Replaces `destroy` of this connection's stream: the first call closes the connection as described above, unless it is
 * broken or the client has closed its side, so that nothing more can arrive. Shortly after that call, in a microtask,
 * the watcher's `lingering` is called.
 */
export function makeCloseLinger({ stream }: ConnectionFilter): void {
  stream.destroy = lingerFirst;
}

/** Shared by all streams, so that a connection needs no closure of its own. */
function lingerFirst(this: Socket, error?: Error): Socket {
  const connection = connectionFilterOf(this) as ConnectionFilter;
  if (connection.raw.destroyed || this.readableEnded || isSocketError(error)) return socketDestroy.call(this, error);
  if (connection.isLingering) return this;
  connection.isLingering = true;
  const destroyNow = (): void => void socketDestroy.call(this);
  const timer = systemClock.after(MAX_LINGER_TIME, destroyNow);
  this.once('close', () => timer.cancel());
  dropIncoming(this, destroyNow);
  this.end();
  queueMicrotask(() => connection.watcher.lingering(connection));
  return this;
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

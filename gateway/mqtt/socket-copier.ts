/**
 * Copies listening sockets, so that many connections are accepted in one turn of the event loop. Node accepts one for
 * each socket in each turn, and a turn of a busy gateway takes 5 ms and more: of a thousand locks that have lost their
 * gateway, the last would wait for seconds before the next gateway hears of it.
 *
 * Node can't copy a socket within a process. But a socket that is sent to another process arrives there as a copy, so
 * a child process sends each one back as often as it is asked to. It lives only while a gateway starts.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Server } from 'node:net';
import { Seconds, systemClock } from '../../proto/clock.js';

/** What the child process sends when it has no copy of the socket any more: only then it can't keep the port in use. */
const DONE = 'done';
/** The program of the child process. It ends when the gateway closes the channel, or dies. */
const CHILD = `process.on('message', (count, socket) => {
  let sent = 0;
  const closeAfterLast = () => (sent += 1) === count && socket.close(() => process.send('${DONE}'));
  for (let index = 0; index < count; index += 1) process.send('copy', socket, closeAfterLast);
});`;
/** The start waits no longer for copies. */
const COPY_LIMIT = Seconds(2);

/** A copy of a listening socket, on which a server can listen. */
export type SocketCopy = object & { close(): void };

export class SocketCopier {
  /** Undefined where it can't run: then there are no copies. */
  #child: ChildProcess | undefined;

  /** Starts the child process, which takes some 50 ms, in which the gateway can start. */
  constructor() {
    this.#child = startChild();
    this.#child?.on('error', () => {
      this.#child = undefined;
    });
    // The gateway's process may end before.
    this.#child?.unref();
    this.#child?.channel?.unref();
  }

  /**
   * Copies the socket of a server, which goes on listening; one server at a time. Returns fewer copies, or none, where
   * the child process does not run or does not answer: the server works without them too, and accepts fewer connections
   * at a time.
   */
  async copy(server: Server, count: number): Promise<readonly SocketCopy[]> {
    const child = this.#child;
    if (child?.connected !== true) return [];
    // A member that Node's declarations leave out.
    const { _handle: socket } = server as unknown as { readonly _handle: SocketCopy | null };
    const copies: SocketCopy[] = [];
    const answered = new Promise<void>((resolve) => {
      child.once('error', () => resolve()).once('exit', () => resolve());
      child.on('message', (what, copy: unknown) => {
        if (what === DONE) resolve();
        else if (copy !== undefined) copies.push(copy as SocketCopy);
      });
      child.send(count, socket as never, (error) => error !== null && resolve());
    });
    const limit = systemClock.after(COPY_LIMIT, () => child.kill('SIGKILL'));
    await answered;
    limit.cancel();
    child.removeAllListeners('message');
    return copies;
  }

  /** Ends the child process. */
  close(): void {
    if (this.#child?.connected) this.#child.disconnect();
  }
}

/** Starts the child process; undefined where the system does not allow it. */
function startChild(): ChildProcess | undefined {
  try {
    return spawn(process.execPath, ['-e', CHILD], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  } catch {
    return undefined;
  }
}

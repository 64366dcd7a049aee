/**
 * Time limits of answers: of a single one, and of all on the connections of a pool. A connection may break without a
 * sign, and TCP itself gives up only after a quarter of an hour, so without a limit its query, and all work that waits
 * for it, would stand still.
 *
 * A connection is *busy* while the pool has lent it, and from its opening until it is checked; otherwise it is *idle*,
 * when silence means nothing. A busy one on which no byte came or went for the limit is closed: its query fails as
 * `away` (contract/errors.ts), and the pool replaces it. What made one connection silent, such as a firewall that
 * restarted, probably made the idle ones silent too, so they are then closed as well.
 */
import type { Socket } from 'node:net';
import type pg from 'pg';
import { type Milliseconds, Seconds, systemClock, type Timer } from '../../../../proto/clock.js';

/** After this long without an answer a statement is in doubt: a wait for a standby does not end by itself. */
const ANSWER_TIMEOUT = Seconds(10);

/** Why a connection was closed. */
export class NoAnswer extends Error {
  readonly code = 'LOCKGATE_NO_ANSWER';

  constructor() {
    super('the database did not answer');
  }
}

/** The driver's socket, which its type declarations leave out. */
interface WithSocket {
  readonly connection: { readonly stream: Socket };
}

/** The limit of one pool's connections. */
export class AnswerLimit {
  readonly #limit: Milliseconds;
  readonly #onSilence: () => void;
  readonly #busy = new Set<pg.ClientBase>();
  readonly #idle = new Set<pg.ClientBase>();

  /**
   * @param limit ms without a byte, after which a busy connection is closed
   * @param onSilence called when a connection was closed for its silence
   */
  constructor(limit: Milliseconds, onSilence: () => void) {
    this.#limit = limit;
    this.#onSilence = onSilence;
  }

  /** Watches the pool's lending. */
  watch(pool: pg.Pool): void {
    pool.on('acquire', (client) => this.#lent(client));
    pool.on('release', (_error, client) => this.#returned(client));
    pool.on('remove', (client) => {
      this.#busy.delete(client);
      this.#idle.delete(client);
    });
  }

  /** Closes the idle connections; the pool opens new ones when it needs them. */
  closeIdle(): void {
    for (const client of [...this.#idle]) {
      // What the driver does when an idle connection breaks: the pool forgets it at once.
      client.emit('error', new NoAnswer());
      socketOf(client).destroy();
    }
  }

  #lent(client: pg.ClientBase): void {
    this.#idle.delete(client);
    this.#busy.add(client);
  }

  #returned(client: pg.ClientBase): void {
    this.#busy.delete(client);
    this.#idle.add(client);
  }

  /** Must run for each new connection: checks it under the limit. @throws what the check throws, or NoAnswer */
  async check(client: pg.ClientBase, check: () => Promise<void>): Promise<void> {
    const socket = socketOf(client);
    // Each byte starts the time again, in either direction.
    socket.setTimeout(this.#limit, () => {
      if (!this.#busy.has(client)) return;
      socket.destroy(new NoAnswer());
      this.#onSilence();
    });
    this.#busy.add(client);
    try {
      await check();
      this.#idle.add(client);
    } finally {
      this.#busy.delete(client);
    }
  }
}

function socketOf(client: pg.ClientBase): Socket {
  return (client as unknown as WithSocket).connection.stream;
}

/** Waits for an answer. @throws NoAnswer if it does not come within the limit */
export async function answered<T>(answer: Promise<T>, limit: Milliseconds = ANSWER_TIMEOUT): Promise<T> {
  let timer: Timer | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = systemClock.after(limit, () => reject(new NoAnswer()));
  });
  try {
    return await Promise.race([answer, timeout]);
  } finally {
    timer?.cancel();
  }
}

/**
 * Hashes and checks users' passwords: argon2id with OWASP's parameters (quality.md §2), on libuv's threads, a few at a
 * time. A hash takes some 28 ms of a core, so requests queue. Logins come first, round-robin over their sources, so
 * that a source that guesses without end delays only itself. Then come the passwords of lists of new users; each list
 * queues only a few at once, so that a short list does not wait for a long one.
 */
import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { hash, verify } from '@node-rs/argon2';
import { LockgateError } from '../../proto/errors.js';

/**
 * OWASP's Password Storage Cheat Sheet: Argon2id (the package's default) with 19 MiB, 2 passes, a parallelism of 1, and
 * a hash of 32 bytes. The package makes the salt.
 */
const ARGON2_OPTIONS = { memoryCost: 19_456, timeCost: 2, parallelism: 1, outputLen: 32 } as const;
/** The package's salt, random bytes. */
const SALT_BYTES = 16;

/** Node has four threads for blocking work, and DNS look-ups and file reads need them too. */
const MAX_CONCURRENT_HASHES = Math.min(3, availableParallelism());
/** Maximum number of waiting logins of all sources: some two seconds of work. */
const MAX_WAITING_LOGINS = 128;
/** Maximum number of waiting logins of one source, which is one merchant's logins from one address. */
const MAX_WAITING_LOGINS_PER_SOURCE = 32;
/** Maximum number of passwords of all lists under way together: some half a minute of work. */
const MAX_LISTED_PASSWORDS = 2_000;
const MAX_QUEUED_PER_LIST = MAX_CONCURRENT_HASHES;

export class Passwords {
  #running = 0;
  /** Waiting logins by source; the source whose turn is next comes first. */
  readonly #loginQueues = new Map<string, (() => void)[]>();
  #waitingLogins = 0;
  readonly #listQueue: (() => void)[] = [];
  #listedPasswords = 0;
  /** Compared with the password of an unknown user. It matches no password. */
  readonly #decoyHash = decoyHash();

  /**
   * Whether `password` matches the hash. Without a hash the answer is false, after the same time.
   *
   * @param source where the login comes from: sources take turns
   * @throws LockgateError `busy` if too many logins wait
   */
  async check(password: string, passwordHash: string | null, source: string): Promise<boolean> {
    const queuedBefore = this.#loginQueues.get(source)?.length ?? 0;
    if (this.#waitingLogins >= MAX_WAITING_LOGINS || queuedBefore >= MAX_WAITING_LOGINS_PER_SOURCE) throw busy();
    const comparedHash = passwordHash ?? this.#decoyHash;
    const enqueue = (start: () => void): void => {
      this.#loginQueues.set(source, [...(this.#loginQueues.get(source) ?? []), start]);
      this.#waitingLogins += 1;
    };
    const fits = await this.#runInTurn(enqueue, () => verify(comparedHash, password));
    return fits && passwordHash !== null;
  }

  /**
   * Hashes the passwords of a list; null stays null.
   *
   * @param signal aborts the work, with the signal's reason as the error
   * @throws LockgateError `busy` if too many passwords wait
   */
  async hashAll(passwords: readonly (string | null)[], signal: AbortSignal): Promise<(string | null)[]> {
    const count = passwords.filter((password) => password !== null).length;
    if (this.#listedPasswords + count > MAX_LISTED_PASSWORDS) throw busy();
    this.#listedPasswords += count;
    const hashes: (string | null)[] = passwords.map(() => null);
    // The workers share one iterator, so each takes the next password.
    const remaining = passwords.entries();
    const work = async (): Promise<void> => {
      for (const [index, password] of remaining) {
        signal.throwIfAborted();
        if (password !== null)
          hashes[index] = await this.#runInTurn(
            (start) => this.#listQueue.push(start),
            () => hash(password, ARGON2_OPTIONS),
          );
      }
    };
    try {
      await Promise.all(Array.from({ length: MAX_QUEUED_PER_LIST }, work));
    } finally {
      this.#listedPasswords -= count;
    }
    return hashes;
  }

  /** Runs `work` when fewer than the maximum of hashes run; until then, `enqueue` puts its start into a queue. */
  async #runInTurn<T>(enqueue: (start: () => void) => void, work: () => Promise<T>): Promise<T> {
    if (this.#running >= MAX_CONCURRENT_HASHES) await new Promise<void>(enqueue);
    else this.#running += 1;
    try {
      return await work();
    } finally {
      // The next request takes over this place, so that no new request overtakes the queue.
      const next = this.#nextLogin() ?? this.#listQueue.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }

  /** Dequeues a login of the source whose turn it is, and moves that source to the end. */
  #nextLogin(): (() => void) | undefined {
    for (const [source, [first, ...others]] of this.#loginQueues) {
      this.#loginQueues.delete(source);
      if (others.length > 0) this.#loginQueues.set(source, others);
      this.#waitingLogins -= 1;
      return first;
    }
    return undefined;
  }
}

/**
 * A hash with random bytes for salt and result, which no password matches. Comparing with it takes as long as with the
 * hash of a password, but making it takes no time at a gateway's start.
 */
function decoyHash(): string {
  const { memoryCost, timeCost, parallelism, outputLen } = ARGON2_OPTIONS;
  const random = (bytes: number): string => randomBytes(bytes).toString('base64').replace(/=+$/, '');
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${random(SALT_BYTES)}$${random(outputLen)}`;
}

function busy(): LockgateError {
  return new LockgateError('busy', 'too many passwords are being hashed or compared; try again in a moment');
}

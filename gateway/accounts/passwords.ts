/**
 * Passwords of people: argon2id at OWASP's parameters (quality.md §2), off the main thread, a few at a time. A hash
 * takes some 28 ms of a core, so who waits for one takes a turn: logins first, one of each address in turn, so that who
 * guesses without end holds up themselves; then the passwords of lists, of which each has but a few in line, so that a
 * short list does not wait for a long one.
 */
import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { hash, verify } from '@node-rs/argon2';
import { LockgateError } from '../../proto/errors.js';

/**
 * OWASP's Password Storage Cheat Sheet: Argon2id (the package's default) with 19 MiB, 2 passes, 1 lane, and a hash of
 * 32 bytes. The salt, 16 random bytes, is the package's to make.
 */
const OWASP = { memoryCost: 19_456, timeCost: 2, parallelism: 1, outputLen: 32 } as const;

/** Hashes at once. Node has four threads for all that may block; names are looked up and files are read in them too. */
const AT_ONCE = Math.min(3, availableParallelism());
/** Logins that may wait for their turn: some two seconds of work. */
const LOGINS_WAITING = 128;
/** Of those, of one merchant's from one address. */
const LOGINS_OF_ONE = 32;
/** Passwords that all lists under way may have in all: some half a minute of work. */
const LISTED_PASSWORDS = 2_000;
/** Of one list, in line at once. */
const IN_LINE = AT_ONCE;

export class Passwords {
  #running = 0;
  /** Those in line by where they come from; whose turn is next stands first. */
  readonly #logins = new Map<string, (() => void)[]>();
  #loginsWaiting = 0;
  readonly #lists: (() => void)[] = [];
  #listed = 0;
  /** What a password is compared with where there is no hash of one: it fits none. */
  readonly #decoy: Promise<string>;

  constructor() {
    this.#decoy = hash(randomBytes(32), OWASP);
    // Whoever compares with it hears of a failure.
    this.#decoy.catch(() => undefined);
  }

  /**
   * Whether it is the password of this hash. Without a hash it takes as long, and is not.
   *
   * @param from where the login comes from: those of one place take their turns with those of others
   * @throws LockgateError `busy` where too many wait
   */
  async check(password: string, passwordHash: string | null, from: string): Promise<boolean> {
    const before = this.#logins.get(from)?.length ?? 0;
    if (this.#loginsWaiting >= LOGINS_WAITING || before >= LOGINS_OF_ONE) throw busy();
    const known = passwordHash ?? (await this.#decoy);
    const wait = (go: () => void): void => {
      this.#logins.set(from, [...(this.#logins.get(from) ?? []), go]);
      this.#loginsWaiting += 1;
    };
    const fits = await this.#inTurn(wait, () => verify(known, password));
    return fits && passwordHash !== null;
  }

  /**
   * Hashes the passwords of a list; null stays null.
   *
   * @param signal ends it early: nobody waits for the answer any more
   * @throws LockgateError `busy` where too many wait; the signal's reason
   */
  async hashAll(passwords: readonly (string | null)[], signal: AbortSignal): Promise<(string | null)[]> {
    const count = passwords.filter((password) => password !== null).length;
    if (this.#listed + count > LISTED_PASSWORDS) throw busy();
    this.#listed += count;
    const hashes: (string | null)[] = passwords.map(() => null);
    const waiting = passwords.entries();
    const work = async (): Promise<void> => {
      for (const [index, password] of waiting) {
        signal.throwIfAborted();
        if (password !== null)
          hashes[index] = await this.#inTurn(
            (go) => this.#lists.push(go),
            () => hash(password, OWASP),
          );
      }
    };
    try {
      await Promise.all(Array.from({ length: IN_LINE }, work));
    } finally {
      this.#listed -= count;
    }
    return hashes;
  }

  async #inTurn<T>(wait: (go: () => void) => void, work: () => Promise<T>): Promise<T> {
    if (this.#running >= AT_ONCE) await new Promise<void>(wait);
    else this.#running += 1;
    try {
      return await work();
    } finally {
      // The next one takes over this place, so that nobody slips in between.
      const next = this.#nextLogin() ?? this.#lists.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }

  /** The first of the address whose turn it is, which goes behind the others. */
  #nextLogin(): (() => void) | undefined {
    for (const [from, [first, ...others]] of this.#logins) {
      this.#logins.delete(from);
      if (others.length > 0) this.#logins.set(from, others);
      this.#loginsWaiting -= 1;
      return first;
    }
    return undefined;
  }
}

function busy(): LockgateError {
  return new LockgateError('busy', 'too many passwords are being hashed or compared; try again in a moment');
}

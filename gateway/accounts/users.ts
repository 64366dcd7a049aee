/** A merchant's users and their sessions: created in one go, logged in and out (specification, operations 3 to 6). */
import { randomBytes } from 'node:crypto';
import { type Clock, Hours, type Milliseconds } from '../../proto/clock.js';
import type { Keys } from '../data-folder/keys.js';
import type { HttpBudgets } from '../fairness/http-budgets.js';
import { FAULTS_REPORTED, type Fault, ManyFaults } from '../faults.js';
import { addressGroup } from '../network/address-group.js';
import type { NewUser } from '../store/contract/merchants/people-store.js';
import { usernameKey } from '../store/contract/merchants/username-key.js';
import type { Store } from '../store/contract/store.js';
import { LoginGuard } from './login-guard.js';
import { Passwords } from './passwords.js';

/** How long a session lasts, unless somebody logs out. */
export const SESSION_LIFE: Milliseconds = Hours(12);

const PREFIX = 'lgu_';
const TOKEN_BYTES = 32;

/** A user with the password that was typed; null for one who can't log in. */
export interface TypedUser extends Omit<NewUser, 'passwordHash'> {
  readonly password: string | null;
}

export interface Login {
  readonly merchantId: number;
  readonly username: string;
  readonly password: string;
  /** Where it comes from, as the guard counts it. */
  readonly address: string;
}

/** What came of a login. */
export type LoginOutcome =
  | { readonly became: 'in'; readonly token: string; readonly expiresAtMs: number }
  | { readonly became: 'refused' }
  | { readonly became: 'later'; readonly retryAfterMs: number };

export interface UsersParts {
  readonly store: Store;
  readonly keys: Keys;
  /** The wall's. */
  readonly clock: Clock;
  readonly budgets: HttpBudgets;
}

export class Users {
  readonly #parts: UsersParts;
  readonly #passwords = new Passwords();
  readonly #guard: LoginGuard;

  constructor(parts: UsersParts) {
    this.#parts = parts;
    this.#guard = new LoginGuard(parts.clock);
  }

  /**
   * Adds all of them or none. Passwords are hashed before anything is written, and what is taken is looked for before
   * that, since hashing takes long; the store looks again.
   *
   * @param signal ends it early, with nothing added
   * @param by whose budget of passwords it counts for: an operator has none
   * @throws ManyFaults `user-exists` for a name or an id that stands twice in the list or is taken
   * @throws OverBudget where the merchant would keep more than it may, or has had too many passwords hashed
   * @throws LockgateError `busy`
   */
  async add(
    merchantId: number,
    users: readonly TypedUser[],
    signal: AbortSignal,
    by: 'merchant' | 'operator' = 'merchant',
  ): Promise<void> {
    refuseTwice(users);
    const { store, clock, budgets } = this.#parts;
    await store.people.findTaken(merchantId, users);
    await store.people.findRoom(merchantId, users.length);
    const passwords = users.map(({ password }) => password);
    if (by === 'merchant') budgets.takeHashes(merchantId, passwords.filter((password) => password !== null).length);
    const hashes = await this.#passwords.hashAll(passwords, signal);
    const rows = users.map(({ password: _typed, ...user }, index) => {
      return { ...user, passwordHash: hashes[index] ?? null };
    });
    await store.people.addUsers(merchantId, rows, clock.now());
  }

  /**
   * @throws OverBudget `password-hashes`
   * @throws LockgateError `busy`
   */
  async logIn({ merchantId, username, password, address }: Login): Promise<LoginOutcome> {
    // However a name is spelled, it is one account to whoever guesses.
    const attempt = await this.#guard.begin(merchantId, usernameKey(username), address);
    let became: 'right' | 'wrong' | 'undecided' = 'undecided';
    try {
      if (attempt.retryAfterMs !== undefined) return { became: 'later', retryAfterMs: attempt.retryAfterMs };
      this.#parts.budgets.takeHashes(merchantId, 1);
      const user = await this.#parts.store.people.findLogin(merchantId, username);
      // Whoever there is or isn't, one password is compared: the time says nothing.
      const fits = await this.#passwords.check(
        password,
        user?.passwordHash ?? null,
        `${merchantId} ${addressGroup(address)}`,
      );
      became = fits ? 'right' : 'wrong';
      return user !== null && fits ? await this.#begin(merchantId, user.id) : { became: 'refused' };
    } finally {
      attempt.end(became);
    }
  }

  /** The user whose session this is; null where it has ended, or is another merchant's. */
  async findSession(merchantId: number, token: string): Promise<bigint | null> {
    const { store, keys, clock } = this.#parts;
    return await store.people.findSession(merchantId, keys.hashSecret(token), clock.now());
  }

  /** Ends a session, at once and for good; where there is none, nothing happens. */
  async logOut(merchantId: number, token: string): Promise<void> {
    await this.#parts.store.people.endSession(merchantId, this.#parts.keys.hashSecret(token));
  }

  async #begin(merchantId: number, userId: bigint): Promise<LoginOutcome> {
    const { store, keys, clock } = this.#parts;
    const token = PREFIX + randomBytes(TOKEN_BYTES).toString('base64url');
    const nowMs = clock.now();
    const expiresAtMs = nowMs + SESSION_LIFE;
    await store.people.addSession({ merchantId, userId, tokenHash: keys.hashSecret(token), nowMs, expiresAtMs });
    return { became: 'in', token, expiresAtMs };
  }
}

/** @throws ManyFaults `user-exists` */
function refuseTwice(users: readonly TypedUser[]): void {
  const faults: Fault[] = [];
  for (const member of ['id', 'username'] as const) {
    const firstAt = new Map<bigint | string, number>();
    for (const [index, user] of users.entries()) {
      const given = user[member];
      if (given === null) continue;
      const value = typeof given === 'string' ? usernameKey(given) : given;
      const first = firstAt.get(value);
      if (first === undefined) firstAt.set(value, index);
      else faults.push({ pointer: `/${index}/${member}`, detail: `it stands at ${first} already` });
    }
  }
  if (faults.length === 0) return;
  const text = 'a user name or an id stands twice in the list; no user was added';
  throw new ManyFaults('user-exists', text, faults.slice(0, FAULTS_REPORTED));
}

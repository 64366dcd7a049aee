/** A merchant's users: adds lists of them, logs them in and out, and finds sessions (specification, operations 3–6). */
import { randomBytes } from 'node:crypto';
import { type Clock, Hours, type Milliseconds } from '../../proto/clock.js';
import type { Keys } from '../data-folder/keys.js';
import type { HttpBudgets } from '../fairness/http-budgets.js';
import { type Fault, MAX_REPORTED_FAULTS, RequestFaults } from '../faults.js';
import { addressGroup } from '../network/address-group.js';
import type { NewUser, UserChange } from '../store/contract/merchants/people-store.js';
import { usernameFault, usernameKey } from '../store/contract/merchants/username-key.js';
import type { Store } from '../store/contract/store.js';
import { LoginGuard } from './login-guard.js';
import { Passwords } from './passwords.js';

/** How long a session lasts, unless the user logs out. */
export const SESSION_LIFE: Milliseconds = Hours(12);

const PREFIX = 'lgu_';
const TOKEN_BYTES = 32;

/** A user with a password in plain text, not hashed. */
export interface UserWithPassword extends Omit<NewUser, 'passwordHash'> {
  /** Null for a user who can't log in. */
  readonly password: string | null;
}

/** A change of a user, with a password in plain text. */
export interface UserChangeWithPassword extends Omit<UserChange, 'passwordHash'> {
  readonly password?: string | undefined;
}

export interface Login {
  readonly merchantId: number;
  readonly username: string;
  readonly password: string;
  /** The client's IP address. */
  readonly address: string;
}

export type LoginOutcome =
  | { readonly result: 'logged-in'; readonly token: string; readonly expiresAtMs: number }
  | { readonly result: 'refused' }
  | { readonly result: 'retry-later'; readonly retryAfterMs: number };

/** The result of checking a password. */
export type PasswordOutcome =
  | { readonly result: 'right'; readonly userId: bigint }
  | Exclude<LoginOutcome, { readonly result: 'logged-in' }>;

export interface UsersParts {
  readonly store: Store;
  readonly keys: Keys;
  /** Wall-clock time. */
  readonly clock: Clock;
  readonly budgets: HttpBudgets;
}

export class Users {
  readonly #parts: UsersParts;
  readonly #passwords = new Passwords();
  readonly #guard: LoginGuard;

  constructor(parts: UsersParts) {
    this.#parts = parts;
    this.#guard = new LoginGuard(parts.clock, 'password', parts.store.ownership.signals);
  }

  /**
   * Adds all of the users or none. Passwords are hashed before anything is written. Hashing takes long, so taken names
   * and ids are refused before it; the store checks them again when it writes.
   *
   * @param signal aborts the work, with nothing added
   * @param by who adds the users: a merchant's budget limits how many passwords are hashed; an operator has no limit
   * @throws RequestFaults `input-body` for a name with control characters; `user-exists` for a name or an id that is
   *   twice in the list or is taken
   * @throws OverBudget if the merchant would have too many users, or its budget of password hashes is exhausted
   * @throws LockgateError `busy`
   */
  async add(
    merchantId: number,
    users: readonly UserWithPassword[],
    signal: AbortSignal,
    by: 'merchant' | 'operator' = 'merchant',
  ): Promise<void> {
    refuseBadNames(users);
    refuseDuplicates(users);
    const { store, clock, budgets } = this.#parts;
    await store.people.checkNotTaken(merchantId, users);
    await store.people.checkUserQuota(merchantId, users.length);
    const passwords = users.map(({ password }) => password);
    if (by === 'merchant') budgets.takeHashes(merchantId, passwords.filter((password) => password !== null).length);
    const hashes = await this.#passwords.hashAll(passwords, signal);
    const rows = users.map(({ password: _password, ...user }, index) => {
      return { ...user, passwordHash: hashes[index] ?? null };
    });
    await store.people.addUsers(merchantId, rows, clock.now());
  }

  /**
   * Changes a user, if it exists. A new password ends its sessions.
   *
   * @param by as in {@link add}
   * @throws LockgateError `last-owner`, `busy`; OverBudget
   */
  async change(
    merchantId: number,
    id: bigint,
    { password, ...change }: UserChangeWithPassword,
    signal: AbortSignal,
    by: 'merchant' | 'operator' = 'merchant',
  ): Promise<void> {
    const passwordHash = password === undefined ? undefined : await this.hashPassword(merchantId, password, signal, by);
    await this.#parts.store.people.changeUser(merchantId, id, { ...change, passwordHash });
  }

  /** Hashes a new password. @param by as in {@link add} @throws LockgateError `busy`; OverBudget `password-hashes` */
  async hashPassword(
    merchantId: number,
    password: string,
    signal: AbortSignal,
    by: 'merchant' | 'operator' = 'merchant',
  ): Promise<string> {
    if (by === 'merchant') this.#parts.budgets.takeHashes(merchantId, 1);
    const [hash] = await this.#passwords.hashAll([password], signal);
    if (typeof hash !== 'string') throw new Error('a password was not hashed');
    return hash;
  }

  /**
   * Checks a password and opens a session.
   *
   * @throws OverBudget `password-hashes`
   * @throws LockgateError `busy`
   */
  async logIn(login: Login): Promise<LoginOutcome> {
    const { merchantId } = login;
    const outcome = await this.#attempt(login, () => this.#parts.budgets.takeHashes(merchantId, 1));
    return outcome.result === 'right' ? await this.#openSession(merchantId, outcome.userId) : outcome;
  }

  /**
   * Checks a password of a caller who is not authenticated otherwise, and so must not use up the merchant's budget.
   *
   * @throws LockgateError `busy`
   */
  async checkPassword(login: Login): Promise<PasswordOutcome> {
    return await this.#attempt(login, () => undefined);
  }

  /** @param charge called before a password is compared; may refuse it by throwing */
  async #attempt({ merchantId, username, password, address }: Login, charge: () => void): Promise<PasswordOutcome> {
    // All spellings of a name are one account to the guard.
    const attempt = await this.#guard.begin(merchantId, usernameKey(username), address);
    let result: 'right' | 'wrong' | 'undecided' = 'undecided';
    try {
      if (attempt.retryAfterMs !== undefined) return { result: 'retry-later', retryAfterMs: attempt.retryAfterMs };
      charge();
      const user = await this.#parts.store.people.findLogin(merchantId, username);
      // Logins of one merchant from one group of addresses have a queue in common, with a limit.
      const source = `${merchantId} ${addressGroup(address)}`;
      // A password is compared even for an unknown user, so that the time reveals nothing.
      const fits = await this.#passwords.check(password, user?.passwordHash ?? null, source);
      result = fits ? 'right' : 'wrong';
      return user !== null && fits ? { result: 'right', userId: user.id } : { result: 'refused' };
    } finally {
      attempt.end(result);
    }
  }

  /** The id of the session's user; null if the session has ended, or is another merchant's. */
  async findSession(merchantId: number, token: string): Promise<bigint | null> {
    const { store, keys, clock } = this.#parts;
    return await store.people.findSession(merchantId, keys.hashSecret(token), clock.now());
  }

  /** Ends a session at once. An unknown token is ignored. */
  async logOut(merchantId: number, token: string): Promise<void> {
    await this.#parts.store.people.endSession(merchantId, this.#parts.keys.hashSecret(token));
  }

  async #openSession(merchantId: number, userId: bigint): Promise<LoginOutcome> {
    const { store, keys, clock } = this.#parts;
    const token = PREFIX + randomBytes(TOKEN_BYTES).toString('base64url');
    const nowMs = clock.now();
    const expiresAtMs = nowMs + SESSION_LIFE;
    await store.people.addSession({ merchantId, userId, tokenHash: keys.hashSecret(token), nowMs, expiresAtMs });
    return { result: 'logged-in', token, expiresAtMs };
  }
}

/** @throws RequestFaults `input-body` */
function refuseBadNames(users: readonly UserWithPassword[]): void {
  const faults = users.flatMap(({ username }, index): Fault[] => {
    const detail = username === null ? undefined : usernameFault(username);
    return detail === undefined ? [] : [{ pointer: `/${index}/username`, detail }];
  });
  const [first] = faults;
  if (first === undefined) return;
  const text = `the request does not fit: ${first.pointer}: ${first.detail}`;
  throw new RequestFaults('input-body', text, faults.slice(0, MAX_REPORTED_FAULTS));
}

/** Checks that no id and no user name is twice in the list. @throws RequestFaults `user-exists` */
function refuseDuplicates(users: readonly UserWithPassword[]): void {
  const faults: Fault[] = [];
  for (const member of ['id', 'username'] as const) {
    const firstIndexes = new Map<bigint | string, number>();
    for (const [index, user] of users.entries()) {
      const given = user[member];
      if (given === null) continue;
      const value = typeof given === 'string' ? usernameKey(given) : given;
      const firstIndex = firstIndexes.get(value);
      if (firstIndex === undefined) firstIndexes.set(value, index);
      else faults.push({ pointer: `/${index}/${member}`, detail: `it is at index ${firstIndex} already` });
    }
  }
  if (faults.length === 0) return;
  const text = 'a user name or an id is twice in the list; no user was added';
  throw new RequestFaults('user-exists', text, faults.slice(0, MAX_REPORTED_FAULTS));
}

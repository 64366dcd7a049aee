/**
 * One-time invitations to become a user with a role on a merchant's dashboard (interfaces.md §2): creates them, and
 * lets the invited person choose a name and a password. The token is returned once and stored hashed. An invitation
 * that is unknown, used, withdrawn or expired gets the same answer, and each address may try only a few of them.
 */
import { randomBytes } from 'node:crypto';
import { type Clock, Days, type Milliseconds } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { Keys } from '../data-folder/keys.js';
import { OverBudget } from '../fairness/over-budget.js';
import { type Fault, faultAt, RequestFaults } from '../faults.js';
import { addressGroup } from '../network/address-group.js';
import type { DashboardRole } from '../store/contract/merchants/dashboard-roles.js';
import type { Invitation } from '../store/contract/merchants/invitation-store.js';
import { usernameFault, usernameKey } from '../store/contract/merchants/username-key.js';
import type { Store } from '../store/contract/store.js';
import { LoginGuard } from './login-guard.js';
import type { Users } from './users.js';

/** How long an invitation is open: by default, and at most. */
export const INVITATION_LIFE: Milliseconds = Days(7);
export const MAX_INVITATION_LIFE: Milliseconds = Days(30);

const PREFIX = 'lgi_';
const TOKEN_BYTES = 32;
/** 32 bytes have 43 characters in base64url. */
const TOKEN_TEXT = /^lgi_[A-Za-z0-9_-]{43}$/;
/** In place of a merchant's id, since the guard counts wrong tokens by address and not by merchant. */
const NO_MERCHANT = 0;

/** What an invitation offers. */
export interface InvitationTerms {
  /** The new user's name; left out, the invited person chooses one. */
  readonly username?: string | undefined;
  readonly role: DashboardRole;
  /** Ms since the epoch; in {@link INVITATION_LIFE} if left out. */
  readonly expiresAtMs?: number | undefined;
}

/** What the invited person sends. */
export interface Acceptance {
  readonly token: string;
  /** Needed unless the invitation has a name. */
  readonly username?: string | undefined;
  readonly password: string;
  /** The person's IP address. */
  readonly address: string;
}

/** A user that accepted an invitation. */
export interface AcceptedUser {
  readonly invitation: Invitation;
  readonly username: string;
}

export interface InvitationsParts {
  readonly store: Store;
  readonly keys: Keys;
  /** Wall-clock time. */
  readonly clock: Clock;
  readonly users: Users;
}

export class Invitations {
  readonly #parts: InvitationsParts;
  /** Counts wrong tokens, apart from wrong passwords. */
  readonly #guard: LoginGuard;

  constructor(parts: InvitationsParts) {
    this.#parts = parts;
    this.#guard = new LoginGuard(parts.clock, 'invitation', parts.store.ownership.signals);
  }

  /**
   * Creates an invitation. `token` is returned here and never again. An open invitation for the same name ends.
   *
   * @throws LockgateError `input-name`, `input-expiry`, `too-many-invitations`; RequestFaults `user-exists`
   */
  async create(
    merchantId: number,
    { username, role, expiresAtMs }: InvitationTerms,
  ): Promise<{ readonly invitation: Invitation; readonly token: string }> {
    const { store, keys, clock } = this.#parts;
    const nowMs = clock.now();
    const endMs = expiresAtMs ?? nowMs + INVITATION_LIFE;
    if (endMs <= nowMs || endMs > nowMs + MAX_INVITATION_LIFE)
      throw faultAt('input-expiry', '/expires_at', 'an invitation must expire in the future, and within 30 days');
    if (username !== undefined) await this.#checkName(merchantId, username);
    const token = PREFIX + randomBytes(TOKEN_BYTES).toString('base64url');
    const tokenHash = keys.hashSecret(token);
    const row = { merchantId, username: username ?? null, dashboardRole: role, tokenHash, nowMs, expiresAtMs: endMs };
    await store.invitations.add(row);
    const invitation = await store.invitations.find(tokenHash, nowMs);
    if (invitation === null) throw noSuchInvitation();
    return { invitation, token };
  }

  /** A merchant's open invitations after an id, in the order of their ids. */
  async list(merchantId: number, limit: number, afterId = 0): Promise<Invitation[]> {
    return await this.#parts.store.invitations.list({ merchantId, afterId, limit, nowMs: this.#parts.clock.now() });
  }

  /** Withdraws an open invitation: its link stops working. Returns it; null if the merchant has no such invitation. */
  async withdraw(merchantId: number, id: number): Promise<Invitation | null> {
    // The list is ordered by id: the first one after `id - 1` is this invitation, if the merchant has it.
    const [invitation] = await this.list(merchantId, 1, id - 1);
    if (invitation?.id !== id) return null;
    return (await this.#parts.store.invitations.remove(merchantId, id)) ? invitation : null;
  }

  /** The open invitation with this token. @throws LockgateError `no-such-invitation`; OverBudget `login-guesses` */
  async find(token: string, address: string): Promise<Invitation> {
    return await this.#guarded(token, address, async (invitation) => invitation);
  }

  /**
   * Adds the invited user, with a name and a password, and ends the invitation.
   *
   * @throws LockgateError `no-such-invitation`, `busy`; RequestFaults `input-body`, `user-exists`; OverBudget
   */
  async accept({ token, username, password, address }: Acceptance, signal: AbortSignal): Promise<AcceptedUser> {
    return await this.#guarded(token, address, async (invitation, tokenHash) => {
      const name = chosenName(invitation, username);
      const { store, clock, users } = this.#parts;
      await this.#checkName(invitation.merchantId, name);
      const passwordHash = await users.hashPassword(invitation.merchantId, password, signal);
      const absent = { id: null, firstName: null, lastName: null, email: null, phone: null, userStatus: null };
      const user = { ...absent, username: name, passwordHash };
      await withFaultsOfOneUser(() => store.invitations.accept({ tokenHash, user, nowMs: clock.now() }));
      return { invitation, username: name };
    });
  }

  /** Calls `work` with the open invitation of this token. Attempts of one address run one after another. */
  async #guarded<T>(
    token: string,
    address: string,
    work: (invitation: Invitation, tokenHash: Buffer) => Promise<T>,
  ): Promise<T> {
    const { store, keys, clock } = this.#parts;
    const attempt = await this.#guard.begin(NO_MERCHANT, `invitations of ${addressGroup(address)}`, address);
    let result: 'right' | 'wrong' | 'undecided' = 'undecided';
    try {
      if (attempt.retryAfterMs !== undefined) throw tooManyGuesses(attempt.retryAfterMs);
      const tokenHash = keys.hashSecret(token);
      const invitation = TOKEN_TEXT.test(token) ? await store.invitations.find(tokenHash, clock.now()) : null;
      result = invitation === null ? 'wrong' : 'right';
      if (invitation === null) throw noSuchInvitation();
      return await work(invitation, tokenHash);
    } finally {
      attempt.end(result);
    }
  }

  /** @throws LockgateError `input-name` without a visible character; RequestFaults `input-body`, `user-exists` */
  async #checkName(merchantId: number, username: string): Promise<void> {
    if (usernameKey(username) === '') throw new LockgateError('input-name', 'a user’s name has a visible character');
    checkCharacters(username);
    await withFaultsOfOneUser(() => this.#parts.store.people.checkNotTaken(merchantId, [{ id: null, username }]));
  }
}

/** Calls `work`, and lets its faults point into the body of one user instead of a list. @throws what `work` throws */
export async function withFaultsOfOneUser<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof RequestFaults)) throw error;
    const faults = error.faults.map((fault) => ({ ...fault, pointer: fault.pointer.replace(/^\/0\//, '/') }));
    if (error.code === 'user-exists') throw new RequestFaults(error.code, 'the user name is taken already', faults);
    const [first] = faults;
    const text = `the request does not fit: ${first?.pointer}: ${first?.detail}`;
    throw new RequestFaults(error.code, text, faults);
  }
}

/** The new user's name. @throws RequestFaults `input-body` if it is missing, or is not that of the invitation */
function chosenName(invitation: Invitation, username: string | undefined): string {
  const { username: invited } = invitation;
  if (invited === null) return checkCharacters(username ?? refuseName('a name is required: the invitation has none'));
  const isInvited = username === undefined || usernameKey(username) === usernameKey(invited);
  return isInvited ? invited : refuseName(`the invitation is for ${JSON.stringify(invited)}`);
}

/** Returns the name. @throws RequestFaults `input-body` if it has control characters */
function checkCharacters(username: string): string {
  const detail = usernameFault(username);
  return detail === undefined ? username : refuseName(detail);
}

function refuseName(detail: string): never {
  const faults: readonly Fault[] = [{ pointer: '/username', detail }];
  throw new RequestFaults('input-body', `the request does not fit: /username: ${detail}`, faults);
}

/** The same for every token that is not that of an open invitation. */
function noSuchInvitation(): LockgateError {
  return new LockgateError('no-such-invitation', 'the invitation is unknown, used, withdrawn or expired');
}

function tooManyGuesses(retryAfterMs: number): OverBudget {
  const message = 'too many invitations from this address were unknown, used or expired; wait before the next attempt';
  return OverBudget.rate('login-guesses', message, retryAfterMs);
}

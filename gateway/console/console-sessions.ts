/**
 * Sessions of the console, for the routes of login and sessions in http/: users of merchants log in with their
 * passwords, operators with a one-time link (README.md, A session). The store has only hashes of tokens. A token is 32
 * random bytes, which can't be guessed, so a fast hash without a key is enough.
 */
import { createHash, randomBytes } from 'node:crypto';
import { type Clock, Hours, type Milliseconds, Minutes } from '../../proto/clock.js';
import type { Login, Users } from '../accounts/users.js';
import type {
  ConsoleSession,
  ConsoleSessionStore,
  OperatorConsoleSession,
  SessionOwner,
  UserConsoleSession,
} from '../store/contract/operators/console-session-store.js';
import type { OperatorRole } from '../store/contract/operators/operator-token-store.js';
import type { Store } from '../store/contract/store.js';

/** How long a session lasts at most. */
export const CONSOLE_SESSION_LIFE: Milliseconds = Hours(12);
/** How long a one-time link can be used. */
export const LINK_LIFE: Milliseconds = Minutes(5);

const TOKEN_BYTES = 32;
/** The tokens of sessions and of links: a prefix, and 32 bytes as 43 characters of base64url. */
const SESSION_TEXT = /^lgc_[A-Za-z0-9_-]{43}$/;
const LINK_TEXT = /^lgl_[A-Za-z0-9_-]{43}$/;
/** How much of the User-Agent header is stored. */
const MAX_AGENT_CHARS = 200;

export interface ConsoleSessionsParts {
  readonly store: { readonly consoleSessions: ConsoleSessionStore } & Pick<Store, 'listMerchants' | 'people'>;
  readonly users: Pick<Users, 'checkPassword'>;
  /** Wall-clock time. */
  readonly clock: Clock;
}

/** The client of a login. */
export interface LoginClient {
  readonly address: string;
  /** The User-Agent header. */
  readonly agent: string | undefined;
}

/** A login with the merchant's name. */
export interface NamedLogin extends LoginClient, Omit<Login, 'merchantId'> {
  readonly merchant: string;
}

/** The result of a login. `no-role`: the password is right, but the user has no role on the dashboard. */
export type ConsoleLogin =
  | { readonly result: 'logged-in'; readonly token: string; readonly session: UserConsoleSession }
  | { readonly result: 'refused' | 'no-role' }
  | { readonly result: 'retry-later'; readonly retryAfterMs: number };

/** The merchant id of logins with an unknown merchant's name, which no merchant has. */
const NO_MERCHANT = 0;
const REFUSED = { result: 'refused' } as const;

export class ConsoleSessions {
  readonly #parts: ConsoleSessionsParts;

  constructor(parts: ConsoleSessionsParts) {
    this.#parts = parts;
  }

  /**
   * Logs a user in. An unknown merchant, an unknown user and a wrong password take the same time and have the same
   * result.
   *
   * @throws LockgateError `busy`
   */
  async logIn({ merchant, agent, ...login }: NamedLogin): Promise<ConsoleLogin> {
    const { store, users, clock } = this.#parts;
    const merchants = await store.listMerchants();
    const named = merchants.find(({ name, closedAtMs }) => closedAtMs === null && name === merchant.trim());
    const outcome = await users.checkPassword({ ...login, merchantId: named?.id ?? NO_MERCHANT });
    if (outcome.result !== 'right') return outcome;
    if (named === undefined) return REFUSED;
    const user = await store.people.findUser(named.id, outcome.userId);
    if (user === null || user.dashboardRole === null) return { result: 'no-role' };
    const token = `lgc_${randomBytes(TOKEN_BYTES).toString('base64url')}`;
    const { tokenHash, ...times } = this.#newSession(token);
    const { address } = login;
    const client = { address, agent: agent?.slice(0, MAX_AGENT_CHARS) ?? null };
    await store.consoleSessions.addForUser(named.id, user.id, { tokenHash, ...times, ...client });
    const session = await store.consoleSessions.find(tokenHash, clock.now());
    // The store finds no session if the user has lost the role meanwhile.
    if (session?.kind === 'user') return { result: 'logged-in', token, session };
    return { result: 'no-role' };
  }

  /**
   * Makes a one-time link for an operator's session. Returns the token, which is shown once.
   *
   * @param rights the role, name and id of the token that asks for the link (the token in the data folder has the id
   *   null), and when that token expires
   */
  async makeLink(rights: {
    readonly role: OperatorRole;
    readonly tokenName: string;
    readonly tokenId: number | null;
    readonly sessionEndsAtMs: number | null;
  }): Promise<{ readonly token: string; readonly expiresAtMs: number }> {
    const token = `lgl_${randomBytes(TOKEN_BYTES).toString('base64url')}`;
    const nowMs = this.#parts.clock.now();
    const expiresAtMs = nowMs + LINK_LIFE;
    await this.#parts.store.consoleSessions.addLink({ linkHash: hashOf(token), ...rights, nowMs, expiresAtMs });
    return { token, expiresAtMs };
  }

  /** Opens a session with a one-time link; undefined if the link is unknown, used or expired. */
  async redeemLink(
    link: string,
    { address, agent }: LoginClient,
  ): Promise<{ readonly token: string; readonly session: OperatorConsoleSession } | undefined> {
    if (!LINK_TEXT.test(link)) return undefined;
    const token = `lgc_${randomBytes(TOKEN_BYTES).toString('base64url')}`;
    const client = { address, agent: agent?.slice(0, MAX_AGENT_CHARS) ?? null };
    const opened = { ...this.#newSession(token), ...client };
    const session = await this.#parts.store.consoleSessions.redeemLink(hashOf(link), opened);
    return session === null ? undefined : { token, session };
  }

  /** The valid session with this token; undefined if there is none, or its holder has lost its rights. */
  async find(token: string | undefined): Promise<ConsoleSession | undefined> {
    if (token === undefined || !SESSION_TEXT.test(token)) return undefined;
    return (await this.#parts.store.consoleSessions.find(hashOf(token), this.#parts.clock.now())) ?? undefined;
  }

  /** The valid sessions of a merchant, of one of its users, or of operators; newest first. */
  async list(owner: SessionOwner): Promise<ConsoleSession[]> {
    return await this.#parts.store.consoleSessions.list(owner, this.#parts.clock.now());
  }

  /** Ends a session at once. Returns whether the owner had it. */
  async end(id: number, owner: SessionOwner): Promise<boolean> {
    return await this.#parts.store.consoleSessions.end(id, owner);
  }

  #newSession(token: string) {
    const nowMs = this.#parts.clock.now();
    return { tokenHash: hashOf(token), nowMs, expiresAtMs: nowMs + CONSOLE_SESSION_LIFE };
  }
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/**
 * Sessions of the console in the store, as hashes: of merchants' users on the dashboard, and of operators, with the
 * one-time links that open operators' sessions. As in store.ts, a method that writes resolves after the write is on the
 * disk. Times are ms since the epoch, wall-clock time.
 *
 * A session has no rights of its own: a user's come from its present role, an operator's end with the token that asked
 * for the link. So {@link ConsoleSessionStore.find} returns only sessions whose user still exists with a role, or whose
 * named token is still valid.
 */
import type { DashboardRole } from '../merchants/dashboard-roles.js';
import type { OperatorRole } from './operator-token-store.js';

/** Maximum number of sessions of one user, and of operators together; one more ends the oldest. */
export const MAX_CONSOLE_SESSIONS = 100;

/** Maximum number of one-time links that were not used; one more removes the oldest. */
export const MAX_CONSOLE_LINKS = 100;

interface SessionRecord {
  readonly id: number;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  /** The client's address when it logged in. */
  readonly address: string;
  /** What the client called itself then, cut to some length; null if it did not. */
  readonly agent: string | null;
}

/** A session of a merchant's user. */
export interface UserConsoleSession extends SessionRecord {
  readonly kind: 'user';
  readonly merchantId: number;
  readonly merchantName: string;
  readonly userId: bigint;
  readonly username: string;
  /** The user's present role. */
  readonly role: DashboardRole;
}

/** A session of an operator. */
export interface OperatorConsoleSession extends SessionRecord {
  readonly kind: 'operator';
  readonly role: OperatorRole;
  /** The token that asked for the link, as the audit log names it. */
  readonly tokenName: string;
  /** The id of the named token; null for the token in the data folder. */
  readonly tokenId: number | null;
}

export type ConsoleSession = UserConsoleSession | OperatorConsoleSession;

/** Who logs in, and until when. */
export interface NewConsoleSession {
  readonly tokenHash: Buffer;
  readonly nowMs: number;
  readonly expiresAtMs: number;
  readonly address: string;
  readonly agent: string | null;
}

/** A one-time link. */
export interface NewConsoleLink {
  readonly linkHash: Buffer;
  readonly role: OperatorRole;
  readonly tokenName: string;
  readonly tokenId: number | null;
  readonly nowMs: number;
  /** Until when the link can be used. */
  readonly expiresAtMs: number;
  /** When its session ends at the latest; null for no such limit. */
  readonly sessionEndsAtMs: number | null;
}

/** Whose sessions: a merchant's, or those of operators. */
export type SessionOwner = { readonly merchantId: number; readonly userId?: bigint } | 'operators';

export interface ConsoleSessionStore {
  /** Adds the session of a user, and deletes expired sessions and links. */
  addForUser(merchantId: number, userId: bigint, session: NewConsoleSession): Promise<void>;
  /** Adds a one-time link. */
  addLink(link: NewConsoleLink): Promise<void>;
  /** Uses up a link and adds its session; null if there is no such link, or it has expired. */
  redeemLink(linkHash: Buffer, session: NewConsoleSession): Promise<OperatorConsoleSession | null>;
  /** Returns the session with this hash; null if it has ended, or its holder has lost its rights. */
  find(tokenHash: Buffer, nowMs: number): Promise<ConsoleSession | null>;
  /** Returns the valid sessions of an owner, newest first; at most {@link MAX_CONSOLE_SESSIONS}. */
  list(owner: SessionOwner, nowMs: number): Promise<ConsoleSession[]>;
  /** Ends a session of an owner. Returns whether there was one. */
  end(id: number, owner: SessionOwner): Promise<boolean>;
}

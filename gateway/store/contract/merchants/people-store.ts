/**
 * A merchant's users, their sessions, and its pets in the store. (The specification of the merchants' interface
 * includes a pet registry.) As in store.ts, a method that writes resolves after the write is on the disk, and a
 * rejected call has changed nothing. Every call has the merchant's id, so that a merchant can't reach another
 * merchant's data. Ids are int64, so bigints; times are ms since the epoch, wall-clock time.
 */

import type { DashboardRole } from './dashboard-roles.js';

/** The range of int64. */
export const INT64_MIN = -(2n ** 63n);
export const INT64_MAX = 2n ** 63n - 1n;

/**
 * Maximum length of a user's name, in characters. The specification's operations that create lists of users have
 * another maximum, the setting `--name-length`.
 */
export const MAX_USERNAME_CHARS = 256;

/** Maximum number of sessions of a user; one more ends the oldest. */
export const MAX_SESSIONS_PER_USER = 100;

/** A user; members without a value are null. */
export interface User {
  readonly id: bigint;
  readonly username: string | null;
  readonly firstName: string | null;
  readonly lastName: string | null;
  readonly email: string | null;
  readonly phone: string | null;
  /** A number that the merchant chose; lockgate gives it no meaning. */
  readonly userStatus: number | null;
}

export interface NewUser extends Omit<User, 'id'> {
  /** Null lets the store assign the next free id. */
  readonly id: bigint | null;
  /** An Argon2id hash in PHC format; null for a user who can't log in. */
  readonly passwordHash: string | null;
  /** The role on the dashboard; none by default. */
  readonly dashboardRole?: DashboardRole | null;
}

/** A change of a user; members that are left out do not change. */
export interface UserChange {
  readonly email?: string | undefined;
  /** A new password also ends the user's sessions. */
  readonly passwordHash?: string | undefined;
  /** The session of the dashboard that a new password does not end. */
  readonly keptSessionId?: number | undefined;
  /** Null takes the role away. */
  readonly dashboardRole?: DashboardRole | null | undefined;
}

/** A user as lists show it. */
export interface ListedUser extends User {
  readonly merchantName: string;
  readonly hasPassword: boolean;
  readonly dashboardRole: DashboardRole | null;
  readonly createdAtMs: number;
}

/** A page of users, in the order of their ids. */
export interface UserPage {
  readonly merchantId: number;
  /** The last id of the page before; null for the first page. */
  readonly afterId: bigint | null;
  readonly limit: number;
}

export interface NewSession {
  readonly merchantId: number;
  readonly userId: bigint;
  readonly tokenHash: Buffer;
  readonly nowMs: number;
  readonly expiresAtMs: number;
}

/** A category or tag: a name, and an id that the caller chose. */
export interface NamedId {
  readonly id?: bigint;
  readonly name?: string;
}

/** The members that an update of a pet replaces. */
export interface PetProfile {
  readonly name: string;
  readonly photoUrls: readonly string[];
  readonly status: string | null;
  readonly category: NamedId | null;
  readonly tags: readonly NamedId[] | null;
}

/** The members that the creation of a pet sets. */
export interface NewPet {
  readonly name: string;
  readonly ownerId: string | null;
  readonly species: string | null;
  readonly breed: string | null;
}

export interface Pet extends NewPet, PetProfile {
  readonly id: bigint;
}

export interface PeopleStore {
  /**
   * Adds all users or none.
   *
   * @throws RequestFaults `user-exists` for an id or a user name that is taken, in any spelling
   * @throws OverBudget if the quota would be exceeded
   */
  addUsers(merchantId: number, users: readonly NewUser[], nowMs: number): Promise<void>;
  /** Checks ids and user names as addUsers does, before costly work. @throws RequestFaults `user-exists` */
  checkNotTaken(merchantId: number, users: readonly Pick<NewUser, 'id' | 'username'>[]): Promise<void>;
  /** Checks that the merchant's quota allows `users` more users. @throws OverBudget if not */
  checkUserQuota(merchantId: number, users: number): Promise<void>;
  /** Lists a merchant's users, by id. */
  listUsers(page: UserPage): Promise<ListedUser[]>;
  /** Returns a user; null if the merchant has no such user. */
  findUser(merchantId: number, id: bigint): Promise<ListedUser | null>;
  /**
   * Changes a user, if it exists. The last owner stays one.
   *
   * @throws LockgateError `last-owner`; OverBudget if the quota would be exceeded
   */
  changeUser(merchantId: number, id: bigint, change: UserChange): Promise<void>;
  /** Removes a user and ends its sessions, if it exists. @throws LockgateError `last-owner` */
  removeUser(merchantId: number, id: bigint): Promise<void>;
  /**
   * Returns the id and password hash of the user with this name: the user with exactly this spelling, else the only
   * user with the same key (username-key.ts); null if there is none.
   */
  findLogin(
    merchantId: number,
    username: string,
  ): Promise<{ readonly id: bigint; readonly passwordHash: string | null } | null>;

  /** Adds a session and deletes expired sessions. */
  addSession(session: NewSession): Promise<void>;
  /**
   * Returns the id of the session's user; null if the session has ended or is another merchant's, or this one is
   * closed.
   */
  findSession(merchantId: number, tokenHash: Buffer, nowMs: number): Promise<bigint | null>;
  /** Ends a session, if it exists. */
  endSession(merchantId: number, tokenHash: Buffer): Promise<void>;

  /** @throws OverBudget if the quota would be exceeded */
  addPet(merchantId: number, pet: NewPet, nowMs: number): Promise<Pet>;
  /**
   * Replaces the members of the profile; returns null if the merchant has no such pet.
   *
   * @throws OverBudget, PetTooLarge if the pet would grow beyond a limit
   */
  updatePet(merchantId: number, id: bigint, profile: PetProfile, nowMs: number): Promise<Pet | null>;
}

/**
 * A merchant's users, their sessions, and its pets. The promises of store.ts hold: a method that writes resolves after
 * the write is on the disk, and nothing of a rejected call remains. Every call has the merchant's id, so that another's
 * data can't be reached. Ids are int64, so bigints; times are ms since the epoch, wall-clock time.
 */

/** The least and the greatest int64. */
export const INT64_MIN = -(2n ** 63n);
export const INT64_MAX = 2n ** 63n - 1n;

/** Sessions that a user may have at the same time; one more ends the oldest. */
export const SESSIONS_PER_USER = 100;

/** A user; members that were never given are null. */
export interface User {
  readonly id: bigint;
  readonly username: string | null;
  readonly firstName: string | null;
  readonly lastName: string | null;
  readonly email: string | null;
  readonly phone: string | null;
  readonly userStatus: number | null;
}

export interface NewUser extends Omit<User, 'id'> {
  /** Null lets the store assign the next free one. */
  readonly id: bigint | null;
  /** Argon2id in PHC's spelling; null for a user who can't log in. */
  readonly passwordHash: string | null;
}

/** A user as lists show it. */
export interface ListedUser extends User {
  readonly merchantName: string;
  readonly hasPassword: boolean;
  readonly createdAtMs: number;
}

/** A page of users, in the order of their ids. */
export interface UserPage {
  /** The merchant's name. */
  readonly merchant: string;
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

/** A name with an id of the caller's, as categories and tags are. */
export interface NamedId {
  readonly id?: bigint;
  readonly name?: string;
}

/** What a pet's update replaces. */
export interface PetProfile {
  readonly name: string;
  readonly photoUrls: readonly string[];
  readonly status: string | null;
  readonly category: NamedId | null;
  readonly tags: readonly NamedId[] | null;
}

/** What a pet's creation says. */
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
   * Adds all of them or none.
   *
   * @throws ManyFaults `user-exists` for an id or a user name that is taken, however the name is spelled
   * @throws OverBudget where the merchant would store more than it may
   */
  addUsers(merchantId: number, users: readonly NewUser[], nowMs: number): Promise<void>;
  /** The same check without adding, before costly work. @throws ManyFaults `user-exists` */
  findTaken(merchantId: number, users: readonly Pick<NewUser, 'id' | 'username'>[]): Promise<void>;
  /** Checks that so many more users are within the quota. @throws OverBudget where they are not */
  findRoom(merchantId: number, users: number): Promise<void>;
  /** @throws LockgateError `no-such-merchant` */
  listUsers(page: UserPage): Promise<ListedUser[]>;
  /**
   * The user of this name, and the hash to compare a password with: the one of this spelling, else the only one with
   * the same key (username-key.ts).
   */
  findLogin(
    merchantId: number,
    username: string,
  ): Promise<{ readonly id: bigint; readonly passwordHash: string | null } | null>;

  /** Adds a session and deletes expired ones. */
  addSession(session: NewSession): Promise<void>;
  /** The user whose session this is; null where it has ended, or is another merchant's. */
  findSession(merchantId: number, tokenHash: Buffer, nowMs: number): Promise<bigint | null>;
  /** Ends a session, where there is one. */
  endSession(merchantId: number, tokenHash: Buffer): Promise<void>;

  /** @throws OverBudget where the merchant would store more than it may */
  addPet(merchantId: number, pet: NewPet, nowMs: number): Promise<Pet>;
  /**
   * Replaces the members of the profile; null where the merchant has no such pet.
   *
   * @throws OverBudget, PetTooLarge where the pet grows beyond what may be stored
   */
  updatePet(merchantId: number, id: bigint, profile: PetProfile, nowMs: number): Promise<Pet | null>;
}

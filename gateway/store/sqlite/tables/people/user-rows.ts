/** Inserts, changes and removes users, in hand-written SQL. A user without an id gets the next free id. */
import type { Database, Statement } from 'better-sqlite3';
import { INT64_MAX, type NewUser, type UserChange } from '../../../contract/merchants/people-store.js';
import { usernameKey } from '../../../contract/merchants/username-key.js';
import type { Sequences } from './sequences.js';

/** How many ids are checked with one query. */
const IDS_PER_QUERY = 500n;

export class UserRows {
  readonly #sequences: Sequences;
  readonly #insert: Statement;
  readonly #idsBetween: Statement;
  readonly #otherOwner: Statement;
  readonly #role: Statement;
  readonly #change: Statement;
  readonly #remove: Statement;
  readonly #endSessions: Statement;
  readonly #endConsoleSessions: Statement;

  constructor(db: Database, sequences: Sequences) {
    this.#sequences = sequences;
    this.#insert = db.prepare(
      `INSERT INTO user_account (merchant_id, id, username, username_key, first_name, last_name, email, phone,
         password_hash, user_status, created_at_ms, dashboard_role)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#role = db.prepare('SELECT dashboard_role FROM user_account WHERE merchant_id = ? AND id = ?').pluck();
    this.#otherOwner = db.prepare(
      "SELECT 1 FROM user_account WHERE merchant_id = ? AND dashboard_role = 'owner' AND id <> ? LIMIT 1",
    );
    this.#change = db.prepare(
      `UPDATE user_account SET email = iif(@setsEmail, @email, email),
         password_hash = iif(@setsPassword, @passwordHash, password_hash),
         dashboard_role = iif(@setsRole, @role, dashboard_role)
       WHERE merchant_id = @merchantId AND id = @id`,
    );
    this.#remove = db.prepare('DELETE FROM user_account WHERE merchant_id = ? AND id = ?');
    // `IS NOT`, so that null as the last parameter spares no session.
    this.#endConsoleSessions = db.prepare(
      "DELETE FROM console_session WHERE kind = 'user' AND merchant_id = ? AND user_id = ? AND id IS NOT ?",
    );
    this.#endSessions = db.prepare('DELETE FROM user_session WHERE merchant_id = ? AND user_id = ?');
    this.#idsBetween = db
      .prepare('SELECT id FROM user_account WHERE merchant_id = ? AND id BETWEEN ? AND ?')
      .pluck()
      .safeIntegers();
  }

  /** Whether the user is its merchant's only owner. */
  isLastOwner(merchantId: number, id: bigint): boolean {
    return this.#role.get(merchantId, id) === 'owner' && this.#otherOwner.get(merchantId, id) === undefined;
  }

  /**
   * Changes a user. A new password ends the user's sessions, except for the one to be kept. Without a role the sessions
   * of the dashboard end; they do not come back with the role.
   */
  change(merchantId: number, id: bigint, { email, passwordHash, dashboardRole, keptSessionId }: UserChange): void {
    const [setsEmail, setsPassword, setsRole] = [email, passwordHash, dashboardRole].map((each) =>
      Number(each !== undefined),
    );
    const sets = { setsEmail, setsPassword, setsRole };
    const values = { email: email ?? null, passwordHash: passwordHash ?? null, role: dashboardRole ?? null };
    this.#change.run({ merchantId, id, ...sets, ...values });
    if (passwordHash !== undefined) this.#endSessionsOf(merchantId, id, keptSessionId ?? null);
    if (dashboardRole === null) this.#endConsoleSessions.run(merchantId, id, null);
  }

  #endSessionsOf(merchantId: number, id: bigint, keptSessionId: number | null): void {
    this.#endSessions.run(merchantId, id);
    this.#endConsoleSessions.run(merchantId, id, keptSessionId);
  }

  /** Removes a user and its sessions. */
  remove(merchantId: number, id: bigint): void {
    this.#endSessionsOf(merchantId, id, null);
    this.#remove.run(merchantId, id);
  }

  /** Adds users; the caller has checked that no id and no name is taken (taken-users.ts). */
  add(merchantId: number, users: readonly NewUser[], nowMs: number): void {
    const ids = this.#assignIds(merchantId, users);
    for (const [index, user] of users.entries()) {
      const { username, firstName, lastName, email, phone, passwordHash, userStatus } = user;
      const key = username === null ? null : usernameKey(username);
      const texts = [username, key, firstName, lastName, email, phone, passwordHash];
      this.#insert.run(merchantId, user.id ?? ids[index], ...texts, userStatus, nowMs, user.dashboardRole ?? null);
    }
  }

  /** Assigns the next free ids to the users without an id; returns undefined for users with an id. */
  #assignIds(merchantId: number, users: readonly NewUser[]): (bigint | undefined)[] {
    if (users.every(({ id }) => id !== null)) return [];
    const requestedIds = new Set(users.map(({ id }) => id));
    // The ids of stored users from the last assigned id up to `checkedTo`.
    const storedIds = new Set<bigint>();
    let last = this.#sequences.readLast(merchantId, 'user');
    let checkedTo = last;
    const ids = users.map(({ id }) => {
      if (id !== null) return undefined;
      do {
        last += 1n;
        if (last > INT64_MAX) throw new Error('there is no id left');
        if (last > checkedTo) {
          checkedTo += IDS_PER_QUERY;
          for (const stored of this.#idsBetween.all(merchantId, last, checkedTo) as bigint[]) storedIds.add(stored);
        }
      } while (storedIds.has(last) || requestedIds.has(last));
      return last;
    });
    this.#sequences.record(merchantId, 'user', last);
    return ids;
  }
}

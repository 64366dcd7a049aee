/** Adding users, in SQL by hand, each with an id: the one that it brings, or the next one that is free. */
import type { Database, Statement } from 'better-sqlite3';
import { INT64_MAX, type NewUser } from '../../../contract/merchants/people-store.js';
import { usernameKey } from '../../../contract/merchants/username-key.js';
import type { Sequences } from './sequences.js';

/** Ids that are looked at together. */
const IDS_AT_ONCE = 500n;

export class UserRows {
  readonly #sequences: Sequences;
  readonly #insert: Statement;
  readonly #idsBetween: Statement;

  constructor(db: Database, sequences: Sequences) {
    this.#sequences = sequences;
    this.#insert = db.prepare(
      `INSERT INTO user_account (merchant_id, id, username, username_key, first_name, last_name, email, phone,
         password_hash, user_status, created_at_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#idsBetween = db
      .prepare('SELECT id FROM user_account WHERE merchant_id = ? AND id BETWEEN ? AND ?')
      .pluck()
      .safeIntegers();
  }

  /** Adds them; no id and no name of theirs may be taken. */
  add(merchantId: number, users: readonly NewUser[], nowMs: number): void {
    const ids = this.#freeIds(merchantId, users);
    for (const [index, user] of users.entries()) {
      const { username, firstName, lastName, email, phone, passwordHash, userStatus } = user;
      const key = username === null ? null : usernameKey(username);
      const texts = [username, key, firstName, lastName, email, phone, passwordHash];
      this.#insert.run(merchantId, user.id ?? ids[index], ...texts, userStatus, nowMs);
    }
  }

  /** An id for each user who brings none: the next ones after the last that was given, but for those that are taken. */
  #freeIds(merchantId: number, users: readonly NewUser[]): (bigint | undefined)[] {
    if (users.every(({ id }) => id !== null)) return [];
    const brought = new Set(users.map(({ id }) => id));
    const taken = new Set<bigint>();
    let last = this.#sequences.last(merchantId, 'user');
    let readTo = last;
    const ids = users.map(({ id }) => {
      if (id !== null) return undefined;
      do {
        last += 1n;
        if (last > INT64_MAX) throw new Error('there is no id left');
        if (last > readTo) {
          readTo += IDS_AT_ONCE;
          for (const each of this.#idsBetween.all(merchantId, last, readTo) as bigint[]) taken.add(each);
        }
      } while (taken.has(last) || brought.has(last));
      return last;
    });
    this.#sequences.note(merchantId, 'user', last);
    return ids;
  }
}

/**
 * Finds, among users that a merchant wants to add, those whose id or name is taken. A name is taken if a stored name
 * has the same key, which leaves out differences of case and spaces.
 */
import type { Database, Statement } from 'better-sqlite3';
import { type Fault, MAX_REPORTED_FAULTS } from '../../../../faults.js';
import type { NewUser } from '../../../contract/merchants/people-store.js';
import { usernameKey } from '../../../contract/merchants/username-key.js';

export class TakenUsers {
  readonly #byId: Statement;
  readonly #byKey: Statement;

  constructor(db: Database) {
    this.#byId = db.prepare('SELECT 1 FROM user_account WHERE merchant_id = ? AND id = ?').pluck();
    this.#byKey = db.prepare('SELECT 1 FROM user_account WHERE merchant_id = ? AND username_key = ? LIMIT 1').pluck();
  }

  /** Returns a fault for each taken id and name; its pointer is into the list of users. At most MAX_REPORTED_FAULTS. */
  find(merchantId: number, users: readonly Pick<NewUser, 'id' | 'username'>[]): Fault[] {
    const faults: Fault[] = [];
    for (const [index, { id, username }] of users.entries()) {
      if (id !== null && this.#byId.get(merchantId, id) !== undefined)
        faults.push({ pointer: `/${index}/id`, detail: 'a user has this id already' });
      if (username !== null && this.#byKey.get(merchantId, usernameKey(username)) !== undefined)
        faults.push({ pointer: `/${index}/username`, detail: 'a user has this name already' });
      if (faults.length >= MAX_REPORTED_FAULTS) break;
    }
    return faults.slice(0, MAX_REPORTED_FAULTS);
  }
}

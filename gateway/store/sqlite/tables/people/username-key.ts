/** The SQL function `username_key`, which computes the key of a user name (merchants/username-key.ts) in migrations. */
import type { Database } from 'better-sqlite3';
import { usernameKey } from '../../../contract/merchants/username-key.js';

/** The function's name. */
export const USERNAME_KEY = 'username_key';

/** Adds `username_key(name)` to a connection; the key of null is null. */
export function registerUsernameKey(db: Database): void {
  db.function(USERNAME_KEY, { deterministic: true }, (name: unknown) =>
    typeof name === 'string' ? usernameKey(name) : null,
  );
}

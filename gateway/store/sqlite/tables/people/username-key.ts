/** The key of a user name (merchants/username-key.ts) as an SQL function, which migrations call. */
import type { Database } from 'better-sqlite3';
import { usernameKey } from '../../../contract/merchants/username-key.js';

/** The function's name. */
export const USERNAME_KEY = 'username_key';

/** Makes `username_key(name)` known to a connection; null has none. */
export function registerUsernameKey(db: Database): void {
  db.function(USERNAME_KEY, { deterministic: true }, (name: unknown) =>
    typeof name === 'string' ? usernameKey(name) : null,
  );
}

/**
 * User names as they are compared: without case, without white space around them, and in one spelling of each letter
 * (Unicode NFKC). The name itself is kept as it was typed. Two names with one key are one name: nobody can register
 * "Ada " beside "ada" and be taken for her.
 */
import type { Database } from 'better-sqlite3';

/** The SQL function of the same meaning, which migrations call. */
export const USERNAME_KEY = 'username_key';

/**
 * The key of a name. Upper case comes first because it folds what lower case alone keeps apart: ß and ss, ς and σ. It
 * may leave a letter and its mark apart, which NFKC then joins again.
 */
export function usernameKey(name: string): string {
  return name.normalize('NFKC').trim().toUpperCase().toLowerCase().normalize('NFKC');
}

/** Makes `username_key(name)` known to a connection; null has none. */
export function registerUsernameKey(db: Database): void {
  db.function(USERNAME_KEY, { deterministic: true }, (name: unknown) =>
    typeof name === 'string' ? usernameKey(name) : null,
  );
}

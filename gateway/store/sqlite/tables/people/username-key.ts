/**
 * User names as they are compared: without case, without white space around them, without what is not shown, and in one
 * spelling of each letter (Unicode NFKC). The name itself is kept as it was typed. Two names with one key are one name:
 * nobody can register "Ada " beside "ada" and be taken for her.
 */
import type { Database } from 'better-sqlite3';

/** The SQL function of the same meaning, which migrations call. */
export const USERNAME_KEY = 'username_key';

/**
 * The key of a name. Upper case folds what lower case alone keeps apart, ß and ss, ς and σ; and lower case comes before
 * it too, since the capital ẞ is its own upper case. That may leave a letter and its mark apart, which NFKC then joins
 * again. What is not shown (zero-width spaces, soft hyphens) goes first, as in Unicode's NFKC_Casefold.
 */
export function usernameKey(name: string): string {
  const shown = name
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .normalize('NFKC')
    .trim();
  return shown.toLowerCase().toUpperCase().toLowerCase().normalize('NFKC');
}

/** Makes `username_key(name)` known to a connection; null has none. */
export function registerUsernameKey(db: Database): void {
  db.function(USERNAME_KEY, { deterministic: true }, (name: unknown) =>
    typeof name === 'string' ? usernameKey(name) : null,
  );
}

/**
 * The key by which the store compares user names: without case, surrounding white space and invisible characters, and
 * in one spelling of each letter (Unicode NFKC). The name itself is stored as it was typed. Two names with the same key
 * are the same name, so nobody can register "Ada " next to "ada" and be mistaken for her.
 */

/**
 * Returns the key of a name. Invisible characters (zero-width spaces, soft hyphens) are removed first, as in Unicode's
 * NFKC_Casefold. Upper case then unifies what lower case distinguishes: ß and ss, ς and σ. Lower case comes first all
 * the same, since upper case leaves the capital ẞ unchanged. Case changes may separate a letter from its accent, which
 * the last NFKC joins again.
 */
export function usernameKey(name: string): string {
  const visible = name
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .normalize('NFKC')
    .trim();
  return visible.toLowerCase().toUpperCase().toLowerCase().normalize('NFKC');
}

/** Control characters, and the separators that end a line: a name is one line in every list and log. */
const BAD_IN_NAME = /[\p{Cc}\u2028\u2029]/u;

/** What is wrong with a new user's name, as a sentence; undefined if nothing is. Older names stay as they are. */
export function usernameFault(name: string): string | undefined {
  return BAD_IN_NAME.test(name) ? 'expected a name without control characters' : undefined;
}

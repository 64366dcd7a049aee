/**
 * User names as the store compares them: without case, without white space around them, without invisible characters,
 * and in one spelling of each letter (Unicode NFKC). The name itself is stored as it was typed. Two names with one key
 * are the same name, so nobody can register "Ada " beside "ada" and be taken for her.
 */

/**
 * The key of a name. Upper case folds what lower case alone keeps apart, ß and ss, ς and σ; lower case comes before it
 * too, since the capital ẞ is its own upper case. That may leave a letter and its mark apart, which NFKC then joins
 * again. Invisible characters (zero-width spaces, soft hyphens) are removed first, as in Unicode's NFKC_Casefold.
 */
export function usernameKey(name: string): string {
  const shown = name
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .normalize('NFKC')
    .trim();
  return shown.toLowerCase().toUpperCase().toLowerCase().normalize('NFKC');
}

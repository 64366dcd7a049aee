/**
 * Removes from a text everything that looks like a secret of lockgate. No code logs a secret on purpose, but an
 * operator may paste one into the wrong field, and an error may quote its input. Pure.
 */

const CENSORED = '[secret]';

/** Lockgate's prefixes (secrets of locks and phones, signing secrets, tokens, keys), then credentials in headers. */
const SECRETS = /\b(?:whsec|lg[a-z])_[A-Za-z0-9+/_=-]{6,}|\b(Bearer|Basic) +[A-Za-z0-9._~+/=-]{6,}/gi;

/** The text without what looks like a secret. */
export function scrubSecrets(text: string): string {
  return text.replace(SECRETS, (_found, scheme?: string) =>
    scheme === undefined ? CENSORED : `${scheme} ${CENSORED}`,
  );
}

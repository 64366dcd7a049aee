/**
 * The last line of defence: whatever a text has that looks like a secret of ours is taken out. Nothing writes a secret
 * on purpose; but a person may paste one where a name belongs, and an error may quote what it was given.
 */

const CENSORED = '[secret]';

/** Our own prefixes (secrets of locks and phones, signing secrets, tokens, keys), then what headers carry. */
const SECRETS = /\b(?:whsec|lg[a-z])_[A-Za-z0-9+/_=-]{6,}|\b(Bearer|Basic) +[A-Za-z0-9._~+/=-]{6,}/gi;

/** The text without what looks like a secret. */
export function scrubSecrets(text: string): string {
  return text.replace(SECRETS, (_found, scheme?: string) =>
    scheme === undefined ? CENSORED : `${scheme} ${CENSORED}`,
  );
}

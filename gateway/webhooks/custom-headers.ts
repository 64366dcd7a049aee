/**
 * The custom headers of a webhook URL, whose values are sealed in the store: they often hold a merchant's bearer token.
 * Their names are in clear, so that lists can show them.
 */
import type { Keys } from '../keys.js';

/** For the store: each value sealed, in base64. */
export function sealHeaders(keys: Keys, headers: Readonly<Record<string, string>>): Record<string, string> {
  return mapValues(headers, (value) => keys.seal(value).toString('base64'));
}

/** As they are sent. @throws LockgateError `wrong-key` */
export function unsealHeaders(keys: Keys, headersSealed: Readonly<Record<string, string>>): Record<string, string> {
  return mapValues(headersSealed, (value) => keys.unseal(Buffer.from(value, 'base64')));
}

function mapValues(
  headers: Readonly<Record<string, string>>,
  change: (value: string) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, change(value)]));
}

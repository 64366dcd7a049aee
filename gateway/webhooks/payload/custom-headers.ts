/**
 * Checks and seals the custom headers of a webhook URL. The store has their values encrypted (sealed), since they often
 * contain a merchant's bearer token, and their names in plain text, so that lists can show them.
 */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { LockgateError } from '../../../proto/errors.js';
import type { Keys } from '../../data-folder/keys.js';

const MAX_HEADERS = 20;
const MAX_HEADER_VALUE_CHARS = 1024;

/**
 * Headers that lockgate or the HTTP connection sets, or that change the meaning of the body or the answer. A custom
 * header can't replace them (interfaces.md §3).
 */
const RESERVED_HEADERS = new Set([
  'accept-encoding',
  'connection',
  'date',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'range',
  'te',
  'traceparent',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
]);
const RESERVED_PREFIXES = ['content-', 'webhook-'];

/**
 * Checks headers that an operator sets: their number, names and values, and that no two names are equal in HTTP.
 *
 * @throws LockgateError `input-header`
 */
export function checkHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(headers);
  checkHeaderCount(entries.length);
  const seenNames = new Map<string, string>();
  for (const [name, value] of entries) {
    const lowerName = name.toLowerCase();
    if (RESERVED_HEADERS.has(lowerName) || RESERVED_PREFIXES.some((prefix) => lowerName.startsWith(prefix)))
      throw new LockgateError(
        'input-header',
        `the header ${name} can't be set: lockgate or the HTTP connection sets it`,
      );
    if (!isValidHeader(name, value))
      throw new LockgateError('input-header', `the header ${JSON.stringify(name.slice(0, 80))} is not valid in HTTP`);
    const sameName = seenNames.get(lowerName);
    if (sameName !== undefined)
      throw new LockgateError('input-header', `${sameName} and ${name} are the same header in HTTP: set only one`);
    seenNames.set(lowerName, name);
  }
  return { ...headers };
}

/** @throws LockgateError `input-header` if there are more custom headers than a URL may have */
export function checkHeaderCount(count: number): void {
  if (count > MAX_HEADERS)
    throw new LockgateError('input-header', `${count} custom headers: at most ${MAX_HEADERS} are allowed`);
}

function isValidHeader(name: string, value: string): boolean {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return value.length <= MAX_HEADER_VALUE_CHARS;
  } catch {
    return false;
  }
}

/** Seals each value, for the store; in base64. */
export function sealHeaders(keys: Keys, headers: Readonly<Record<string, string>>): Record<string, string> {
  return mapValues(headers, (value) => keys.seal(value).toString('base64'));
}

/** Unseals each value, for sending. @throws LockgateError `wrong-key` */
export function unsealHeaders(keys: Keys, headersSealed: Readonly<Record<string, string>>): Record<string, string> {
  return mapValues(headersSealed, (value) => keys.unseal(Buffer.from(value, 'base64')));
}

function mapValues(
  headers: Readonly<Record<string, string>>,
  convert: (value: string) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, convert(value)]));
}

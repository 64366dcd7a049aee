/**
 * The custom headers of a webhook URL: which may be set, and how they are kept. Their values are sealed in the store,
 * since they often hold a merchant's bearer token; their names are in clear, so that lists can show them.
 */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { LockgateError } from '../../../proto/errors.js';
import type { Keys } from '../../data-folder/keys.js';

const MAX_HEADERS = 20;
const MAX_HEADER_VALUE = 1024;

/**
 * Headers that belong to lockgate or to the connection, or that change what the body or the answer is: a custom one
 * can't replace them (interfaces.md §3).
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
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
]);
const RESERVED_PREFIXES = ['content-', 'webhook-'];

/**
 * Checks headers that an operator sets: their number, names and values, and that no two are the same header.
 *
 * @throws LockgateError `input-header`
 */
export function checkHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(headers);
  checkHeaderCount(entries.length);
  const seen = new Map<string, string>();
  for (const [name, value] of entries) {
    const lower = name.toLowerCase();
    if (RESERVED_HEADERS.has(lower) || RESERVED_PREFIXES.some((prefix) => lower.startsWith(prefix)))
      throw new LockgateError(
        'input-header',
        `the header ${name} can't be set: it is lockgate's own or the connection's`,
      );
    if (!isHeader(name, value))
      throw new LockgateError('input-header', `the header ${JSON.stringify(name.slice(0, 80))} is not valid in HTTP`);
    const twin = seen.get(lower);
    if (twin !== undefined)
      throw new LockgateError('input-header', `${twin} and ${name} are one header in HTTP: set it once`);
    seen.set(lower, name);
  }
  return { ...headers };
}

/** @throws LockgateError `input-header` where a URL would have more custom headers than are taken */
export function checkHeaderCount(count: number): void {
  if (count > MAX_HEADERS)
    throw new LockgateError('input-header', `${count} custom headers: at most ${MAX_HEADERS} are taken`);
}

function isHeader(name: string, value: string): boolean {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return value.length <= MAX_HEADER_VALUE;
  } catch {
    return false;
  }
}

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

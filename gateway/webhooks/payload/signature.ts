/**
 * Makes and verifies Standard Webhooks signatures: `v1,` and the base64 of HMAC-SHA256 over `<id>.<timestamp>.<body>`.
 * Pure, except for new secrets: the time is an argument.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { type Milliseconds, Minutes } from '../../../proto/clock.js';
import { ok, problem, type Result } from '../../../proto/errors.js';

const SECRET_PREFIX = 'whsec_';
const SECRET_BYTES = 32;
/** The maximum difference between the timestamp and the receiver's clock, in either direction. */
const MAX_TIMESTAMP_DIFFERENCE: Milliseconds = Minutes(5);

export interface SignedHeaders {
  readonly 'webhook-id': string;
  /** Seconds since the epoch. */
  readonly 'webhook-timestamp': string;
  readonly 'webhook-signature': string;
}

/** A new secret for a webhook URL, to be shown once: `whsec_` and the base64 of 32 random bytes. */
export function makeWebhookSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/** The headers that sign `body`, with one signature for each secret: during a rotation several are valid. */
export function signHeaders(secrets: readonly string[], id: string, nowMs: number, body: string): SignedHeaders {
  const timestamp = String(Math.floor(nowMs / 1000));
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': secrets.map((secret) => makeSignature(secret, id, timestamp, body)).join(' '),
  };
}

function makeSignature(secret: string, id: string, timestamp: string, body: string | Uint8Array): string {
  const key = Buffer.from(secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret, 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
}

/**
 * Checks signature and age, as a receiver does. Header names are lower-case, as in Node. Pass the body as the received
 * bytes if possible: decoded as text, different invalid UTF-8 bytes would look the same.
 */
export function verifySignature(
  secret: string,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: string | Uint8Array,
  nowMs: number,
): Result<{ id: string }> {
  const id = headers['webhook-id'];
  const timestamp = headers['webhook-timestamp'];
  const given = headers['webhook-signature'];
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof given !== 'string')
    return problem('unsigned', 'a header is missing: expected webhook-id, webhook-timestamp and webhook-signature');
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(Number(timestamp) * 1000 - nowMs) > MAX_TIMESTAMP_DIFFERENCE)
    return problem('bad-timestamp', `webhook-timestamp ${timestamp} is over 5 min from this machine's time`);
  const expected = Buffer.from(makeSignature(secret, id, timestamp, body));
  const matches = given.split(' ').some((each) => {
    const candidate = Buffer.from(each);
    return candidate.length === expected.length && timingSafeEqual(candidate, expected);
  });
  return matches ? ok({ id }) : problem('bad-signature', 'no signature matches this body and secret');
}

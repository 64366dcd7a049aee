/** Checks the limits that an operator sets for a webhook URL: rate, time limit, certificate authority. Pure. */
import { X509Certificate } from 'node:crypto';
import { type Milliseconds, Seconds } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { ATTEMPT_TIMEOUT } from './sending/attempt.js';

/** Attempts per second that may be set. */
const MIN_RATE = 0.1;
const MAX_RATE = 1_000;
/** The shortest time limit of an attempt that may be set; the longest is {@link ATTEMPT_TIMEOUT}. */
const MIN_TIMEOUT: Milliseconds = Seconds(1);
/** The longest text of certificates, in characters, and how many it may have. */
const MAX_CA_LENGTH = 64 * 1024;
const MAX_CERTIFICATES = 16;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Limits to set: null removes one, undefined leaves it as it is. */
export interface LimitsChange {
  readonly attemptsPerSecond?: number | null | undefined;
  readonly timeoutMs?: number | null | undefined;
  /** Certificates as PEM. */
  readonly ca?: string | null | undefined;
}

/** The certificates of a URL, for people. */
export interface CaSummary {
  readonly subjects: readonly string[];
  /** When the first of them expires, ms since the epoch. */
  readonly validToMs: number;
}

/** Returns the checked limits. Sentences name the members of a request. @throws LockgateError `input-webhook` */
export function checkLimits(change: LimitsChange, nowMs: number): LimitsChange {
  const { attemptsPerSecond: rate, timeoutMs, ca } = change;
  if (typeof rate === 'number' && !(rate >= MIN_RATE && rate <= MAX_RATE))
    throw wrongLimit('rate', `${rate}`, `${MIN_RATE} to ${MAX_RATE} attempts per second`);
  if (typeof timeoutMs === 'number' && !(timeoutMs >= MIN_TIMEOUT && timeoutMs <= ATTEMPT_TIMEOUT))
    throw wrongLimit('timeout_seconds', seconds(timeoutMs), `${seconds(MIN_TIMEOUT)} to ${seconds(ATTEMPT_TIMEOUT)}`);
  return {
    attemptsPerSecond: rate,
    timeoutMs: typeof timeoutMs === 'number' ? Math.round(timeoutMs) : timeoutMs,
    ca: typeof ca === 'string' ? checkCa(ca, nowMs) : ca,
  };
}

function wrongLimit(member: string, value: string, expected: string): LockgateError {
  return new LockgateError('input-webhook', `${member} is ${value}: expected ${expected}`);
}

const seconds = (span: Milliseconds): string => `${span / Seconds(1)} s`;

/** The certificates alone, without other text. @throws LockgateError `input-webhook` */
function checkCa(pem: string, nowMs: number): string {
  if (pem.length > MAX_CA_LENGTH) throw wrongCa(`is longer than ${MAX_CA_LENGTH / 1024} KiB`);
  if (pem.includes('PRIVATE KEY')) throw wrongCa('has a private key: expected certificates alone');
  const blocks = pem.match(CERTIFICATE) ?? [];
  if (blocks.length === 0) throw wrongCa('has no certificate: expected PEM (-----BEGIN CERTIFICATE-----)');
  if (blocks.length > MAX_CERTIFICATES) throw wrongCa(`has over ${MAX_CERTIFICATES} certificates`);
  const text = `${blocks.join('\n')}\n`;
  const { validToMs } = summarizeCa(text);
  if (validToMs <= nowMs) throw wrongCa(`has a certificate that ended at ${new Date(validToMs).toISOString()}`);
  return text;
}

/** Sums up checked certificates. @throws LockgateError `input-webhook` if one can't be read */
export function summarizeCa(pem: string): CaSummary {
  const certificates = (pem.match(CERTIFICATE) ?? []).map((block, index) => {
    try {
      return new X509Certificate(block);
    } catch {
      throw wrongCa(`has a certificate that can’t be read, number ${index + 1}`);
    }
  });
  return {
    subjects: certificates.map(({ subject }) => subject.replaceAll('\n', ', ')),
    validToMs: Math.min(...certificates.map(({ validTo }) => Date.parse(validTo))),
  };
}

function wrongCa(what: string): LockgateError {
  return new LockgateError('input-webhook', `ca: the PEM text ${what}`);
}

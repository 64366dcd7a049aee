/** The flags that limit attempts at a webhook URL: rate, time limit, certificate authority. */
import { createReadStream } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { LockgateError } from '../../../proto/errors.js';
import { whenText } from '../../terminal/time-text.js';

/** A value that removes a limit. */
const NONE = 'none';

/** The maximum length of the file for --ca. The gateway accepts fewer certificates than fit into it. */
const MAX_CA_FILE_BYTES = 64 * 1024;
/** The time limit of an attempt at a URL that has no separate time limit. */
const DEFAULT_TIMEOUT_SECONDS = 15;
/** The characters of a date without its time. */
const DATE_LENGTH = 10;

/** The texts of `--help`. */
export const LIMIT_FLAGS = {
  rate: 'Maximum number of attempts per second, 0.1 to 1000; "none" for no limit.',
  timeout: 'The time limit of an attempt in seconds, 1 to 15; "none" for 15.',
  ca: 'A file with PEM certificates, or -: for https only these authorities are trusted; "none" for the default ones.',
};

/** The values of the flags; `none` removes a limit. */
export interface LimitFlags {
  readonly rate?: number | typeof NONE;
  readonly timeout?: number | typeof NONE;
  readonly ca?: string;
}

/** A number, or "none". Commander would turn null into an empty text. */
export function readLimit(text: string): number | typeof NONE {
  if (text === NONE) return NONE;
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError('Expected a number above 0, or none.');
}

/** The members of a request that set what the flags name. @throws LockgateError `input-file` */
export async function limitBody({ rate, timeout, ca }: LimitFlags): Promise<object> {
  return {
    ...(rate !== undefined && { rate: rate === NONE ? null : rate }),
    ...(timeout !== undefined && { timeout_seconds: timeout === NONE ? null : timeout }),
    ...(ca !== undefined && { ca: ca === NONE ? null : await readCertificates(ca) }),
  };
}

/** The text of a file. The gateway checks the certificates; a private key must not get that far. */
async function readCertificates(file: string): Promise<string> {
  const text = await readStart(file);
  if (text.length > MAX_CA_FILE_BYTES)
    throw new LockgateError('input-file', `--ca ${file}: longer than ${MAX_CA_FILE_BYTES / 1024} KiB`);
  if (!text.includes('PRIVATE KEY')) return text;
  throw new LockgateError('input-file', `--ca ${file}: it has a private key: expected only certificates`);
}

/** The text of a file, or its start if it is too long. */
async function readStart(file: string): Promise<string> {
  const chunks: Buffer[] = [];
  try {
    const stream = file === '-' ? process.stdin : createReadStream(file, { end: MAX_CA_FILE_BYTES });
    let length = 0;
    for await (const chunk of stream) {
      chunks.push(chunk as Buffer);
      length += (chunk as Buffer).length;
      if (length > MAX_CA_FILE_BYTES) break;
    }
  } catch (error) {
    throw new LockgateError('input-file', `--ca ${file}: ${(error as Error).message}`);
  }
  // PEM is ASCII. Latin-1 makes each byte one character, so that the caller compares the length in bytes.
  return Buffer.concat(chunks).toString('latin1');
}

/** The limits of a URL, as the operator interface returns them; null for a limit that is the gateway's own. */
export interface LimitsJson {
  /** Requests per second. */
  readonly rate: number | null;
  readonly timeout_seconds: number | null;
  /** The certificates of the authorities that the URL's certificate must be from, and the end of their validity. */
  readonly ca: { readonly subjects: readonly string[]; readonly valid_to: string } | null;
}

/** The limits in short, such as `5/s, 3 s, own CA`; empty if it has none. */
export function limitsText({ rate, timeout_seconds: seconds, ca }: LimitsJson): string {
  const parts = [rate !== null && `${rate}/s`, seconds !== null && `${seconds} s`, ca !== null && 'own CA'];
  return parts.filter((part) => part !== false).join(', ');
}

/** A line for each limit; a limit that the URL does not set has its default. */
export function limitLines(limits: LimitsJson, nowMs: number): [label: string, text: string][] {
  const { rate, timeout_seconds: seconds, ca } = limits;
  return [
    ['Rate', rate === null ? 'no limit' : `at most ${rate} ${rate === 1 ? 'attempt' : 'attempts'} per second`],
    ['Time limit', `${seconds ?? DEFAULT_TIMEOUT_SECONDS} s for an attempt`],
    ['CA', ca === null ? 'the default ones' : `only ${ca.subjects.join('; ')}; ${endText(ca.valid_to, nowMs)}`],
  ];
}

function endText(validTo: string, nowMs: number): string {
  const has = Date.parse(validTo) > nowMs ? 'ends' : 'ended';
  return `${has} ${validTo.slice(0, DATE_LENGTH)}, ${whenText(validTo, nowMs)}`;
}

/**
 * Reads and checks the operators' token: a file in the data folder, so that only users who may read the folder's files
 * can operate the gateway.
 *
 * The file is checked at every call and every two seconds. So a new token is valid for the next call, the old token is
 * not, and open streams are closed within two seconds. While the file is missing or malformed, every call is refused.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { statSync } from 'node:fs';
import path from 'node:path';
import { type Clock, Seconds, type Timer } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { readOrMakeSecretFile, readSecretFile, writeSecretFile } from '../../data-folder/secret-file.js';

/** The random bytes of a new token; also the fewest characters of one that was written by hand. */
const TOKEN_BYTES = 32;
const TOKEN_PREFIX = 'lgo_';
/** How often the file is checked between calls. */
const CHECK_INTERVAL = Seconds(2);
/** The number of hex digits of a token's hash that serve as its name. */
const NAME_DIGITS = 8;

/** The file with the operator's token in a data folder. */
export function operatorTokenFile(folder: string): string {
  return path.join(folder, 'operator-token');
}

/** Replaces a data folder's token (mode 600) atomically. */
export function resetOperatorToken(folder: string): string {
  const token = makeToken();
  writeSecretFile(operatorTokenFile(folder), token);
  return token;
}

export class OperatorToken {
  readonly #file: string;
  readonly #clock: Clock;
  #text: string | null;
  /** The hash of the valid token; null while there is none. */
  #hash: Buffer | null;
  /** What {@link stampOf} returned when the file was last read. */
  #fileStamp: string | null;
  #timer: Timer | undefined;
  #onChanged: (() => void) | undefined;

  private constructor(file: string, clock: Clock, text: string) {
    this.#file = file;
    this.#clock = clock;
    this.#text = text;
    this.#hash = hashOf(text);
    this.#fileStamp = stampOf(file);
  }

  /**
   * The token of a data folder, created at the first start with mode 600.
   * @throws LockgateError `bad-token-file` if the file contains no token, `input-secret-file` if others may read it
   */
  static open(folder: string, clock: Clock): OperatorToken {
    const file = operatorTokenFile(folder);
    const text = readOrMakeSecretFile(file, makeToken);
    if (!isToken(text)) throw new LockgateError('bad-token-file', `${file} contains no operator token`);
    return new OperatorToken(file, clock, text);
  }

  /** The token as last read; null while there is none. */
  get text(): string | null {
    return this.#text;
  }

  /** A name that does not reveal the token: the start of its hash. */
  get name(): string | null {
    return this.#hash?.toString('hex').slice(0, NAME_DIGITS) ?? null;
  }

  /** Whether the Authorization header has the token as last read. Compares in constant time. */
  isOperator(authorization: string | undefined): boolean {
    const sentToken = bearerOf(authorization);
    // The comparison runs even while there is no token, so that it always takes the same time.
    const isSame = timingSafeEqual(hashOf(sentToken), this.#hash ?? hashOf(''));
    return isSame && this.#hash !== null;
  }

  /** Checks the file regularly and calls back when the token has changed, until {@link stop}. */
  watch(onChanged: () => void): void {
    this.#onChanged = onChanged;
    this.#scheduleCheck();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#onChanged = undefined;
  }

  #scheduleCheck(): void {
    this.#timer = this.#clock.after(CHECK_INTERVAL, () => {
      if (this.refresh()) this.#onChanged?.();
      if (this.#onChanged !== undefined) this.#scheduleCheck();
    });
  }

  /** Checks the file. Returns whether the token has changed. */
  refresh(): boolean {
    const stamp = stampOf(this.#file);
    if (stamp === this.#fileStamp) return false;
    this.#fileStamp = stamp;
    const text = stamp === null ? null : readSafely(this.#file);
    const hash = text === null ? null : hashOf(text);
    if (hash === this.#hash || (hash !== null && this.#hash?.equals(hash) === true)) return false;
    this.#text = text;
    this.#hash = hash;
    return true;
  }
}

/** The file's identity, size, modification time and mode (who may read it); null if the file is missing. */
function stampOf(file: string): string | null {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? null : `${stat.dev} ${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.mode}`;
}

/** Reads the token; null if the file contains no token, or if other users may read the file. */
function readSafely(file: string): string | null {
  try {
    const text = readSecretFile(file);
    return isToken(text) ? text : null;
  } catch {
    return null;
  }
}

/** Whether a text can be a token: one that an owner wrote into the file only has to be long, without white space. */
function isToken(text: string): boolean {
  return text.length >= TOKEN_BYTES && !/\s/.test(text);
}

function makeToken(): string {
  return TOKEN_PREFIX + randomBytes(TOKEN_BYTES).toString('base64url');
}

function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** The token of an Authorization header; empty if it has none. */
export function bearerOf(authorization: string | undefined): string {
  return /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? '';
}

/**
 * The operator's token: a file of the data folder, so that who may read the folder's files as their owner may operate
 * the gateway, and nobody else.
 *
 * The file is looked at with every call, and every two seconds: another token counts at once, and the one before is
 * dead at once, for streams that go on too. While the file is missing, or holds nothing of use, nobody gets in.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { statSync } from 'node:fs';
import path from 'node:path';
import { type Clock, Seconds, type Timer } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { makeSecretFile, readOrMakeSecretFile, readSecretFile } from '../../data-folder/secret-file.js';

const TOKEN_BYTES = 32;
const TOKEN_PREFIX = 'lgo_';
/** How often the file is looked at while nobody calls. */
const LOOK_EVERY = Seconds(2);
/** Hex digits of a token's hash that name it. */
const NAME_DIGITS = 8;

/** Where the operator's token of a data folder is kept. */
export function operatorTokenFile(folder: string): string {
  return path.join(folder, 'operator-token');
}

/** Gives a data folder another token (mode 600), in one step: who reads the file meanwhile sees one or the other. */
export function resetOperatorToken(folder: string): string {
  const token = makeToken();
  makeSecretFile(operatorTokenFile(folder), token);
  return token;
}

export class OperatorToken {
  readonly #file: string;
  readonly #clock: Clock;
  #text: string | null;
  /** The hash of a token that holds; null while none does. */
  #hash: Buffer | null;
  /** Which file it was, and as of when. */
  #seen: string | null;
  #timer: Timer | undefined;
  #onChanged: (() => void) | undefined;

  private constructor(file: string, clock: Clock, text: string) {
    this.#file = file;
    this.#clock = clock;
    this.#text = text;
    this.#hash = hashOf(text);
    this.#seen = stampOf(file);
  }

  /**
   * The token of a data folder, made at the first start with mode 600.
   *
   * @throws LockgateError `bad-token-file` where the file holds none, `input-secret-file` where others may read it
   */
  static open(folder: string, clock: Clock): OperatorToken {
    const file = operatorTokenFile(folder);
    const text = readOrMakeSecretFile(file, makeToken);
    if (!isToken(text)) throw new LockgateError('bad-token-file', `${file} holds no operator token`);
    return new OperatorToken(file, clock, text);
  }

  /** As it was read last; null while there is none. */
  get text(): string | null {
    return this.#text;
  }

  /** Names it without telling it: the beginning of its hash. */
  get name(): string | null {
    return this.#hash?.toString('hex').slice(0, NAME_DIGITS) ?? null;
  }

  /** Whether the Authorization header carries the token that the file held when it was looked at, in constant time. */
  isOperator(authorization: string | undefined): boolean {
    const given = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? '';
    // Compared in any case, so that it takes as long while there is none.
    const isSame = timingSafeEqual(hashOf(given), this.#hash ?? hashOf(''));
    return isSame && this.#hash !== null;
  }

  /** Looks at the file now and then, and tells when it holds something else, until {@link stop}. */
  watch(onChanged: () => void): void {
    this.#onChanged = onChanged;
    this.#arm();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#onChanged = undefined;
  }

  #arm(): void {
    this.#timer = this.#clock.after(LOOK_EVERY, () => {
      if (this.look()) this.#onChanged?.();
      if (this.#onChanged !== undefined) this.#arm();
    });
  }

  /** Looks at the file. Whether it holds something else than before. */
  look(): boolean {
    const stamp = stampOf(this.#file);
    if (stamp === this.#seen) return false;
    this.#seen = stamp;
    const text = stamp === null ? null : readSafely(this.#file);
    const hash = text === null ? null : hashOf(text);
    if (hash === this.#hash || (hash !== null && this.#hash?.equals(hash) === true)) return false;
    this.#text = text;
    this.#hash = hash;
    return true;
  }
}

/** Which file it is and when it was written last; null where there is none. */
function stampOf(file: string): string | null {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? null : `${stat.dev} ${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.mode}`;
}

/** Null where it holds no token, or others may read it. */
function readSafely(file: string): string | null {
  try {
    const text = readSecretFile(file);
    return isToken(text) ? text : null;
  } catch {
    return null;
  }
}

function isToken(text: string): boolean {
  return text.length >= TOKEN_BYTES && !/\s/.test(text);
}

function makeToken(): string {
  return TOKEN_PREFIX + randomBytes(TOKEN_BYTES).toString('base64url');
}

function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

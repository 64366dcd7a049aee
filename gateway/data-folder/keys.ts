/**
 * The key of a store and the two keys derived from it: one hashes locks' secrets, one seals (encrypts) webhook secrets
 * and headers. It is in a file (mode 600), in the data folder unless a setting says otherwise, and is made at the first
 * start. Whoever has only the store, such as a copied backup, can neither test guesses of a lock's secret nor sign
 * webhooks.
 *
 * The key can be changed (key-change.ts). What is sealed is then sealed again with the new one. Hashes can't be made
 * again without the secrets, so the hashing key stays the same, sealed in the store.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { LockgateError } from '../../proto/errors.js';
import type { KeyMetadata } from '../store/contract/secret-store.js';
import { dropSecretFile, moveSecretFile, readOrMakeSecretFile, readSecretFile } from './secret-file.js';

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_DIGITS = 16;
const CIPHER = 'aes-256-gcm';

/** A lock's secret: 24 random bytes, so that guessing is hopeless and a fast keyed hash is enough (quality.md §2). */
const SECRET_BYTES = 24;
const SECRET_PREFIX = 'lgs_';
/** A phone credential has the same length, and a prefix of its own. */
const PHONE_PREFIX = 'lgp_';

export class Keys {
  /** Identifies the key without revealing it. */
  readonly id: string;
  readonly #hashing: Buffer;
  readonly #sealing: Buffer;

  /** @throws LockgateError `wrong-key` where `hashKeySealed` was sealed with another key */
  constructor(master: Buffer, hashKeySealed: Buffer | null = null) {
    this.id = derive(master, 'lockgate key id').toString('hex').slice(0, KEY_ID_DIGITS);
    this.#sealing = derive(master, 'lockgate webhook secrets');
    this.#hashing =
      hashKeySealed === null
        ? derive(master, 'lockgate device secrets')
        : Buffer.from(this.unseal(hashKeySealed), 'base64');
  }

  /** The hashing key, sealed with `next`, which is to take over. */
  sealHashKey(next: Keys): Buffer {
    return next.seal(this.#hashing.toString('base64'));
  }

  /** HMAC-SHA-256 of a lock's secret, or of a phone's. */
  hashSecret(secret: Uint8Array | string): Buffer {
    return createHmac('sha256', this.#hashing).update(secret).digest();
  }

  /** Encrypts a secret for the store: nonce, ciphertext and tag (AES-256-GCM). */
  seal(plain: string): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#sealing, nonce);
    return Buffer.concat([nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  }

  /** @throws LockgateError `wrong-key` where the data folder's key is not the one it was sealed with. */
  unseal(sealed: Buffer): string {
    try {
      const decipher = createDecipheriv(CIPHER, this.#sealing, sealed.subarray(0, NONCE_BYTES));
      decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
      const text = sealed.subarray(NONCE_BYTES, -TAG_BYTES);
      return decipher.update(text, undefined, 'utf8') + decipher.final('utf8');
    } catch (error) {
      throw new LockgateError('wrong-key', 'a secret of the store was sealed with another key than this', {
        cause: error,
      });
    }
  }
}

/** A new secret for a lock, to be shown once. */
export function makeLockSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64url');
}

/** A new phone credential, to be shown once. */
export function makePhoneSecret(): string {
  return PHONE_PREFIX + randomBytes(SECRET_BYTES).toString('base64url');
}

function derive(master: Buffer, what: string): Buffer {
  return Buffer.from(hkdfSync('sha256', master, '', what, KEY_BYTES));
}

/** Where a key is, and what the store records about it. */
export interface KeyPlace {
  /** The key's file; `key` in the data folder where it is left out. */
  readonly file?: string | null | undefined;
  readonly facts?: KeyMetadata | undefined;
}

const NOTHING_KNOWN: KeyMetadata = { keyId: null, hashKeySealed: null, sample: null };

/** The file of a data folder's key. */
export function keyFileOf(folder: string, file: string | null | undefined): string {
  return file ?? path.join(folder, 'key');
}

/**
 * The file of the new key during a change (key-change.ts). Where `file` is a link, it is next to the link's target: on
 * the same disk, and found by whoever finds the link.
 */
export function nextKeyFile(file: string): string {
  return `${existsSync(file) ? realpathSync(file) : file}.next`;
}

/** A new key, as text for its file. */
export function makeKeyText(): string {
  return randomBytes(KEY_BYTES).toString('base64');
}

/** @throws LockgateError `bad-key` where the text is no key */
export function parseKey(text: string, file: string): Buffer {
  const master = Buffer.from(text, 'base64');
  if (master.length === KEY_BYTES) return master;
  throw new LockgateError('bad-key', `${file} holds no key: expected ${KEY_BYTES} bytes in base64`);
}

/**
 * Reads the key of a data folder; makes one where there is none and nothing depends on one yet. An interrupted change
 * of the key is completed or undone, as the store's note says.
 *
 * @param isInUse whether the store has secrets that were hashed or sealed with a key
 * @throws LockgateError `key-missing` where one is in use but missing, `bad-key` where the file does not hold a key,
 * `wrong-key` where it holds another than the store's
 */
export function openKeys(
  folder: string,
  isInUse: boolean,
  { file: given, facts = NOTHING_KNOWN }: KeyPlace = {},
): Keys {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = keyFileOf(folder, given);
  if (!existsSync(path.dirname(file)))
    throw new LockgateError('input-setting', `there is no folder ${path.dirname(file)} for the key's file`);
  settleChange(file, facts);
  if (isInUse && !existsSync(file))
    throw new LockgateError(
      'key-missing',
      `${file} is missing, and no lock's and no webhook's secret is of use without it: put it back from a backup`,
    );
  const keys = new Keys(parseKey(readOrMakeSecretFile(file, makeKeyText), file), null);
  if (facts.keyId !== null && keys.id !== facts.keyId) throw wrongKey(file);
  try {
    if (facts.sample !== null) keys.unseal(facts.sample);
    return facts.hashKeySealed === null ? keys : new Keys(parseKey(readSecretFile(file), file), facts.hashKeySealed);
  } catch (error) {
    throw (error as LockgateError).code === 'wrong-key' ? wrongKey(file) : error;
  }
}

function wrongKey(file: string): LockgateError {
  return new LockgateError(
    'wrong-key',
    `${file} holds another key than the one that this store's secrets are under: put that one back from a backup`,
  );
}

/** The store's note tells which of the two keys counts: it changes in the same commit as the secrets. */
function settleChange(file: string, { keyId }: KeyMetadata): void {
  const next = nextKeyFile(file);
  if (!existsSync(next)) return;
  if (keyId !== null && new Keys(parseKey(readSecretFile(next), next)).id === keyId) moveSecretFile(next, file);
  else dropSecretFile(next);
}

/**
 * The master key of a store and the two keys derived from it: the hashing key hashes locks' secrets, the sealing key
 * encrypts ("seals") webhook secrets and headers. The master key is in a file (mode 600), in the data folder unless a
 * setting names another place, and is made at the first start. A thief of the store alone, such as a copied backup, can
 * neither test guesses of a lock's secret nor sign webhooks.
 *
 * The master key can be changed (key-change.ts). Everything sealed is then sealed again with the new key. Hashes can't
 * be recomputed without the secrets, so the hashing key does not change; it is stored sealed.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { LockgateError } from '../../proto/errors.js';
import type { KeyMetadata } from '../store/contract/secret-store.js';
import { deleteSecretFile, moveSecretFile, readOrMakeSecretFile, readSecretFile } from './secret-file.js';

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_DIGITS = 16;
const CIPHER = 'aes-256-gcm';

/** A lock's secret: 24 random bytes, so that guessing is hopeless and a fast keyed hash is enough. */
const SECRET_BYTES = 24;
const SECRET_PREFIX = 'lgs_';
/** The prefix of a phone credential, which has the same length. */
const PHONE_PREFIX = 'lgp_';

/** The keys of a store. */
export class Keys {
  /** Identifies the key without revealing it. */
  readonly id: string;
  readonly #hashing: Buffer;
  readonly #sealing: Buffer;

  /** @throws LockgateError `wrong-key` if `hashKeySealed` was sealed with another key */
  constructor(master: Buffer, hashKeySealed: Buffer | null = null) {
    // The purposes (second arguments) are a part of the derived keys: another text would make another key.
    this.id = derive(master, 'lockgate key id').toString('hex').slice(0, KEY_ID_DIGITS);
    this.#sealing = derive(master, 'lockgate webhook secrets');
    this.#hashing =
      hashKeySealed === null
        ? derive(master, 'lockgate device secrets')
        : Buffer.from(this.unseal(hashKeySealed), 'base64');
  }

  /** Returns the hashing key, sealed with the key that will replace this one. */
  sealHashKey(newKeys: Keys): Buffer {
    return newKeys.seal(this.#hashing.toString('base64'));
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

  /** @throws LockgateError `wrong-key` if `sealed` was sealed with another key. */
  unseal(sealed: Buffer): string {
    try {
      const decipher = createDecipheriv(CIPHER, this.#sealing, sealed.subarray(0, NONCE_BYTES));
      decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
      const ciphertext = sealed.subarray(NONCE_BYTES, -TAG_BYTES);
      return decipher.update(ciphertext, undefined, 'utf8') + decipher.final('utf8');
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

function derive(master: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', master, '', purpose, KEY_BYTES));
}

/** Where the key's file is, and what the store records about the key. */
export interface KeyOptions {
  /** The key's file; by default `key` in the data folder. */
  readonly file?: string | null | undefined;
  /** What the store records: the key's id, the sealed hashing key, and a sealed sample to test the key with. */
  readonly metadata?: KeyMetadata | undefined;
}

const NO_METADATA: KeyMetadata = { keyId: null, hashKeySealed: null, sample: null };

/** The path of a data folder's key file. */
export function keyFileOf(folder: string, file: string | null | undefined): string {
  return file ?? path.join(folder, 'key');
}

/**
 * The path of the new key's file during a change (key-change.ts). If `file` is a link, the new file is next to the
 * link's target: on the same disk, and found by everything that follows the link.
 */
export function nextKeyFile(file: string): string {
  return `${existsSync(file) ? realpathSync(file) : file}.next`;
}

/** A new key, as text for its file. */
export function makeKeyText(): string {
  return randomBytes(KEY_BYTES).toString('base64');
}

/** @throws LockgateError `bad-key` if the text is not a key */
export function parseKey(text: string, file: string): Buffer {
  const master = Buffer.from(text, 'base64');
  if (master.length === KEY_BYTES) return master;
  throw new LockgateError('bad-key', `${file} holds no key: expected ${KEY_BYTES} bytes in base64`);
}

/**
 * Reads the key of a data folder; makes one if there is none and nothing depends on a key yet. Completes or undoes an
 * interrupted change of the key.
 *
 * @param isInUse whether the store has secrets that were hashed or sealed with a key
 * @throws LockgateError `key-missing` if a key is in use but its file is missing, `bad-key` if the file does not hold a
 * key, `wrong-key` if the file holds another key than the store's
 */
export function openKeys(
  folder: string,
  isInUse: boolean,
  { file: fileSetting, metadata = NO_METADATA }: KeyOptions = {},
): Keys {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = keyFileOf(folder, fileSetting);
  if (!existsSync(path.dirname(file)))
    throw new LockgateError('input-setting', `there is no folder ${path.dirname(file)} for the key's file`);
  finishKeyChange(file, metadata);
  if (isInUse && !existsSync(file))
    throw new LockgateError(
      'key-missing',
      `${file} is missing, and without it the store's secrets can't be used: restore it from a backup`,
    );
  // First without the sealed hashing key, which only the right key can unseal.
  const keys = new Keys(parseKey(readOrMakeSecretFile(file, makeKeyText), file), null);
  if (metadata.keyId !== null && keys.id !== metadata.keyId) throw wrongKey(file);
  try {
    if (metadata.sample !== null) keys.unseal(metadata.sample);
    return metadata.hashKeySealed === null
      ? keys
      : new Keys(parseKey(readSecretFile(file), file), metadata.hashKeySealed);
  } catch (error) {
    throw (error as LockgateError).code === 'wrong-key' ? wrongKey(file) : error;
  }
}

function wrongKey(file: string): LockgateError {
  return new LockgateError(
    'wrong-key',
    `${file} does not hold the key of this store: restore the right key from a backup`,
  );
}

/**
 * Completes an interrupted change of the key if the store recorded the new key's id, which changes in one commit with
 * the secrets; else deletes the new key.
 */
function finishKeyChange(file: string, { keyId }: KeyMetadata): void {
  const newFile = nextKeyFile(file);
  if (!existsSync(newFile)) return;
  const newId = keyId === null ? null : new Keys(parseKey(readSecretFile(newFile), newFile)).id;
  if (keyId !== null && newId === keyId) moveSecretFile(newFile, file);
  else deleteSecretFile(newFile);
}

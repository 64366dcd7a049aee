/**
 * The data folder's key, and what is derived from it: one key to hash locks' secrets with, one to seal webhook secrets
 * with. The key lives beside the data (mode 600) and is made at the first start. Whoever has the store alone, a copied
 * backup say, can neither test guesses of a lock's secret nor sign webhooks.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { LockgateError } from '../proto/errors.js';
import { readOrMakeSecretFile } from './secret-file.js';

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';

/** A lock's secret: 24 random bytes, so that guessing is hopeless and a fast keyed hash is enough (quality.md §2). */
const SECRET_BYTES = 24;
const SECRET_PREFIX = 'lgs_';
/** A phone credential is as long, and says by its beginning that it is no lock's. */
const PHONE_PREFIX = 'lgp_';

export class Keys {
  readonly #hashing: Buffer;
  readonly #sealing: Buffer;

  constructor(master: Buffer) {
    this.#hashing = Buffer.from(hkdfSync('sha256', master, '', 'lockgate device secrets', KEY_BYTES));
    this.#sealing = Buffer.from(hkdfSync('sha256', master, '', 'lockgate webhook secrets', KEY_BYTES));
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
      throw new LockgateError('wrong-key', 'a webhook secret was sealed with another key than this data folder has', {
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

/**
 * Reads the key of a data folder, making it where it isn't there and nothing rests on one yet.
 *
 * @param isInUse whether the store has secrets that were hashed or sealed with a key
 * @throws LockgateError `key-missing` where one is in use and not there, `bad-key` where the file does not hold a key
 */
export function openKeys(folder: string, isInUse: boolean): Keys {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = path.join(folder, 'key');
  if (isInUse && !existsSync(file))
    throw new LockgateError(
      'key-missing',
      `${file} is missing, and no lock's and no webhook's secret is of use without it: put it back from a backup`,
    );
  const text = readOrMakeSecretFile(file, () => randomBytes(KEY_BYTES).toString('base64'));
  const master = Buffer.from(text, 'base64');
  if (master.length !== KEY_BYTES)
    throw new LockgateError('bad-key', `${file} holds no key: expected ${KEY_BYTES} bytes in base64`);
  return new Keys(master);
}

/**
 * The id of the key that seals (encrypts) the store's secrets, and changes of all secrets at once. The store itself has
 * no key: the caller passes functions that seal and unseal. Each method is one transaction, and resolves after it is on
 * the disk (fsynced).
 */
import type { Mac } from '../../../proto/wire/mac.js';

/** What the store records about its key, so that a start recognises the right key. */
export interface KeyMetadata {
  /**
   * Identifies the key without revealing it; null if the store was never opened with a key, or an older version wrote
   * it.
   */
  readonly keyId: string | null;
  /** The key that hashes credentials, sealed; null if it is derived from the key that seals the secrets. */
  readonly hashKeySealed: Buffer | null;
  /** Any sealed secret, to test the key with; null if there is none. */
  readonly sample: Buffer | null;
}

/** The names of the metadata entries for {@link KeyMetadata}. */
export const KEY_ID_METADATA = 'key-id';
export const HASH_KEY_METADATA = 'hash-key';

/** Replacements for everything that was sealed with a lost key. */
export interface ForgetRequest {
  /** The id of the new key. */
  readonly keyId: string;
  /** Returns a new random secret, sealed; called for each URL. */
  readonly makeSealedSecret: () => Buffer;
  /** Why the URLs are disabled, as a sentence. */
  readonly disabledWhy: string;
  readonly nowMs: number;
}

/** What needs a new secret after the old secrets were discarded. */
export interface ForgottenSecrets {
  readonly urls: readonly {
    readonly id: number;
    readonly merchant: string;
    readonly url: string;
    /** The names of the headers whose values were discarded. */
    readonly headers: readonly string[];
  }[];
  readonly locks: readonly Mac[];
  readonly phones: readonly { readonly mac: Mac; readonly name: string }[];
  /** Who had a notify URL: the merchants' names, and null for the operators. */
  readonly notified: readonly (string | null)[];
  /** API keys, by their public ids. */
  readonly apiKeys: readonly { readonly id: string; readonly merchant: string; readonly name: string }[];
}

export interface SecretStore {
  readKeyMetadata(): Promise<KeyMetadata>;
  /** Records that the store's secrets are sealed with this key, and that the hashing key is derived from it. */
  recordKeyId(keyId: string): Promise<void>;
  /** Seals the custom headers' values that an older version left unencrypted; returns how many URLs had such values. */
  sealPlaintextHeaders(seal: (value: string) => Buffer): Promise<number>;
  /** Seals every secret with another key; returns the number of secrets. */
  reseal(resealOne: (sealed: Buffer) => Buffer, key: { keyId: string; hashKeySealed: Buffer }): Promise<number>;
  /**
   * Discards every secret and what depends on secrets: disables URLs, revokes credentials and API keys, and removes
   * merchants' notify URLs.
   */
  forget(request: ForgetRequest): Promise<ForgottenSecrets>;
}

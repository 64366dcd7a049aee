/**
 * Which key the store's secrets are sealed with, and changes of all secrets at once. The store has no key: the caller
 * passes functions that seal and unseal. Each method is one transaction; resolved = fsynced.
 */
import type { Mac } from '../../../proto/wire/mac.js';

/** How a start recognises the right key. */
export interface KeyMetadata {
  /** Identifies the key without revealing it; null in a store that was never opened with one, or is older. */
  readonly keyId: string | null;
  /** The key that credentials are hashed with, sealed, where it isn't derived from the key itself. */
  readonly hashKeySealed: Buffer | null;
  /** Any secret that is sealed; null where there is none. */
  readonly sample: Buffer | null;
}

/** The names of the metadata. */
export const KEY_ID_METADATA = 'key-id';
export const HASH_KEY_METADATA = 'hash-key';

/** What replaces everything that was sealed with a lost key. */
export interface Forgetting {
  readonly keyId: string;
  /** A sealed secret that nobody knows, for each URL. */
  readonly unknownSecret: () => Buffer;
  /** Why its URLs are disabled, for people. */
  readonly disabledWhy: string;
  readonly nowMs: number;
}

/** Who needs a new secret once the old ones are given up. */
export interface Forgotten {
  readonly urls: readonly {
    readonly id: number;
    readonly merchant: string;
    readonly url: string;
    /** The names of the headers whose values are lost. */
    readonly headers: readonly string[];
  }[];
  readonly locks: readonly Mac[];
  readonly phones: readonly { readonly mac: Mac; readonly name: string }[];
  /** API keys, by their public ids. */
  readonly apiKeys: readonly { readonly id: string; readonly merchant: string; readonly name: string }[];
}

export interface SecretStore {
  readKeyMetadata(): Promise<KeyMetadata>;
  /** Records that the store's secrets are sealed with this key, and that its hash key is derived from it. */
  noteKeyId(keyId: string): Promise<void>;
  /** Seals the header values that an older version left in clear; returns how many URLs had some. */
  sealClearHeaders(seal: (value: string) => Buffer): Promise<number>;
  /** Seals every secret with another key; returns how many there were. */
  reseal(reseal: (sealed: Buffer) => Buffer, key: { keyId: string; hashKeySealed: Buffer }): Promise<number>;
  /** Gives up every secret and what depends on one: disables URLs, revokes credentials and API keys. */
  forget(forgetting: Forgetting): Promise<Forgotten>;
}

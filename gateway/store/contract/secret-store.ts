/**
 * What the store knows of the key that its secrets are under, and what is done to all of them at once. The store has no
 * key: whoever calls brings what seals and unseals. Each of these is one transaction; resolved = fsynced.
 */
import type { Mac } from '../../../proto/wire/mac.js';

/** What a start goes by to find the right key. */
export interface KeyMetadata {
  /** Names the key without telling it; null in a store that was never opened with one, or by an older version. */
  readonly keyId: string | null;
  /** The key that credentials are hashed with, sealed, where it isn't derived from the key itself. */
  readonly hashKeySealed: Buffer | null;
  /** Any secret that is sealed; null where there is none. */
  readonly sample: Buffer | null;
}

/** The names of the facts. */
export const KEY_ID_METADATA = 'key-id';
export const HASH_KEY_METADATA = 'hash-key';

/** What is put in place of all that was under a key which is lost. */
export interface Forgetting {
  readonly keyId: string;
  /** A sealed secret that nobody knows, for each URL. */
  readonly unknownSecret: () => Buffer;
  /** Why its URLs are disabled, for people. */
  readonly disabledWhy: string;
  readonly nowMs: number;
}

/** Who needs a new secret once the old ones are forgotten. */
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
  /** The store is under this key, and what it hashes with is derived from it. */
  noteKeyId(keyId: string): Promise<void>;
  /** Seals the header values that an older version left in clear; answers how many URLs had some. */
  sealClearHeaders(seal: (value: string) => Buffer): Promise<number>;
  /** Puts every sealed secret under another key; answers how many there were. */
  reseal(reseal: (sealed: Buffer) => Buffer, key: { keyId: string; hashKeySealed: Buffer }): Promise<number>;
  /** Gives up every secret, and all that rests on one: URLs are disabled, credentials and API keys revoked. */
  forget(forgetting: Forgetting): Promise<Forgotten>;
}

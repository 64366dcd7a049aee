/**
 * Opens the key of a store at every start: finds the right key or refuses the start, and encrypts what an older version
 * left unencrypted.
 */
import type { Store } from '../store/contract/store.js';
import { type Keys, openKeys } from './keys.js';

/** The paths of a gateway's data and key. */
export interface SecretPaths {
  readonly data: string;
  /** The key's file; null for `key` in the data folder. */
  readonly keyFile: string | null;
}

/**
 * Returns the store's keys. Once resolved, the store's files have no unencrypted custom header of webhook requests.
 *
 * @throws LockgateError `key-missing`, `bad-key`, `wrong-key`
 */
export async function openSecrets(store: Store, { data, keyFile }: SecretPaths): Promise<Keys> {
  const recorded = await store.secrets.readKeyMetadata();
  // Each recipient of notifications has a sealed (encrypted) secret, as merchants have.
  const hasRecipients = (await store.notifications.readRecipients()).length > 0;
  const isInUse = hasRecipients || (await store.listMerchants()).length > 0;
  // While nothing depends on a key, any key is accepted, and a record of another key is ignored, and replaced below.
  const metadata = isInUse ? recorded : { keyId: null, hashKeySealed: null, sample: null };
  const keys = openKeys(data, isInUse, { file: keyFile, metadata });
  // An ignored record may also have a hashing key, sealed by `secrets rotate-key`. These keys don't use it, so it must
  // go: a record of the key alone replaces it.
  if (keys.id !== recorded.keyId || metadata.hashKeySealed !== recorded.hashKeySealed)
    await store.secrets.recordKeyId(keys.id);
  const sealed = await store.secrets.sealPlaintextHeaders((value) => keys.seal(value));
  // The overwritten text is no longer in the store's file, but still in its write-ahead log (WAL).
  if (sealed > 0) await store.scrub();
  return keys;
}

/**
 * Opens the key of a store at every start: finds the right one or refuses the start, and seals what an older version
 * left unencrypted.
 */
import type { Store } from '../store/contract/store.js';
import { type Keys, openKeys } from './keys.js';

/** The paths of a gateway's data and key. */
export interface SecretPlace {
  readonly data: string;
  /** The key's file; null where it is `key` in the data folder. */
  readonly keyFile: string | null;
}

/**
 * The store's keys. Once resolved, no header of a webhook URL is in clear in the store's files.
 *
 * @throws LockgateError `key-missing`, `bad-key`, `wrong-key`
 */
export async function openSecrets(store: Store, { data, keyFile }: SecretPlace): Promise<Keys> {
  const known = await store.secrets.readKeyMetadata();
  const isInUse = (await store.listMerchants()).length > 0;
  // Where nothing depends on a key yet, any will do, and a note about another one is dropped.
  const facts = isInUse ? known : { keyId: null, hashKeySealed: null, sample: null };
  const keys = openKeys(data, isInUse, { file: keyFile, facts });
  if (keys.id !== known.keyId || facts.hashKeySealed !== known.hashKeySealed) await store.secrets.noteKeyId(keys.id);
  const sealed = await store.secrets.sealClearHeaders((value) => keys.seal(value));
  // The overwritten text is no longer in the store's file, but still in its WAL.
  if (sealed > 0) await store.scrub();
  return keys;
}

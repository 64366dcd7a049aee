/**
 * A store and its key brought together, at every start: the right key is found, or the start is refused, and what an
 * older version left in clear is sealed.
 */

import type { Store } from '../store/contract/store.js';
import { type Keys, openKeys } from './keys.js';

/** Where the data and the key of a gateway are. */
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
  // Where nothing rests on a key yet, any will do, and what is noted of another is forgotten.
  const facts = isInUse ? known : { keyId: null, hashKeySealed: null, sample: null };
  const keys = openKeys(data, isInUse, { file: keyFile, facts });
  if (keys.id !== known.keyId || facts.hashKeySealed !== known.hashKeySealed) await store.secrets.noteKeyId(keys.id);
  const sealed = await store.secrets.sealClearHeaders((value) => keys.seal(value));
  // What was overwritten is out of the file, and not yet out of its log.
  if (sealed > 0) await store.scrub();
  return keys;
}

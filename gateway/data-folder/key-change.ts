/**
 * Changes the key of a store, or replaces a lost key. Runs only while no gateway is running on the data folder.
 *
 * The change may be interrupted after any step. The new key is on disk before anything is encrypted with it. One commit
 * changes the secrets and the recorded id of their key. Only then does the new key replace the old key. A start in
 * between finds both keys and uses the key with the recorded id (keys.ts).
 */
import { existsSync } from 'node:fs';
import { type Clock, systemClock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { AuditDetails } from '../audit/audit.js';
import type { AuditWho } from '../store/contract/operators/audit-store.js';
import type { ForgottenSecrets } from '../store/contract/secret-store.js';
import type { Store } from '../store/contract/store.js';
import { makeWebhookSecret } from '../webhooks/payload/signature.js';
import { workOnFolder } from './data-folder.js';
import { Keys, keyFileOf, makeKeyText, nextKeyFile, openKeys, parseKey } from './keys.js';
import { copySecretFile, moveSecretFile, readSecretFile, writeSecretFile } from './secret-file.js';
import { openSecrets, type SecretPaths } from './secrets.js';

/** A finished step, reported so that tests can interrupt the change after it. */
export type KeyChangeStep = 'key-made' | 'secrets-changed' | 'key-in-place';

export interface KeyChangeOptions {
  readonly clock?: Clock;
  readonly onStep?: (step: KeyChangeStep) => void;
  /** Who changes the key, for the audit log. */
  readonly who?: AuditWho;
  /** Called with a sentence after file modes were corrected: other users could read files of the folder. */
  readonly onModesCorrected?: (sentence: string) => void;
}

const DISABLED_WHY = 'its secret was lost with the key: give it a new one, and its headers, and enable it';

/**
 * Encrypts all secrets of a store with a new key. Credentials of locks and phones, API keys, tokens and sessions stay
 * valid: their hashing key does not change, and is encrypted with the new key.
 *
 * @returns how many secrets and header values were re-encrypted, and the key's file
 * @throws LockgateError `data-in-use` while a gateway runs; `key-missing`, `bad-key`, `wrong-key`
 */
export async function rotateKey(
  paths: SecretPaths,
  options: KeyChangeOptions = {},
): Promise<{ count: number; file: string }> {
  const file = keyFileOf(paths.data, paths.keyFile);
  const auditDetails = ({ count }: { readonly count: number }): AuditDetails => ({ secrets: count });
  return await workOnFolder(paths.data, { ...options, action: 'secrets.rotate-key', auditDetails }, async (store) => {
    const keys = await openSecrets(store, paths);
    let count = 0;
    await changeKey(file, options, async (newKeys) => {
      const hashKeySealed = keys.sealHashKey(newKeys);
      const change = { keyId: newKeys.id, hashKeySealed };
      count = await store.secrets.reseal((sealed) => newKeys.seal(keys.unseal(sealed)), change);
      // Removes what the old key had encrypted from the files.
      await store.scrub();
    });
    return { count, file };
  });
}

/**
 * Replaces a lost key by a new key and discards everything that was encrypted with the lost key. URLs are disabled, so
 * that nothing is sent with a signature that the merchant can't check; their events are retained. Credentials of locks
 * and phones and API keys are revoked, since they can't be checked any more. Users must log in again.
 *
 * @returns who needs a new secret
 * @throws LockgateError `data-in-use` while a gateway runs; `key-fits` if the key is not lost
 */
export async function forgetSecrets(paths: SecretPaths, options: KeyChangeOptions = {}): Promise<ForgottenSecrets> {
  const file = keyFileOf(paths.data, paths.keyFile);
  const { clock = systemClock } = options;
  const auditDetails = ({ urls, locks, phones, apiKeys }: ForgottenSecrets): AuditDetails => {
    return { webhooks: urls.length, locks: locks.length, phones: phones.length, api_keys: apiKeys.length };
  };
  return await workOnFolder(paths.data, { ...options, action: 'secrets.forget', auditDetails }, async (store) => {
    if (await hasStoreKey(store, paths))
      throw new LockgateError('key-fits', `${file} is this store's key: nothing is lost`);
    const forgotten: ForgottenSecrets[] = [];
    // The file may hold another store's key. It is copied, since the new key will replace it.
    if (existsSync(file)) copySecretFile(file, `${file}.of-another-store`);
    await changeKey(file, options, async (newKeys) => {
      // A URL must have a secret. Nobody learns this one.
      const makeSealedSecret = (): Buffer => newKeys.seal(makeWebhookSecret());
      const nowMs = clock.now();
      forgotten.push(
        await store.secrets.forget({ keyId: newKeys.id, makeSealedSecret, disabledWhy: DISABLED_WHY, nowMs }),
      );
      await store.scrub();
    });
    // `changeKey` has filled the list, or has thrown.
    return forgotten[0] as ForgottenSecrets;
  });
}

/** Runs the steps of a change, in order. */
async function changeKey(
  file: string,
  { onStep = () => undefined }: KeyChangeOptions,
  changeSecrets: (newKeys: Keys) => Promise<void>,
): Promise<void> {
  const newFile = nextKeyFile(file);
  writeSecretFile(newFile, makeKeyText());
  onStep('key-made');
  await changeSecrets(new Keys(parseKey(readSecretFile(newFile), newFile)));
  onStep('secrets-changed');
  moveSecretFile(newFile, file);
  onStep('key-in-place');
}

/** Whether the key file holds this store's key. Also completes an interrupted change. */
async function hasStoreKey(store: Store, { data, keyFile }: SecretPaths): Promise<boolean> {
  try {
    openKeys(data, true, { file: keyFile, metadata: await store.secrets.readKeyMetadata() });
    return true;
  } catch (error) {
    if (error instanceof LockgateError && ['key-missing', 'bad-key', 'wrong-key'].includes(error.code)) return false;
    throw error;
  }
}

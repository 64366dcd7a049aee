/**
 * Another key for a store, made by whoever owns its folder while no gateway runs on it.
 *
 * The order of the steps makes each of them safe to be cut off after: the new key is on the disk before anything is
 * under it, the secrets and the note of which key they are under change in one commit, and only then does the new key
 * take the old one's place. A start in between finds both keys and goes by the note (keys.ts).
 */
import { existsSync } from 'node:fs';
import { type Clock, systemClock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { AuditFacts } from '../audit/audit.js';
import type { AuditWho } from '../store/contract/audit-store.js';
import type { Forgotten } from '../store/contract/secret-store.js';
import type { Store } from '../store/contract/store.js';
import { makeWebhookSecret } from '../webhooks/payload/signature.js';
import { workOnFolder } from './data-folder.js';
import { Keys, keyFileOf, makeKeyText, nextKeyFile, openKeys, parseKey } from './keys.js';
import { keepSecretFile, makeSecretFile, moveSecretFile, readSecretFile } from './secret-file.js';
import { openSecrets, type SecretPlace } from './secrets.js';

/** What was just done; told so that tests can cut it off there. */
export type KeyChangeStep = 'key-made' | 'secrets-changed' | 'key-in-place';

export interface KeyChangeOptions {
  readonly clock?: Clock;
  readonly onStep?: (step: KeyChangeStep) => void;
  /** Who does so, for the audit log. */
  readonly who?: AuditWho;
  /** Told a sentence where files of the folder could be read by others. */
  readonly onMended?: (sentence: string) => void;
}

const DISABLED_WHY = 'its secret was lost with the key: give it a new one, and its headers, and enable it';

/**
 * Puts all secrets of a store under a new key. Locks, phones, API keys, tokens and sessions keep theirs: the key that
 * those are hashed with stays, under the new one.
 *
 * @returns how many secrets and header values were encrypted anew, and the key's file
 * @throws LockgateError `data-in-use` while a gateway runs; `key-missing`, `bad-key`, `wrong-key`
 */
export async function rotateKey(
  place: SecretPlace,
  options: KeyChangeOptions = {},
): Promise<{ count: number; file: string }> {
  const file = keyFileOf(place.data, place.keyFile);
  const facts = ({ count }: { readonly count: number }): AuditFacts => ({ secrets: count });
  return await workOnFolder(place.data, { ...options, action: 'secrets.rotate-key', facts }, async (store) => {
    const keys = await openSecrets(store, place);
    let count = 0;
    await changeKey(file, options, async (next) => {
      const hashKeySealed = keys.sealHashKey(next);
      const change = { keyId: next.id, hashKeySealed };
      count = await store.secrets.reseal((sealed) => next.seal(keys.unseal(sealed)), change);
      await store.scrub();
    });
    return { count, file };
  });
}

/**
 * Goes on without a key that is lost: a new one is made, and whatever was under the old one is given up. URLs are
 * disabled, so that nothing leaves under a signature that its merchant can't check, and their events are kept;
 * credentials of locks and phones and API keys are revoked, since none of them could be checked; users log in anew.
 *
 * @returns who needs a new secret
 * @throws LockgateError `data-in-use` while a gateway runs; `key-fits` where the key is there
 */
export async function forgetSecrets(place: SecretPlace, options: KeyChangeOptions = {}): Promise<Forgotten> {
  const file = keyFileOf(place.data, place.keyFile);
  const { clock = systemClock } = options;
  const facts = ({ urls, locks, phones, apiKeys }: Forgotten): AuditFacts => {
    return { webhooks: urls.length, locks: locks.length, phones: phones.length, api_keys: apiKeys.length };
  };
  return await workOnFolder(place.data, { ...options, action: 'secrets.forget', facts }, async (store) => {
    if (await fits(store, place)) throw new LockgateError('key-fits', `${file} is this store's key: nothing is lost`);
    const forgotten: Forgotten[] = [];
    // What is there instead may be another store's: it is kept, before a start can put the new key in its place.
    if (existsSync(file)) keepSecretFile(file, `${file}.of-another-store`);
    await changeKey(file, options, async (next) => {
      const unknownSecret = (): Buffer => next.seal(makeWebhookSecret());
      const nowMs = clock.now();
      forgotten.push(await store.secrets.forget({ keyId: next.id, unknownSecret, disabledWhy: DISABLED_WHY, nowMs }));
      await store.scrub();
    });
    return forgotten[0] as Forgotten;
  });
}

/** The steps, in their order. */
async function changeKey(
  file: string,
  { onStep = () => undefined }: KeyChangeOptions,
  changeSecrets: (next: Keys) => Promise<void>,
): Promise<void> {
  const nextFile = nextKeyFile(file);
  makeSecretFile(nextFile, makeKeyText());
  onStep('key-made');
  await changeSecrets(new Keys(parseKey(readSecretFile(nextFile), nextFile)));
  onStep('secrets-changed');
  moveSecretFile(nextFile, file);
  onStep('key-in-place');
}

/** Whether the key at hand is the store's. A change that was cut short is brought to its end on the way. */
async function fits(store: Store, { data, keyFile }: SecretPlace): Promise<boolean> {
  try {
    openKeys(data, true, { file: keyFile, facts: await store.secrets.readKeyMetadata() });
    return true;
  } catch (error) {
    if (error instanceof LockgateError && ['key-missing', 'bad-key', 'wrong-key'].includes(error.code)) return false;
    throw error;
  }
}

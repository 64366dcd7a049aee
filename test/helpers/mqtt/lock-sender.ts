/**
 * Makes the sender (the identity) of a lock's uplinks (messages), for tests that give them to ingest without a broker.
 */
import type { Sender } from '../../../gateway/ingest/ingest.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import type { Mac } from '../../../proto/wire/mac.js';

/** The lock as a sender, with its newest credential. @throws Error if there is no such lock */
export async function lockSender(store: Store, mac: Mac): Promise<Sender> {
  const account = await store.findLock(mac);
  const credential = account?.credentials[0];
  if (account === null || credential === undefined) throw new Error('the lock that was added is not there');
  const { deviceId, merchantId, simulated } = account;
  return { deviceId, merchantId, credentialId: credential.id, mac, simulated, source: 'lock' };
}

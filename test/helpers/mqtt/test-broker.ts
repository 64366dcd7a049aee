/** A broker with a store and a merchant, without the other parts of a gateway, for tests of the broker itself. */

import type { BrokerOptions } from '../../../gateway/mqtt/broker-options.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { memoryFolder, type Teardown } from '../store/temp-folder.js';
import { startBrokerParts } from './broker-parts.js';

/** Starts the parts; they are closed after the test. */
export async function startTestBroker(test: Teardown, options: Partial<BrokerOptions> = {}) {
  const { broker, events, store, keys, stop } = await startBrokerParts({ data: memoryFolder(test), broker: options });
  test.teardown(stop);
  const merchant = await store.addMerchant('Amber', 0);
  /** Adds a lock. Returns its credentials. */
  const addLock = async (mac: Mac): Promise<{ user: Mac; secret: string }> => {
    const secret = `lgs_${mac}`;
    const secretHash = keys.hashSecret(secret);
    await store.addDevice({ mac, merchant: merchant.name, simulated: false, secretHash, nowMs: 0 });
    return { user: mac, secret };
  };
  return { broker, events, store, addLock };
}

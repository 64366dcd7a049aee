/** A broker, the store and the judge behind it, without the rest of a gateway: for tests that need its inside. */

import { GatewayEvents } from '../../gateway/events.js';
import { Ingest } from '../../gateway/ingest.js';
import { openKeys } from '../../gateway/keys.js';
import { Locks } from '../../gateway/locks.js';
import { Broker, type BrokerOptions } from '../../gateway/mqtt/broker.js';
import { openSqliteStore } from '../../gateway/store/sqlite-store.js';
import { Usage } from '../../gateway/usage/usage.js';
import { systemClock } from '../../proto/clock.js';
import type { Mac } from '../../proto/mac.js';
import { NO_COMMANDS } from './no-commands.js';
import { type Teardown, tempFolder } from './temp-folder.js';

/** Starts one; it is closed after the test. */
export async function brokerSite(test: Teardown, options: Partial<BrokerOptions> = {}) {
  const data = tempFolder(test);
  const store = await openSqliteStore(data);
  const keys = openKeys(data, false);
  const events = new GatewayEvents();
  const locks = new Locks(store, systemClock, () => undefined);
  const ingest = new Ingest({
    store,
    locks,
    commands: NO_COMMANDS,
    clock: systemClock,
    events,
    onStored: () => undefined,
  });
  const usage = await Usage.start({ store, clock: systemClock, runClock: systemClock, events });
  const merchant = await store.addMerchant('Amber', 0);
  const broker = await Broker.start({
    host: '127.0.0.1',
    port: 0,
    store,
    keys,
    ingest,
    usage,
    events,
    clock: systemClock,
    wallClock: systemClock,
    ...options,
  });
  test.teardown(async () => {
    await broker.close();
    await ingest.stop();
    locks.stop();
    await usage.stop();
    await store.close();
  });
  /** Adds a lock; what it says of itself. */
  const addLock = async (mac: Mac): Promise<{ user: Mac; secret: string }> => {
    const secret = `lgs_${mac}`;
    const secretHash = keys.hashSecret(secret);
    await store.addDevice({ mac, merchant: merchant.name, simulated: false, secretHash, nowMs: 0 });
    return { user: mac, secret };
  };
  return { broker, events, store, addLock };
}

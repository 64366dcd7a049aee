/**
 * A broker with the parts of a gateway that process its uplinks (locks' messages): store, ingest, states, usage.
 * They are connected as in gateway.ts; webhooks, commands and HTTP are left out. For tests that need access to these
 * parts.
 */

import { openKeys } from '../../../gateway/data-folder/keys.js';
import { GatewayEvents } from '../../../gateway/events.js';
import { Ingest } from '../../../gateway/ingest/ingest.js';
import { Locks } from '../../../gateway/locks/locks.js';
import { Broker } from '../../../gateway/mqtt/broker.js';
import type { BrokerOptions } from '../../../gateway/mqtt/broker-options.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { Usage } from '../../../gateway/usage/usage.js';
import { type Clock, systemClock } from '../../../proto/clock.js';
import { NO_COMMANDS } from '../commands/no-commands.js';
import { openStore } from '../store/new-store.js';

/** `data` is the data folder; `broker` replaces options of the broker. */
export interface BrokerPartsOptions {
  readonly data: string;
  /** The clock of months and bills. */
  readonly usageClock?: Clock;
  readonly wrapStore?: (store: Store) => Store;
  readonly broker?: Partial<BrokerOptions>;
}

/** Starts the parts on a folder that may have data already; `stop` stops all of them. */
export async function startBrokerParts({ data, usageClock, wrapStore, broker: options }: BrokerPartsOptions) {
  const opened = await openStore(data);
  const store = wrapStore?.(opened) ?? opened;
  // So openKeys makes a key if the folder has none.
  const isKeyInUse = false;
  const keys = openKeys(data, isKeyInUse);
  const events = new GatewayEvents();
  const locks = new Locks(store, systemClock, () => undefined);
  const onStored = (): void => undefined;
  const ingest = new Ingest({ store, locks, commands: NO_COMMANDS, clock: systemClock, events, onStored });
  const usage = await Usage.start({ store, clock: usageClock ?? systemClock, runClock: systemClock, events });
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
  const stop = async (): Promise<void> => {
    await broker.close();
    await ingest.stop();
    locks.stop();
    await usage.stop();
    await store.close();
  };
  return { store, keys, events, locks, ingest, usage, broker, stop };
}

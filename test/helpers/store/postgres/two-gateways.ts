/** The stores of two gateways that share a PostgreSQL database. */
import type { Store } from '../../../../gateway/store/contract/store.js';
import type { WebhookFilter } from '../../../../gateway/store/contract/webhooks/webhook-filter.js';
import type { WebhookUrl } from '../../../../gateway/store/contract/webhooks/webhook-url.js';
import { openPostgresStore } from '../../../../gateway/store/postgres/open-postgres-store.js';
import { commit, HASH, uplink, withLock } from '../../../gateway/store/contract/contract-store.js';
import { testMac } from '../../gateway/test-gateway.js';
import type { Teardown } from '../temp-folder.js';
import type { TestDatabases } from './test-database.js';

const NEW_URL = { headersSealed: {}, secretSealed: HASH, nowMs: 7, url: 'http://receiver/' };

/** One of the two gateways, and its lock. */
export type Gateway = 0 | 1;

export class TwoGateways {
  /** The database's URL. */
  readonly url: string;
  readonly stores: readonly [Store, Store];
  readonly #databases: TestDatabases;

  private constructor(url: string, stores: readonly [Store, Store], databases: TestDatabases) {
    this.url = url;
    this.stores = stores;
    this.#databases = databases;
  }

  /**
   * Opens both on a new database, with a lock for each gateway (id 1 and 2), and two merchants: Amber (id 1), whose the
   * locks are, and Basil (id 2), who has the webhook URL 1.
   */
  static async open(test: Teardown, databases: TestDatabases): Promise<TwoGateways> {
    const open = async (folder: string) => await openPostgresStore(await databases.urlOf(folder), { isShared: true });
    const { store: first, folder } = await withLock(test, open);
    await first.addDevice({ mac: testMac(2), merchant: 'Amber', simulated: true, secretHash: HASH, nowMs: 6 });
    const second = await open(folder);
    test.teardown(() => second.close());
    await first.addMerchant('Basil', 5);
    await first.addWebhookUrl({ ...NEW_URL, merchant: 'Basil' });
    return new TwoGateways(await databases.urlOf(folder), [first, second], databases);
  }

  /** Stores an uplink of a gateway's lock. @param merchantId whose the lock was when it sent it */
  async put(gateway: Gateway, sequence: number, receivedAtMs: number, merchantId = 1): Promise<void> {
    const lock = { deviceId: gateway + 1, credentialId: gateway + 1 };
    await this.stores[gateway].append(commit(uplink(sequence, { ...lock, merchantId, receivedAtMs })));
  }

  /** Adds a webhook URL of Amber's. */
  async addUrl(filter?: WebhookFilter): Promise<WebhookUrl> {
    return await this.stores[0].addWebhookUrl({ ...NEW_URL, merchant: 'Amber', ...(filter && { filter }) });
  }

  /** Runs a statement in the database. */
  async query(sql: string): Promise<readonly Record<string, unknown>[]> {
    const server = await this.#databases.server();
    return await server.query(new URL(this.url).pathname.slice(1), sql);
  }
}

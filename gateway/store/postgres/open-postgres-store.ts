/** Opens a store in PostgreSQL: checks the server, brings the schema to this version, claims a slot. */
import { systemClock } from '../../../proto/clock.js';
import { DEFAULT_QUOTA } from '../contract/merchants/quota.js';
import type { Store } from '../contract/store.js';
import type { StoreOptions } from '../contract/store-options.js';
import { shownStoreUrl } from '../store-url.js';
import { Kysely, PostgresDialect } from '../tables/kysely.js';
import type { Tables } from '../tables/schema.js';
import { connectFailure } from './connections/connect-failure.js';
import { Connections, findServer } from './connections/connections.js';
import { readServerFacts, serverWarnings } from './connections/server-warnings.js';
import { CommitLog } from './log/commit-log.js';
import { migrate } from './migrate.js';
import { claimSlot } from './node-claim.js';
import { SharedOwnership } from './owners/shared-ownership.js';
import { PartitionKeeper } from './partitions.js';
import { PostgresStore } from './postgres-store.js';
import { refuseUnfinishedMove } from './unfinished-move.js';
import { Writes } from './writes.js';

/** The version of this program in the row of its slot. */
const VERSION = '1';

/**
 * Opens the store.
 *
 * @param url `postgres://USER:PASSWORD@HOST:PORT/DATABASE`
 * @throws LockgateError `store-unreachable`, `store-refused`, `store-unsafe`, `store-newer`, `store-foreign`,
 * `data-in-use`, `move-unfinished`
 */
export async function openPostgresStore(url: string, options: StoreOptions = {}): Promise<Store> {
  try {
    const server = await findServer(url);
    await migrate(url);
    const connections = new Connections(url, server);
    try {
      await refuseUnfinishedMove(connections.read);
      const claim = await claimSlot(connections, VERSION, options.isShared === true);
      for (const what of serverWarnings(await readServerFacts(claim.holder))) options.onWarning?.(what);
      const writes = new Writes(connections, claim);
      const partitions = new PartitionKeeper({
        run: (work) => writes.run('make partitions', work),
        clock: systemClock,
      });
      await partitions.start();
      const readTables = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: connections.reads }) });
      const commits = new CommitLog(connections, claim, await connections.open(), options.onTrouble);
      const { isShared = false, onTrouble = () => undefined } = options;
      const shared = isShared
        ? await SharedOwnership.start({ connections, claim, writes, commits, onTrouble })
        : undefined;
      const description = `PostgreSQL, ${shownStoreUrl(url)}, slot ${claim.slot}`;
      const quota = options.quota ?? DEFAULT_QUOTA;
      const parts = { description, connections, claim, writes, readTables, commits, quota, shared, partitions };
      const store = new PostgresStore(parts);
      await store.moveStagedEvents();
      return store;
    } catch (error) {
      await connections.close();
      throw error;
    }
  } catch (error) {
    throw connectFailure(error, url);
  }
}

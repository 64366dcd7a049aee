/**
 * The parts of the store that have ordinary tables of their own, such as commands, bills and notices. They share the
 * connections, the write mutex and the writes through the log's writer; none knows the others.
 */
import type { Database } from 'better-sqlite3';
import type { Quota } from '../../contract/merchants/quota.js';
import type { NotificationChange } from '../../contract/notify/notification-store.js';
import type { Kysely } from '../kysely.js';
import type { BatchedWrite } from '../log/batched-write.js';
import type { LogReader } from '../log/log-reader.js';
import type { UplinkLookup } from '../log/uplink-lookup.js';
import type { Tables } from '../schema.js';
import type { WriteMutex } from '../write-mutex.js';
import { SqliteAccess } from './access.js';
import { SqliteAudit } from './audit.js';
import { CommandTableStore } from './commands.js';
import { SqliteConsoleSessions } from './console-sessions.js';
import { SqliteInvitations } from './invitations.js';
import { SqliteNotices } from './notices.js';
import { SqliteNotifications } from './notify/notifications.js';
import { SqliteOperatorTokens } from './operator-tokens.js';
import { SqliteMerchants } from './people/merchants.js';
import { SqlitePeople, type WriteForMerchant } from './people.js';
import { SqliteRefusals } from './refusals.js';
import { SqliteSecrets } from './secrets.js';
import { SqliteUsage } from './usage.js';
import { SqliteWebhooks } from './webhooks/webhooks.js';
import { SqliteWhy } from './why.js';

/** What the parts are built of. */
interface TableStoreOptions {
  readonly writer: Database;
  readonly reader: Database;
  /** Statements of Kysely on the connection that writes. */
  readonly tables: Kysely<Tables>;
  /** The same on the connection that only reads. */
  readonly readTables: Kysely<Tables>;
  readonly mutex: WriteMutex;
  readonly logReader: LogReader;
  readonly lookup: UplinkLookup;
  readonly quota: Quota;
  /** Writes for a merchant, within its quota, through the log's writer. */
  readonly write: WriteForMerchant;
  readonly writeBatched: (action: string, write: BatchedWrite) => Promise<void>;
  /** Called after commands have ended, which stages events. */
  readonly onCommandEnded: () => Promise<void>;
}

/** Builds the parts of the store that have tables of their own. */
export function makeTableStores(options: TableStoreOptions) {
  const { mutex, tables, readTables, reader, quota, write, writeBatched } = options;
  const shared = { mutex, tables, readTables };
  const notifications = new SqliteNotifications(options);
  const queue = (changes: readonly NotificationChange[]): void => notifications.recordWithin(changes);
  return {
    commands: new CommandTableStore(mutex, tables, readTables, options.onCommandEnded),
    usage: new SqliteUsage({ ...shared, writeBatched }),
    webhooks: new SqliteWebhooks(options),
    access: new SqliteAccess({ ...shared, reader, write }),
    people: new SqlitePeople({ readTables, reader, write, quota }),
    merchants: new SqliteMerchants(shared),
    invitations: new SqliteInvitations({ reader, write, quota }),
    secrets: new SqliteSecrets(options),
    notifications,
    notices: new SqliteNotices({ ...shared, queue }),
    why: new SqliteWhy(reader, options.logReader, options.lookup),
    refusals: new SqliteRefusals({ readTables, writeBatched }),
    audit: new SqliteAudit(shared),
    operatorTokens: new SqliteOperatorTokens(shared),
    consoleSessions: new SqliteConsoleSessions(shared),
  };
}

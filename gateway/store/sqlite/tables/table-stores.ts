/**
 * The parts of the store beside the log, each with tables of its own, such as commands, bills and notices. They share
 * the connections, the write mutex and the writes through the log's writer; none knows the others.
 */
import type { Database } from 'better-sqlite3';
import type { Quota } from '../../contract/merchants/quota.js';
import type { NotificationChange } from '../../contract/notify/notification-store.js';
import { Audit } from '../../tables/audit.js';
import { CommandTableStore } from '../../tables/commands.js';
import { ConsoleSessions } from '../../tables/console-sessions.js';
import { Invitations } from '../../tables/invitations.js';
import type { Kysely } from '../../tables/kysely.js';
import type { WriteForMerchant } from '../../tables/merchant-refusals.js';
import { Merchants } from '../../tables/merchants.js';
import { Notices } from '../../tables/notices.js';
import { OperatorTokens } from '../../tables/operator-tokens.js';
import { Refusals } from '../../tables/refusals.js';
import type { Tables } from '../../tables/schema.js';
import { Usage } from '../../tables/usage.js';
import type { BatchedWrite } from '../log/batched-write.js';
import type { UplinkLookup } from '../log/uplink-lookup.js';
import type { Scans } from '../scan/scans.js';
import type { WriteMutex } from '../write-mutex.js';
import { SqliteAccess } from './access.js';
import { invitationReads } from './invitations.js';
import { SqliteNotifications } from './notify/notifications.js';
import { SqlitePeople } from './people.js';
import { SqliteSecrets } from './secrets.js';
import { SQLITE } from './sqlite-dialect.js';
import { changeUrl } from './webhooks/url-changes.js';
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
  readonly scans: Scans;
  readonly lookup: UplinkLookup;
  readonly quota: Quota;
  /** Writes for a merchant, within its quota, through the log's writer. */
  readonly write: WriteForMerchant;
  readonly writeBatched: (action: string, write: BatchedWrite) => Promise<void>;
  /** Called after commands have ended: moves the events that a trigger has staged for them into the log. */
  readonly onCommandEnded: () => Promise<void>;
}

/** Builds the parts of the store that have tables of their own. */
export function makeTableStores(options: TableStoreOptions) {
  const { mutex, tables, readTables, reader, quota, write, writeBatched } = options;
  const shared = { mutex, tables, readTables, dialect: SQLITE };
  const notifications = new SqliteNotifications(options);
  // `_db` is not needed: SqliteNotifications writes on the connection on which `_db` runs its transaction.
  const queue = (_db: Kysely<Tables>, changes: readonly NotificationChange[]): void =>
    notifications.recordInTransaction(changes);
  const enableUrl = (db: Kysely<Tables>, urlId: number) => changeUrl(db, urlId, { disabledWhy: null });
  return {
    commands: new CommandTableStore(shared, options.onCommandEnded),
    usage: new Usage({ ...shared, writeBatched }),
    webhooks: new SqliteWebhooks(options),
    access: new SqliteAccess({ ...shared, write }, reader),
    people: new SqlitePeople({ readTables, reader, write, quota }),
    merchants: new Merchants({ ...shared, enableUrl }),
    invitations: new Invitations({ reads: invitationReads(reader), write, quota }),
    secrets: new SqliteSecrets(options),
    notifications,
    notices: new Notices({ ...shared, queue }),
    why: new SqliteWhy(reader, options.scans, options.lookup),
    refusals: new Refusals({ readTables, writeBatched }),
    audit: new Audit(shared),
    operatorTokens: new OperatorTokens(shared),
    consoleSessions: new ConsoleSessions(shared),
  };
}

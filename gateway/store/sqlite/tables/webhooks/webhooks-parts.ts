/** What the classes for webhooks of the SQLite store are built with. `table-stores.ts` passes it. */
import type { Database } from 'better-sqlite3';
import type { Kysely } from 'kysely';
import type { Tables } from '../../../tables/schema.js';
import type { GuardedWriter } from '../../exclusive-write.js';
import type { BatchedWrite } from '../../log/batched-write.js';
import type { UplinkLookup } from '../../log/uplink-lookup.js';
import type { Scans } from '../../scan/scans.js';

export interface SqliteWebhooksParts extends GuardedWriter {
  readonly reader: Database;
  /** The connection of `writer`, for Kysely. */
  readonly tables: Kysely<Tables>;
  /** The connection of `reader`, for Kysely. */
  readonly readTables: Kysely<Tables>;
  readonly lookup: UplinkLookup;
  readonly scans: Scans;
  /** Writes through the log's writer. @throws StoreFailure */
  readonly writeBatched: (action: string, write: BatchedWrite) => Promise<void>;
}

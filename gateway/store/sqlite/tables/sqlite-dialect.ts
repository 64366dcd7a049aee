/** How SQLite's SQL differs in the tables that all engines share (../../tables/table-parts.ts). */
import { sql } from '../../tables/kysely.js';
import type { Dialect } from '../../tables/table-parts.js';

export const SQLITE: Dialect = {
  indexHint: (index) => sql.raw(`INDEXED BY ${index}`),
  // The newest of all locks will do: ids are given in order, so no uplink of the lock is newer.
  newestUplinkOf: () => sql<number>`(SELECT coalesce(max(id), 0) FROM uplink)`,
  lockUsage: undefined,
};

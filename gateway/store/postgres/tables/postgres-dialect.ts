/** What is PostgreSQL's own in the SQL of the tables that all engines share (../../tables/table-parts.ts). */
import { sql } from '../../tables/kysely.js';
import type { Dialect } from '../../tables/table-parts.js';

export const POSTGRES: Dialect = {
  indexHint: () => sql.raw(''),
  newestUplinkOf: (deviceId) => sql<number>`(SELECT coalesce(max(id), 0) FROM uplink WHERE device_id = ${deviceId})`,
  lockUsage: sql`LOCK TABLE usage IN SHARE ROW EXCLUSIVE MODE`,
};

/**
 * A lock's state is written now and then, and what came after it is judged again when it is loaded. So each says
 * through which uplink of the log it stands. Those that there are were written with every uplink: they lack nothing.
 */
import type { Migration } from 'kysely';
import { sql } from '../kysely.js';
import { keepRowSums } from '../row-sum-triggers.js';

export const statePlace: Migration = {
  up: async (db) => {
    await db.schema
      .alterTable('device_state')
      .addColumn('through_uplink_id', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute();
    await sql`UPDATE device_state SET through_uplink_id = (SELECT coalesce(max(id), 0) FROM uplink)`.execute(db);
    await keepRowSums(db, 'device_state');
  },
};

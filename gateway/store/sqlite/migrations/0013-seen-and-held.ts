/**
 * Of a webhook URL: how long it was seen to fail, and until when its receiver asked to be left alone. How long a URL
 * that fails was seen to do so before, nobody noted: it begins with nothing, which gives it more time and never less.
 */
import type { Migration } from 'kysely';
import { keepRowSums } from '../row-sum-triggers.js';

export const seenAndHeld: Migration = {
  up: async (db) => {
    await db.schema
      .alterTable('webhook_url')
      .addColumn('failing_for_ms', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute();
    for (const column of ['held_until_ms', 'held_for_ms'])
      await db.schema.alterTable('webhook_url').addColumn(column, 'bigint').execute();
    await keepRowSums(db, 'webhook_url');
  },
};

/**
 * Migration 0029: the ends of commands become events for merchants. A trigger stages each in the transaction that ends
 * the command, in whichever connection; the writer of the log then moves it into the log. In the log such an event has
 * the kind 4, and its content the members of `CommandContent` (contract/webhooks/merchant-event.ts). Shipped: must not
 * change.
 */
import type { Migration } from 'kysely';
import { sql } from '../../../tables/kysely.js';
import { maintainRowChecksums } from '../../row-checksum-triggers.js';

export const merchantEvents: Migration = {
  up: async (db) => {
    await db.schema
      .createTable('staged_event')
      .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
      .addColumn('device_id', 'integer', (column) => column.notNull())
      .addColumn('merchant_id', 'integer', (column) => column.notNull())
      .addColumn('kind', 'integer', (column) => column.notNull())
      .addColumn('at_ms', 'integer', (column) => column.notNull())
      .addColumn('content', 'text', (column) => column.notNull())
      .execute();
    await maintainRowChecksums(db, 'staged_event');
    await sql`CREATE TRIGGER command_outcome AFTER UPDATE OF state ON command
      WHEN NEW.state IS NOT OLD.state AND NEW.state IN ('done', 'rejected', 'failed', 'expired', 'cancelled')
        AND EXISTS (SELECT 1 FROM webhook_url w, json_each(w.filter, '$.events') e
          WHERE w.merchant_id = NEW.merchant_id AND e.value = 'command')
      BEGIN
        INSERT INTO staged_event (device_id, merchant_id, kind, at_ms, content)
        VALUES (NEW.device_id, NEW.merchant_id, 4, NEW.finished_at_ms, json_object('id', NEW.id, 'command', NEW.type,
          'parameters', json(NEW.parameters), 'state', NEW.state, 'detail', NEW.detail, 'askedBy', NEW.asked_by,
          'createdAtMs', NEW.created_at_ms, 'firstSentAtMs', NEW.first_sent_at_ms, 'sentCount', NEW.sent_count));
      END`.execute(db);
  },
};

/**
 * Migration 0024: the audit log names merchants' users and API keys. Existing entries name none. Three indexes: the
 * entries of a merchant; those made by merchants' users and keys, and all others, whose numbers are limited separately.
 * Shipped: must not change.
 */
import type { Migration } from 'kysely';
import { sql } from '../../../tables/kysely.js';
import { maintainRowChecksums } from '../../row-checksum-triggers.js';

export const auditPeople: Migration = {
  up: async (db) => {
    await db.schema.alterTable('audit').addColumn('merchant_id', 'bigint').execute();
    await db.schema.alterTable('audit').addColumn('user_name', 'text').execute();
    await db.schema.alterTable('audit').addColumn('key_name', 'text').execute();
    await maintainRowChecksums(db, 'audit');
    await sql`CREATE INDEX audit_merchant ON audit (merchant_id, id) WHERE merchant_id IS NOT NULL`.execute(db);
    await sql`CREATE INDEX audit_by_merchants ON audit (id) WHERE actor IN ('user', 'key')`.execute(db);
    await sql`CREATE INDEX audit_by_others ON audit (id) WHERE actor NOT IN ('user', 'key')`.execute(db);
  },
};

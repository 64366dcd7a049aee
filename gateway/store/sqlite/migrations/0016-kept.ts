/**
 * Migration 0016: counts of what each merchant stores, for quotas, and keys for comparing user names without regard to
 * case. Existing names that differ only in case stay: each of these users must type the exact spelling. Shipped: must
 * not change.
 */
import type { Migration } from 'kysely';
import { sql } from '../../tables/kysely.js';
import { maintainRowChecksums } from '../row-checksum-triggers.js';
import { quotaCountStatements } from '../tables/people/quota-counts.js';
import { USERNAME_KEY } from '../tables/people/username-key.js';

export const quotasAndUsernameKeys: Migration = {
  up: async (db) => {
    await db.schema.alterTable('user_account').addColumn('username_key', 'text').execute();
    await sql.raw(`UPDATE user_account SET username_key = ${USERNAME_KEY}(username)`).execute(db);
    await maintainRowChecksums(db, 'user_account');
    await db.schema
      .createIndex('user_account_by_key')
      .on('user_account')
      .columns(['merchant_id', 'username_key'])
      .execute();
    for (const statement of quotaCountStatements()) await sql.raw(statement).execute(db);
  },
};

/**
 * Migration 0006: merchants' data over HTTP: API keys and tokens, users with their sessions, pets. Ids of users may be
 * any int64, so their columns have 64 bits in every engine (people.ts). Shipped: must not change.
 */
import type { Kysely, Migration } from 'kysely';

type Schema = Kysely<unknown>;

async function createAccess(db: Schema): Promise<void> {
  await db.schema
    .createTable('api_key')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('merchant_id', 'integer', (column) => column.notNull().references('merchant.id'))
    .addColumn('public_id', 'text', (column) => column.notNull().unique())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('secret_hash', 'blob', (column) => column.notNull())
    .addColumn('created_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('last_used_at_ms', 'bigint')
    .addColumn('revoked_at_ms', 'bigint')
    .execute();
  await db.schema.createIndex('api_key_by_merchant').on('api_key').columns(['merchant_id', 'id']).execute();
  await db.schema
    .createTable('access_token')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('key_id', 'integer', (column) => column.notNull().references('api_key.id'))
    .addColumn('token_hash', 'blob', (column) => column.notNull().unique())
    .addColumn('scopes', 'text', (column) => column.notNull())
    .addColumn('expires_at_ms', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema.createIndex('access_token_by_key').on('access_token').columns(['key_id', 'id']).execute();
  await db.schema.createIndex('access_token_by_end').on('access_token').column('expires_at_ms').execute();
}

async function createUsers(db: Schema): Promise<void> {
  let table = db.schema
    .createTable('user_account')
    .addColumn('merchant_id', 'integer', (column) => column.notNull().references('merchant.id'))
    .addColumn('id', 'bigint', (column) => column.notNull());
  for (const member of ['username', 'first_name', 'last_name', 'email', 'phone', 'password_hash'])
    table = table.addColumn(member, 'text');
  await table
    .addColumn('user_status', 'integer')
    .addColumn('created_at_ms', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('user_account_key', ['merchant_id', 'id'])
    .execute();
  // Any number of users may have no name: in a unique index, a null equals no other null.
  await db.schema
    .createIndex('user_account_by_name')
    .unique()
    .on('user_account')
    .columns(['merchant_id', 'username'])
    .execute();
  await db.schema
    .createTable('user_session')
    .addColumn('id', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('merchant_id', 'integer', (column) => column.notNull())
    .addColumn('user_id', 'bigint', (column) => column.notNull())
    .addColumn('token_hash', 'blob', (column) => column.notNull().unique())
    .addColumn('expires_at_ms', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema
    .createIndex('user_session_by_user')
    .on('user_session')
    .columns(['merchant_id', 'user_id', 'id'])
    .execute();
  await db.schema.createIndex('user_session_by_end').on('user_session').column('expires_at_ms').execute();
}

async function createPets(db: Schema): Promise<void> {
  let table = db.schema
    .createTable('pet')
    .addColumn('merchant_id', 'integer', (column) => column.notNull().references('merchant.id'))
    .addColumn('id', 'bigint', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('photo_urls', 'text', (column) => column.notNull());
  for (const member of ['owner_id', 'species', 'breed', 'status', 'category', 'tags'])
    table = table.addColumn(member, 'text');
  await table
    .addColumn('created_at_ms', 'bigint', (column) => column.notNull())
    .addColumn('changed_at_ms', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('pet_key', ['merchant_id', 'id'])
    .execute();
  // The last id that the store assigned; ids that callers choose don't count.
  await db.schema
    .createTable('merchant_sequence')
    .addColumn('merchant_id', 'integer', (column) => column.notNull())
    .addColumn('what', 'text', (column) => column.notNull())
    .addColumn('last_id', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('merchant_sequence_key', ['merchant_id', 'what'])
    .execute();
}

export const merchantInterface: Migration = {
  up: async (db) => {
    await createAccess(db);
    await createUsers(db);
    await createPets(db);
  },
};

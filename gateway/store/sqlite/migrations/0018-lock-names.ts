/**
 * Migration 0018: names and labels of locks, and an index to list a merchant's locks by MAC. Existing locks have
 * neither. Shipped: must not change.
 */
import type { Migration } from 'kysely';
import { maintainRowChecksums } from '../row-checksum-triggers.js';

export const lockNames: Migration = {
  up: async (db) => {
    await db.schema.alterTable('device').addColumn('name', 'text').execute();
    await db.schema.alterTable('device').addColumn('labels', 'text').execute();
    await maintainRowChecksums(db, 'device');
    await db.schema.createIndex('device_by_merchant').on('device').columns(['merchant_id', 'mac']).execute();
  },
};

/**
 * Work on a store that no gateway has open, and on backups: `lockgate db check`, `backup`, `accept`, `migrate`. For
 * anything else a store is opened (open-store.ts). Today every such store is SQLite's.
 */
import path from 'node:path';
import { LockgateError } from '../../proto/errors.js';
import type { CheckReport } from './contract/check-report.js';
import type { StoreOptions } from './contract/store-options.js';
import type { BlockSums } from './file-sums.js';
import { copyDatabase, describeCopy, type ReportPages, removeCopy } from './sqlite/backup/copy.js';
import { lockData } from './sqlite/folder/data-lock.js';
import { STORE_NAME } from './sqlite/folder/folder-access.js';
import { findStoreDamage, refuseDamage } from './sqlite/folder/start-check.js';
import { type Migrated, migrateFolder } from './sqlite/migrate.js';
import { checkInThread, type ReportUpkeep } from './sqlite/upkeep.js';

/** The store's file in a data folder, whether it is there or not. */
export function storeFileOf(folder: string): string {
  return path.join(folder, STORE_NAME);
}

/**
 * Checks a store, also one that is in use, or a backup. It changes nothing.
 *
 * @throws LockgateError `input-database` where there is no such file or it is no database, `store-newer`
 * @throws StoreFailure where the machine doesn't let it be read
 */
export async function checkStoreFile(file: string, report: ReportUpkeep): Promise<CheckReport> {
  return await checkInThread(file, report);
}

/**
 * Brings the store of a data folder to this version's schema, or returns what that would do.
 *
 * @throws LockgateError `input-data` where there is no store, `data-in-use`, `store-newer`, `no-room` …
 */
export async function migrateDataFolder(
  folder: string,
  options: { readonly isDry: boolean } & Pick<StoreOptions, 'onMended'>,
): Promise<Migrated> {
  return await migrateFolder(folder, options);
}

/** A data folder that is locked for this process, so that no gateway starts on it. */
export interface HeldStore {
  /**
   * Copies the store to a file, which it replaces. The copy is on the disk when this resolves.
   *
   * @throws LockgateError `store-damaged` for a damaged store, whose copy would get checksums that call it whole;
   * `no-room`
   */
  copyTo(file: string, report: ReportPages): Promise<BlockSums>;
  release(): void;
}

/** Locks the store of a data folder; null while a gateway has it. */
export function holdStore(folder: string): HeldStore | null {
  try {
    const lock = lockData(path.join(folder, 'gateway.lock'));
    return { copyTo: (file, report) => copyWhole(storeFileOf(folder), file, report), release: () => lock.release() };
  } catch (error) {
    if (error instanceof LockgateError && error.code === 'data-in-use') return null;
    throw error;
  }
}

async function copyWhole(from: string, to: string, report: ReportPages): Promise<BlockSums> {
  const damage = await findStoreDamage(from);
  if (damage !== null) refuseDamage(from, damage);
  return await copyDatabase(from, to, report);
}

/** What is in a backup: the last migration of its schema, and the id of the key that its secrets are sealed with. */
export function describeBackup(file: string): { readonly schema: string | null; readonly keyId: string | null } {
  return describeCopy(file);
}

/** Removes a backup, or a part of one, with what SQLite may have left next to it. */
export function removeBackup(file: string): void {
  removeCopy(file);
}

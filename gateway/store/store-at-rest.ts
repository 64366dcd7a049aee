/**
 * Work on store files and backups without opening a store as the gateway does, for `lockgate db`. All other code opens
 * a store with open-store.ts. Only the check also works on PostgreSQL; the rest is for SQLite, because a PostgreSQL
 * store has no files. store-move.ts moves a store from one engine to the other.
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
import { checkInThread, type ReportUpkeep } from './sqlite/upkeep/upkeep.js';

/** Returns the path of the store's file in a data folder; the file need not exist. */
export function storeFileOf(folder: string): string {
  return path.join(folder, STORE_NAME);
}

/**
 * Checks a store, which may be in use, or a backup. Changes nothing.
 *
 * @throws LockgateError `input-database` if the file is missing or not a database, `store-newer`
 * @throws StoreFailure if the file can't be read
 */
export async function checkStoreFile(file: string, report: ReportUpkeep): Promise<CheckReport> {
  return await checkInThread(file, report);
}

/**
 * Checks the store in a database, which may be in use. Changes nothing.
 *
 * @param url as `readStoreUrl` returns it
 * @throws LockgateError `store-unreachable`, `store-refused`, `store-newer`, `input-database` if it has no store
 * @throws StoreFailure if the database can't be read
 */
export async function checkStoreInDatabase(url: string, report: ReportUpkeep): Promise<CheckReport> {
  // The driver is loaded only here, as in open-store.ts.
  const { checkPostgres } = await import('./postgres/check/check.js');
  return await checkPostgres(url, (check, done) => report(check, done, null));
}

/**
 * Migrates the store of a data folder to this version's schema, or returns what the migration would do.
 *
 * @throws LockgateError `input-data` if there is no store, `data-in-use`, `store-newer`, `no-room` …
 */
export async function migrateDataFolder(
  folder: string,
  options: { readonly isDry: boolean } & Pick<StoreOptions, 'onModesCorrected'>,
): Promise<Migrated> {
  return await migrateFolder(folder, options);
}

/** The store of a data folder that this process has locked, so that no gateway starts on the folder. */
export interface LockedStore {
  /**
   * Copies the store to `file`, replacing an existing file. Calls `report` with the progress. Resolves when the copy is
   * on the disk.
   *
   * @throws LockgateError `store-damaged` for a damaged store, since the copy's new checksums would hide the damage;
   * `no-room`
   */
  copyTo(file: string, report: ReportPages): Promise<BlockSums>;
  /** Unlocks the store: a gateway may start on the folder again. */
  release(): void;
}

/** Locks the store of a data folder; returns null while a gateway runs on the folder. */
export function lockStore(folder: string): LockedStore | null {
  try {
    const lock = lockData(path.join(folder, 'gateway.lock'));
    return {
      copyTo: (file, report) => copyUndamaged(storeFileOf(folder), file, report),
      release: () => lock.release(),
    };
  } catch (error) {
    if (error instanceof LockgateError && error.code === 'data-in-use') return null;
    throw error;
  }
}

async function copyUndamaged(from: string, to: string, report: ReportPages): Promise<BlockSums> {
  const damage = await findStoreDamage(from);
  if (damage !== null) refuseDamage(from, damage);
  return await copyDatabase(from, to, report);
}

/** Returns the last migration of a backup's schema, and the id of the key that its secrets are sealed with. */
export function describeBackup(file: string): { readonly schema: string | null; readonly keyId: string | null } {
  return describeCopy(file);
}

/** Deletes a complete or partial backup, and the files that SQLite may have left next to it. */
export function removeBackup(file: string): void {
  removeCopy(file);
}

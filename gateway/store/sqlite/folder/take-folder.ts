/**
 * Takes a data folder for this process and checks it: we can write to it, others can't read it, and its store is there,
 * whole, and lockgate's. Everything that opens a store to write to it comes this way.
 */
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import { LockgateError } from '../../../../proto/errors.js';
import type { StoreOptions } from '../../contract/store-options.js';
import { isAtRest } from '../closed-file.js';
import { readSchemaVersion } from '../schema-version.js';
import { type DataLock, lockData } from './data-lock.js';
import { closeToOthers, openFolder, STORE_NAME } from './folder-access.js';
import { findStoreDamage, moveEvidence, refuseDamage, restoreEvidence } from './start-check.js';
import { isStoreNew, requireOurStore } from './store-presence.js';
import { isWalLost } from './wal-presence.js';

/** How a folder is taken. */
export type TakeOptions = Pick<StoreOptions, 'makeNew' | 'onModesCorrected' | 'onDamage'>;

export interface TakenFolder {
  /** The store's file, to be opened by `openDurable`. */
  readonly file: string;
  readonly isNew: boolean;
  readonly lock: DataLock;
  /** To be called where the store could not be opened after all: gives the files of evidence their names back. */
  readonly restoreEvidence: () => void;
}

/**
 * Takes the folder. A store that is refused is unchanged.
 *
 * @throws LockgateError `input-data` where no such folder can be created; `data-unwritable`, `data-open` where it isn't
 * ours; `data-in-use` when another gateway holds it; `store-missing`, `store-foreign`, `store-damaged`
 */
export async function takeFolder(folder: string, options: TakeOptions = {}): Promise<TakenFolder> {
  openFolder(folder);
  const mended = closeToOthers(folder);
  if (mended !== null) options.onModesCorrected?.(mended);
  // Before any file is renamed, since the store may be in use.
  const lock = lockData(path.join(folder, 'gateway.lock'));
  try {
    const file = path.join(folder, STORE_NAME);
    const isNew = isStoreNew(folder, options.makeNew === true);
    if (isNew) {
      closeSync(openSync(file, 'a', 0o600));
      return { file, isNew, lock, restoreEvidence: () => undefined };
    }
    return { file, isNew, lock, restoreEvidence: await requireWhole(file, options.onDamage) };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Refuses a store of a newer version as such, whether or not it is damaged. @throws LockgateError `store-newer` */
function refuseNewer(file: string): void {
  try {
    const db = new SqliteDatabase(file, { readonly: true });
    try {
      readSchemaVersion(db, file);
    } finally {
      db.close();
    }
  } catch (error) {
    if (error instanceof LockgateError) throw error;
  }
}

/** Refuses a damaged or foreign store. Returns a function that gives files of evidence their names back. */
async function requireWhole(file: string, onDamage: TakeOptions['onDamage']): Promise<() => void> {
  const damage = await findStoreDamage(file);
  if (damage !== null && onDamage === undefined) {
    // Opening it would create an empty WAL where one was lost.
    if (isAtRest(file) && !isWalLost(file)) refuseNewer(file);
    refuseDamage(file, damage);
  }
  requireOurStore(file);
  if (damage === null) return () => undefined;
  const movedTo = moveEvidence(damage);
  onDamage?.(damage.what, movedTo);
  return () => restoreEvidence(damage, movedTo);
}

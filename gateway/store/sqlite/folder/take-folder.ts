/**
 * Locks a data folder for this process and checks it: this process can write to it, other users can't read it, and its
 * store is there, undamaged, and lockgate's. All code that opens a store for writing must call `takeFolder` first.
 */
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import { LockgateError } from '../../../../proto/errors.js';
import type { StoreOptions } from '../../contract/store-options.js';
import { isAtRest } from '../closed-file.js';
import { readSchemaVersion } from '../schema-version.js';
import { type DataLock, lockData } from './data-lock.js';
import { correctModes, openFolder, STORE_NAME } from './folder-access.js';
import { findStoreDamage, moveEvidence, refuseDamage, restoreEvidence } from './start-check.js';
import { isStoreNew, requireOurStore } from './store-presence.js';
import { isWalLost } from './wal-presence.js';

/** Options of {@link takeFolder}. */
export type TakeOptions = Pick<StoreOptions, 'makeNew' | 'onModesCorrected' | 'onDamage'>;

/**
 * A data folder that this process has locked. Its store is undamaged, or new, or an operator has accepted its damage
 * (`onDamage`): then the damaged files were renamed, and what is left is opened.
 */
export interface TakenFolder {
  /** The store's file, to be opened by `openDurable`. */
  readonly file: string;
  readonly isNew: boolean;
  readonly lock: DataLock;
  /**
   * Must be called if the store could not be opened: gives the renamed damaged files (the evidence) their old names.
   */
  readonly restoreEvidence: () => void;
}

/**
 * Locks and checks the folder. A refused store is not changed.
 *
 * @throws LockgateError `input-data` if the folder can't be created; `data-unwritable`, `data-open` if it belongs to
 * another user; `data-in-use` if another gateway runs on it; `store-missing`, `store-foreign`, `store-damaged`,
 * `store-newer`
 */
export async function takeFolder(folder: string, options: TakeOptions = {}): Promise<TakenFolder> {
  openFolder(folder);
  const sentence = correctModes(folder);
  if (sentence !== null) options.onModesCorrected?.(sentence);
  // Locks before any file is renamed, since the store may be in use.
  const lock = lockData(path.join(folder, 'gateway.lock'));
  try {
    const file = path.join(folder, STORE_NAME);
    const isNew = isStoreNew(folder, options.makeNew === true);
    if (isNew) {
      closeSync(openSync(file, 'a', 0o600));
      return { file, isNew, lock, restoreEvidence: () => undefined };
    }
    return { file, isNew, lock, restoreEvidence: await requireUndamaged(file, options.onDamage) };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * Refuses a store of a newer version before its damage is reported, since this version may take for damage what it does
 * not know. An undamaged newer store is refused when it is opened. @throws LockgateError `store-newer`
 */
function refuseNewer(file: string): void {
  try {
    const db = new SqliteDatabase(file, { readonly: true });
    try {
      readSchemaVersion(db, file);
    } finally {
      db.close();
    }
  } catch (error) {
    // A file too damaged to be read is refused by the caller, with the damage.
    if (error instanceof LockgateError) throw error;
  }
}

/**
 * Refuses a foreign store. Refuses a damaged one too, unless `onDamage` is given: then the damaged files (the evidence)
 * are renamed, and `onDamage` is called with the damage and their new names. Returns a function that gives them their
 * old names back.
 */
async function requireUndamaged(file: string, onDamage: TakeOptions['onDamage']): Promise<() => void> {
  const damage = await findStoreDamage(file);
  if (damage !== null && onDamage === undefined) {
    // The store is opened only without a WAL (write-ahead log): opening it would read a damaged WAL, or create an empty
    // one in place of a lost one.
    if (isAtRest(file) && !isWalLost(file)) refuseNewer(file);
    refuseDamage(file, damage);
  }
  requireOurStore(file);
  if (damage === null) return () => undefined;
  const movedTo = moveEvidence(damage);
  onDamage?.(damage.what, movedTo);
  return () => restoreEvidence(damage, movedTo);
}

/**
 * A data folder, taken for this process and found fit to be worked on: ours to write to, closed to others, with its
 * store in it, whole and its own. Everything that opens a store to write to it comes this way.
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

/** How a folder is to be taken. */
export type TakeOptions = Pick<StoreOptions, 'makeNew' | 'onMended' | 'onDamage'>;

export interface TakenFolder {
  /** The store's file, to be opened by `openDurable`. */
  readonly file: string;
  readonly isNew: boolean;
  readonly lock: DataLock;
  /** To be called where the store could not be opened after all: what proves its damage stands where it stood. */
  readonly restoreEvidence: () => void;
}

/**
 * Takes it. Nothing of a store that is refused was changed.
 *
 * @throws LockgateError `input-data` where there can't be such a folder; `data-unwritable`, `data-open` where it is not
 * ours; `data-in-use` when another gateway holds it; `store-missing`, `store-foreign`, `store-damaged`
 */
export async function takeFolder(folder: string, options: TakeOptions = {}): Promise<TakenFolder> {
  openFolder(folder);
  const mended = closeToOthers(folder);
  if (mended !== null) options.onMended?.(mended);
  // Before anything is put aside, since it may be in use.
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

/** A store of a newer version is refused as such before any word of damage. @throws LockgateError `store-newer` */
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

/** Returns how to put the proof of damage back. */
async function requireWhole(file: string, onDamage: TakeOptions['onDamage']): Promise<() => void> {
  const damage = await findStoreDamage(file);
  if (damage !== null && onDamage === undefined) {
    // To look would make an empty log where one was lost.
    if (isAtRest(file) && !isWalLost(file)) refuseNewer(file);
    refuseDamage(file, damage);
  }
  requireOurStore(file);
  if (damage === null) return () => undefined;
  const kept = moveEvidence(damage);
  onDamage?.(damage.what, kept);
  return () => restoreEvidence(damage, kept);
}

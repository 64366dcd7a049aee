/**
 * Whether a data folder has its store. A folder that shows that it had one, and has none, is no new folder: an empty
 * store there would hide a loss behind a gateway that looks well (quality.md §2, "an emptied or missing store file
 * beside its key").
 */
import { closeSync, openSync, readdirSync, readSync, renameSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import SqliteDatabase, { type Database } from 'better-sqlite3';
import { LockgateError } from '../../../../proto/errors.js';
import { sumsFileOf } from '../../file-sums.js';
import { evidenceName, STORE_NAME } from './folder-access.js';
import { APPLICATION_ID, runningFileOf } from './wal-presence.js';

/** Files that only a gateway with a store leaves. The token is not one of them: it may be provided beforehand. */
const SIGNS = new Set(['key', 'key.next', 'operator-address', 'backup.part', 'demo']);

const MAGIC = 'SQLite format 3\0';
/** SQLite's header, which has the id of the program that made the file (sqlite.org/fileformat2.html). */
const HEADER_BYTES = 100;
const APPLICATION_AT = 68;

/** Tables of another program that the error lists. */
const TABLES_NAMED = 3;

/**
 * Whether a store has to be created. What an older store left there is renamed then.
 *
 * @throws LockgateError `store-missing` where there was one, and `makeNew` does not give it up
 */
export function isStoreNew(folder: string, makeNew: boolean): boolean {
  const file = path.join(folder, STORE_NAME);
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat !== undefined && stat.size > 0) return false;
  const signs = readdirSync(folder).filter((name) => {
    return SIGNS.has(name) || (name.startsWith(STORE_NAME) && name !== STORE_NAME);
  });
  if (signs.length > 0 && !makeNew) {
    const what = stat === undefined ? `there is no ${file}` : `${file} is empty`;
    throw new LockgateError(
      'store-missing',
      `${what}, though the folder has what belongs to a store (${signs.join(', ')}): restore a backup, or begin a ` +
        'new, empty store there with --new',
    );
  }
  for (const left of [`${file}-wal`, sumsFileOf(file), runningFileOf(file)])
    if (statSync(left, { throwIfNoEntry: false }) !== undefined) renameSync(left, evidenceName(left));
  rmSync(`${file}-shm`, { force: true });
  return true;
}

/**
 * Checks that a file is a store of lockgate's, without changing it.
 *
 * @throws LockgateError `store-foreign`
 */
export function requireOurStore(file: string): void {
  if (!statSync(file).isFile())
    throw new LockgateError('store-foreign', `${file} is no store of lockgate's: it is not a file`);
  const header = readHeader(file);
  if (header.subarray(0, MAGIC.length).toString('latin1') !== MAGIC)
    throw new LockgateError('store-foreign', `${file} is no store of lockgate's: it is not an SQLite database`);
  if (header.readUInt32BE(APPLICATION_AT) === APPLICATION_ID) return;
  // Older stores have no application id.
  const db = new SqliteDatabase(file, { readonly: true });
  let tables: string[];
  try {
    tables = tablesOf(db);
  } catch {
    // Damage is reported when the store is opened.
    return;
  } finally {
    db.close();
  }
  if (tables.length === 0 || tables.includes('kysely_migration')) return;
  const named = tables.slice(0, TABLES_NAMED).join(', ');
  throw new LockgateError(
    'store-foreign',
    `${file} is an SQLite database of another program (its tables: ${named}): move it away, or name another folder`,
  );
}

function tablesOf(db: Database): string[] {
  return db.prepare(`SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`).pluck().all() as string[];
}

function readHeader(file: string): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  const handle = openSync(file, 'r');
  try {
    readSync(handle, header, 0, HEADER_BYTES, 0);
  } finally {
    closeSync(handle);
  }
  return header;
}

/**
 * Checks whether a data folder has its store. If the store is missing but other files show that there was one, the
 * start is refused: a new, empty store would hide the loss (quality.md §2, "an emptied or missing store file beside its
 * key").
 */
import { closeSync, openSync, readdirSync, readSync, renameSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import SqliteDatabase, { type Database } from 'better-sqlite3';
import { LockgateError } from '../../../../proto/errors.js';
import { sumsFileOf } from '../../file-sums.js';
import { evidenceName, STORE_NAME } from './folder-access.js';
import { APPLICATION_ID, runningFileOf } from './wal-presence.js';

/** Files that only a gateway with a store creates. The operator's token may be provided before the first start. */
const STORE_SIGNS = new Set(['key', 'key.next', 'operator-address', 'backup.part', 'demo']);

/** The first bytes of every SQLite file. */
const MAGIC = 'SQLite format 3\0';
/** The size of SQLite's file header, and the offset of the application id in it (sqlite.org/fileformat2.html). */
const HEADER_BYTES = 100;
const APPLICATION_ID_OFFSET = 68;

/** Maximum number of another program's tables that the error lists. */
const MAX_NAMED_TABLES = 3;

/**
 * Whether a store must be created. If so, the remaining files of an older store are renamed.
 *
 * @throws LockgateError `store-missing` if there was a store and `makeNew` is not set
 */
export function isStoreNew(folder: string, makeNew: boolean): boolean {
  const file = path.join(folder, STORE_NAME);
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat !== undefined && stat.size > 0) return false;
  const signs = readdirSync(folder).filter((name) => {
    return STORE_SIGNS.has(name) || (name.startsWith(STORE_NAME) && name !== STORE_NAME);
  });
  if (signs.length > 0 && !makeNew) {
    const problem = stat === undefined ? `there is no ${file}` : `${file} is empty`;
    throw new LockgateError(
      'store-missing',
      `${problem}, though the folder has what belongs to a store (${signs.join(', ')}): restore a backup, ` +
        'or create a new, empty store there with --new',
    );
  }
  for (const leftover of [`${file}-wal`, sumsFileOf(file), runningFileOf(file)])
    if (statSync(leftover, { throwIfNoEntry: false }) !== undefined) renameSync(leftover, evidenceName(leftover));
  rmSync(`${file}-shm`, { force: true });
  return true;
}

/**
 * Checks that a file is a store of lockgate, without changing it.
 *
 * @throws LockgateError `store-foreign`
 */
export function requireOurStore(file: string): void {
  if (!statSync(file).isFile())
    throw new LockgateError('store-foreign', `${file} is not a lockgate store: it is not a file`);
  const header = readHeader(file);
  if (header.subarray(0, MAGIC.length).toString('latin1') !== MAGIC)
    throw new LockgateError('store-foreign', `${file} is not a lockgate store: it is not an SQLite database`);
  if (header.readUInt32BE(APPLICATION_ID_OFFSET) === APPLICATION_ID) return;
  // Older stores have no application id.
  const db = new SqliteDatabase(file, { readonly: true });
  let tables: string[];
  try {
    tables = tablesOf(db);
  } catch {
    // The file can't be read: damage, which is reported later, when the store is opened.
    return;
  } finally {
    db.close();
  }
  if (tables.length === 0 || tables.includes('kysely_migration')) return;
  const named = tables.slice(0, MAX_NAMED_TABLES).join(', ');
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

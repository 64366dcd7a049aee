/**
 * Opens a store for reading, even in a folder where no file can be created. To read a store in WAL mode (with a
 * write-ahead log) SQLite needs two more files next to it. On a read-only disk, or in another user's folder, a
 * temporary copy is read instead.
 */
import { copyFileSync, existsSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import SqliteDatabase, { type Database } from 'better-sqlite3';
import { makeTemporaryFolder } from '../../../temporary-folder.js';
import { requireRoom } from '../backup/copy.js';

/** The codes of SQLite's errors if it can't create these files. */
const CANT_WRITE_CODES = /^SQLITE_(CANTOPEN|READONLY)/;

/** A read-only connection; must be closed with {@link ReadableStore.close}. */
export interface ReadableStore {
  readonly db: Database;
  close(): void;
}

/**
 * Opens a store for reading, in place if possible.
 *
 * @throws LockgateError `no-room` if a copy is needed and the system's temporary folder has too little space
 * @throws SQLite's error
 */
export function openReadable(file: string): ReadableStore {
  try {
    const db = openToRead(file);
    return { db, close: () => void db.close() };
  } catch (error) {
    if (!CANT_WRITE_CODES.test(String((error as { code?: unknown }).code))) throw error;
  }
  return openCopy(file);
}

/** Opens a file and runs a first query, since SQLite reads the file only then. */
function openToRead(file: string): Database {
  const db = new SqliteDatabase(file, { readonly: true });
  try {
    db.prepare('SELECT count(*) FROM sqlite_master').get();
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Copies the store to the system's temporary folder and opens the copy. Closing deletes the copy. */
function openCopy(file: string): ReadableStore {
  const suffixes = ['', '-wal'].filter((suffix) => existsSync(`${file}${suffix}`));
  const bytes = suffixes.reduce((sum, suffix) => sum + statSync(`${file}${suffix}`).size, 0);
  requireRoom(tmpdir(), bytes, `to check ${file}, whose folder can't be written to,`);
  const folder = makeTemporaryFolder('check');
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const copy = path.join(folder, path.basename(file));
    for (const suffix of suffixes) copyFileSync(`${file}${suffix}`, `${copy}${suffix}`);
    const db = openToRead(copy);
    return {
      db,
      close: () => {
        db.close();
        remove();
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}

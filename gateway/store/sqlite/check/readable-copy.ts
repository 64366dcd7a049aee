/**
 * Opens a store to read where no file can be created beside it. SQLite needs two more files to read one in WAL mode; on
 * a read-only disk, or in another user's folder, a copy elsewhere is read instead.
 */
import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import SqliteDatabase, { type Database } from 'better-sqlite3';
import { requireRoom } from '../backup/copy.js';

/** SQLite's errors where it may not create them. */
const CANT_WRITE = /^SQLITE_(CANTOPEN|READONLY)/;

/** A connection that only reads; to be closed by {@link ReadableStore.close}. */
export interface ReadableStore {
  readonly db: Database;
  close(): void;
}

/**
 * Opens a store to read it, in place if possible.
 *
 * @throws LockgateError `no-room` where a copy is needed and the system's temporary folder has none
 * @throws what SQLite throws
 */
export function openReadable(file: string): ReadableStore {
  try {
    const db = openToRead(file);
    return { db, close: () => void db.close() };
  } catch (error) {
    if (!CANT_WRITE.test(String((error as { code?: unknown }).code))) throw error;
  }
  return openCopy(file);
}

/** SQLite reads the file only at the first query. */
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

function openCopy(file: string): ReadableStore {
  const ends = ['', '-wal'].filter((end) => existsSync(`${file}${end}`));
  const bytes = ends.reduce((sum, end) => sum + statSync(`${file}${end}`).size, 0);
  requireRoom(tmpdir(), bytes, `to check ${file}, whose folder can't be written to,`);
  const folder = mkdtempSync(path.join(tmpdir(), 'lockgate-check-'));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const copy = path.join(folder, path.basename(file));
    for (const end of ends) copyFileSync(`${file}${end}`, `${copy}${end}`);
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

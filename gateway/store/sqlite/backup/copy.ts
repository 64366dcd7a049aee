/**
 * Copies a store as of one moment, while it is written to, with SQLite's backup interface. A read transaction fixes
 * that moment, so that later commits neither get into the copy nor make SQLite restart the copy. The write-ahead log
 * (WAL) grows meanwhile.
 *
 * The copy is a single file, not in WAL mode, so that it can be read from a read-only folder without further files. The
 * next start switches it to WAL mode again.
 */
import { chmodSync, closeSync, fsyncSync, openSync, rmSync, statfsSync, statSync } from 'node:fs';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import { LockgateError } from '../../../../proto/errors.js';
import { failureKind } from '../../contract/errors.js';
import { KEY_ID_METADATA } from '../../contract/secret-store.js';
import { type BlockSums, sumFile } from '../../file-sums.js';

/** Number of pages that one step copies: 1 MiB. */
const PAGES_PER_STEP = 256;
/** Disk space that a copy must leave free for concurrent writes. */
const RESERVED_BYTES = 64 * 1024 * 1024;

/** Reports the progress of a copy, in pages. */
export type ReportPages = (done: number, total: number) => void;

/**
 * Copies the store in `from` to `to` (mode 600), replacing an existing file. Resolves when the copy is on the disk.
 *
 * @throws LockgateError `no-room` if the disk has too little space, or becomes full
 */
export async function copyDatabase(
  from: string,
  to: string,
  report: ReportPages = () => undefined,
): Promise<BlockSums> {
  requireRoom(path.dirname(to), statSync(from).size + RESERVED_BYTES, 'a backup');
  // Created here with mode 600, so that no other user can read it at any time.
  closeSync(openSync(to, 'w', 0o600));
  chmodSync(to, 0o600);
  try {
    await copyPages(from, to, report);
    const copy = new SqliteDatabase(to);
    copy.pragma('journal_mode = DELETE');
    copy.close();
    const handle = openSync(to, 'r+');
    fsyncSync(handle);
    closeSync(handle);
    return sumFile(to);
  } catch (error) {
    removeCopy(to);
    if (failureKind(error) !== 'full') throw error;
    const sentence = `the disk of ${path.dirname(to)} became full while a backup was made`;
    throw new LockgateError('no-room', sentence, { cause: error });
  }
}

/** Copies all pages of `from`, as of the moment of the first read. */
async function copyPages(from: string, to: string, report: ReportPages): Promise<void> {
  const source = new SqliteDatabase(from, { readonly: true, fileMustExist: true });
  try {
    source.exec('BEGIN');
    // The first read fixes the moment of the transaction.
    source.prepare('SELECT count(*) FROM sqlite_master').get();
    const progress = ({ totalPages, remainingPages }: { totalPages: number; remainingPages: number }): number => {
      report(totalPages - remainingPages, totalPages);
      return PAGES_PER_STEP;
    };
    await source.backup(to, { progress });
  } finally {
    source.close();
  }
}

/** Deletes a copy, and files that SQLite may have left next to it. */
export function removeCopy(file: string): void {
  for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true });
}

/**
 * Checks that a disk has enough free space.
 *
 * @param purpose the subject of the error's sentence: what needs the space
 * @throws LockgateError `no-room`
 */
export function requireRoom(folder: string, neededBytes: number, purpose: string): void {
  const { bavail, bsize } = statfsSync(folder);
  const freeBytes = bavail * bsize;
  if (freeBytes >= neededBytes) return;
  const mb = (bytes: number): string => `${Math.ceil(bytes / 1e6).toLocaleString('en')} MB`;
  throw new LockgateError(
    'no-room',
    `${purpose} needs ${mb(neededBytes)} free in ${folder}, which has ${mb(freeBytes)}`,
  );
}

/**
 * Returns the last migration of a copy's schema, and the id of the key that its secrets are sealed (encrypted) with.
 * The table `fact` has the store's metadata.
 */
export function describeCopy(file: string): { schema: string | null; keyId: string | null } {
  const db = new SqliteDatabase(file, { readonly: true });
  try {
    const schema = db.prepare('SELECT max(name) FROM kysely_migration').pluck().get() as string | null;
    const hasMetadata = db.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'fact'`).get() !== undefined;
    const keyId = hasMetadata ? db.prepare('SELECT value FROM fact WHERE name = ?').pluck().get(KEY_ID_METADATA) : null;
    return { schema, keyId: (keyId as string | undefined) ?? null };
  } finally {
    db.close();
  }
}

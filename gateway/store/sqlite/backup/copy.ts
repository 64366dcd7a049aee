/**
 * Copies a store while it is written to, by SQLite's own backup interface: the file as of one moment. A read
 * transaction fixes that moment, so that later commits neither get into the copy nor make SQLite restart it; the WAL
 * grows meanwhile.
 *
 * The copy is a single file: it is taken out of WAL mode, so that it can be read from a read-only place without files
 * beside it. The next start puts it into WAL mode again.
 */
import { chmodSync, closeSync, fsyncSync, openSync, rmSync, statfsSync, statSync } from 'node:fs';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import { LockgateError } from '../../../../proto/errors.js';
import { failureKind } from '../../contract/errors.js';
import { KEY_ID_METADATA } from '../../contract/secret-store.js';
import { type BlockSums, sumFile } from '../../file-sums.js';

/** Pages that are copied at once: 1 MiB. */
const PAGES_A_STEP = 256;
/** Disk space that a copy leaves free, in bytes, for those who write meanwhile. */
const ROOM_LEFT = 64 * 1024 * 1024;

/** Reports the progress of a copy, in pages. */
export type ReportPages = (done: number, total: number) => void;

/**
 * Copies the store in `from` to `to` (mode 600), which it replaces. It is on the disk when this resolves.
 *
 * @throws LockgateError `no-room` where the disk has too little, or gets full
 */
export async function copyDatabase(
  from: string,
  to: string,
  report: ReportPages = () => undefined,
): Promise<BlockSums> {
  requireRoom(path.dirname(to), statSync(from).size + ROOM_LEFT, 'a backup');
  // Created here, so that no other user can read it from the first byte on.
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

async function copyPages(from: string, to: string, report: ReportPages): Promise<void> {
  const source = new SqliteDatabase(from, { readonly: true, fileMustExist: true });
  try {
    source.exec('BEGIN');
    // A transaction's moment is that of its first read.
    source.prepare('SELECT count(*) FROM sqlite_master').get();
    const progress = ({ totalPages, remainingPages }: { totalPages: number; remainingPages: number }): number => {
      report(totalPages - remainingPages, totalPages);
      return PAGES_A_STEP;
    };
    await source.backup(to, { progress });
  } finally {
    source.close();
  }
}

/** Removes a copy, with files that SQLite may have left beside it. */
export function removeCopy(file: string): void {
  for (const end of ['', '-journal', '-wal', '-shm']) rmSync(`${file}${end}`, { force: true });
}

/**
 * Checks that a disk has room for so many bytes.
 *
 * @throws LockgateError `no-room`
 */
export function requireRoom(folder: string, bytes: number, what: string): void {
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  if (free >= bytes) return;
  const mb = (of: number): string => `${Math.ceil(of / 1e6).toLocaleString('en')} MB`;
  throw new LockgateError('no-room', `${what} needs ${mb(bytes)} free in ${folder}, and there are ${mb(free)}`);
}

/** Describes a copy: the last step of its schema, and the id of the key that its secrets are sealed with. */
export function describeCopy(file: string): { schema: string | null; keyId: string | null } {
  const db = new SqliteDatabase(file, { readonly: true });
  try {
    const schema = db.prepare('SELECT max(name) FROM kysely_migration').pluck().get() as string | null;
    const hasMetadata = db.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'fact'`).get() !== undefined;
    const key = hasMetadata ? db.prepare('SELECT value FROM fact WHERE name = ?').pluck().get(KEY_ID_METADATA) : null;
    return { schema, keyId: (key as string | undefined) ?? null };
  } finally {
    db.close();
  }
}

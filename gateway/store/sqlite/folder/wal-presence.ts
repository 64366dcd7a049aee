/**
 * Whether the write-ahead log beside a store is there and its own. What was committed last stands in it alone: SQLite
 * takes a store without its log, or with another's, for whole, and says nothing.
 *
 * While a store is open, a file `NAME.running` stands beside it. It is made once the log has something and taken away
 * before the log is, so where it stands and there is no log, the log was lost. Whose a log is, a random number tells
 * that each store has in its header (SQLite's `user_version`), and so does the log wherever it has page 1.
 */
import { randomInt } from 'node:crypto';
import { closeSync, existsSync, openSync, readSync, statSync, writeFileSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { dropSecretFile } from '../../../data-folder/secret-file.js';

/** The `application_id` of lockgate's stores: "lkgt". */
export const APPLICATION_ID = 0x6c6b6774;

const RUNNING_TEXT =
  'A gateway has this store open, or was killed: then the file beside it that ends in -wal is part of it.';

const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const PAGE_SIZE_AT = 8;
const SALT_AT = 16;
const FRAME_SALT_AT = 8;
const SALT_BYTES = 8;
/** Where page 1 has the store's number. */
const STORE_NUMBER_AT = 60;
const STORE_NUMBER_MOST = 2 ** 31 - 1;

/** The file that says that a store is open. */
export function runningFileOf(file: string): string {
  return `${file}.running`;
}

/**
 * Says that the store is open; to be called once its log has something. It is not made durable: where a loss of power
 * takes it, a loss of the log besides would go unnoticed, and nothing else.
 */
export function markRunning(file: string): void {
  if (!isWalEmpty(file)) writeFileSync(runningFileOf(file), `${RUNNING_TEXT}\n`, { mode: 0o600 });
}

/** Takes that back, durably; to be called before the log is emptied or taken away. */
export function unmarkRunning(file: string): void {
  if (existsSync(runningFileOf(file))) dropSecretFile(runningFileOf(file));
}

/**
 * Closes the only connection of a store that could not be opened for use. SQLite may take the log away with it, so
 * that the store is no longer said to be open; where a log is left, it is.
 */
export function closeUnopened(writer: Database, file: string): void {
  const wasRunning = existsSync(runningFileOf(file));
  unmarkRunning(file);
  writer.close();
  if (wasRunning) markRunning(file);
}

/** Gives a store its number, and the mark of lockgate's stores, where it has none yet; and the log its page 1. */
export function numberStore(writer: Database): void {
  if (writer.pragma('user_version', { simple: true }) === 0) {
    writer.pragma(`application_id = ${APPLICATION_ID}`);
    writer.pragma(`user_version = ${randomInt(1, STORE_NUMBER_MOST)}`);
    // Only once the number is in the file can a log be held against it.
    writer.pragma('wal_checkpoint(TRUNCATE)');
  }
  rewriteNumber(writer);
}

/** Written again, though it is the same: a log that stays short would not have page 1 otherwise, or be empty. */
function rewriteNumber(writer: Database): void {
  writer.pragma(`user_version = ${writer.pragma('user_version', { simple: true })}`);
}

/** Empties the log into the file and cuts it to nothing. Answers whether that could be done. */
export function truncateWal(writer: Database, file: string): boolean {
  unmarkRunning(file);
  const [{ busy }] = writer.pragma('wal_checkpoint(TRUNCATE)') as [{ busy: number }];
  rewriteNumber(writer);
  markRunning(file);
  return busy === 0;
}

/** Whether the log was lost: the store was not closed, and there is none, or an empty one, which any reader makes. */
export function isWalLost(file: string): boolean {
  return existsSync(runningFileOf(file)) && isWalEmpty(file);
}

function isWalEmpty(file: string): boolean {
  return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/** Whether the log that is there says in so many words that it is another store's. */
export function isWalForeign(file: string): boolean {
  const own = numberAt(file, STORE_NUMBER_AT);
  const other = numberInWal(`${file}-wal`);
  return own !== 0 && other !== 0 && own !== other;
}

function numberAt(file: string, at: number): number {
  const handle = openSync(file, 'r');
  try {
    return readAt(handle, at, 4).readUInt32BE(0);
  } finally {
    closeSync(handle);
  }
}

/** The number of the store in a log's first copy of page 1; 0 where it has none. */
function numberInWal(wal: string): number {
  const { size } = statSync(wal);
  const handle = openSync(wal, 'r');
  try {
    const header = readAt(handle, 0, WAL_HEADER_BYTES);
    const salt = header.subarray(SALT_AT, SALT_AT + SALT_BYTES);
    const frameBytes = FRAME_HEADER_BYTES + header.readUInt32BE(PAGE_SIZE_AT);
    for (let at = WAL_HEADER_BYTES; at + frameBytes <= size; at += frameBytes) {
      const frame = readAt(handle, at, FRAME_HEADER_BYTES);
      // What an earlier round left behind.
      if (!frame.subarray(FRAME_SALT_AT, FRAME_SALT_AT + SALT_BYTES).equals(salt)) return 0;
      if (frame.readUInt32BE(0) === 1)
        return readAt(handle, at + FRAME_HEADER_BYTES + STORE_NUMBER_AT, 4).readUInt32BE(0);
    }
    return 0;
  } finally {
    closeSync(handle);
  }
}

function readAt(handle: number, at: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  readSync(handle, buffer, 0, bytes, at);
  return buffer;
}

/**
 * Whether a store's write-ahead log (WAL) is there and its own. Only the WAL has what was committed last, and SQLite
 * takes a store without its WAL, or with another store's, for whole.
 *
 * While a store is open, there is a file `NAME.running` beside it. It is created once the WAL has content and removed
 * before the WAL is, so if it is there without a WAL, the WAL was lost. Each store has a random number in its header
 * (SQLite's `user_version`), and so has its WAL wherever it has page 1: that tells whose it is.
 */
import { randomInt } from 'node:crypto';
import { closeSync, existsSync, openSync, readSync, statSync, writeFileSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { deleteSecretFile } from '../../../data-folder/secret-file.js';

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
/** The offset of the store's number in page 1. */
const STORE_NUMBER_AT = 60;
const STORE_NUMBER_MOST = 2 ** 31 - 1;

/** The file that marks a store as open. */
export function runningFileOf(file: string): string {
  return `${file}.running`;
}

/**
 * Marks the store as open; to be called once its WAL has content. The mark is not durable: should a power loss take it,
 * the only effect is that a lost WAL would go unnoticed.
 */
export function markRunning(file: string): void {
  if (!isWalEmpty(file)) writeFileSync(runningFileOf(file), `${RUNNING_TEXT}\n`, { mode: 0o600 });
}

/** Removes the mark, durably; to be called before the WAL is truncated or removed. */
export function unmarkRunning(file: string): void {
  if (existsSync(runningFileOf(file))) deleteSecretFile(runningFileOf(file));
}

/**
 * Closes the only connection of a store that could not be opened for use. SQLite may remove the WAL with it, so the
 * mark is removed first; it is set again where a WAL is left.
 */
export function closeUnopened(writer: Database, file: string): void {
  const wasRunning = existsSync(runningFileOf(file));
  unmarkRunning(file);
  writer.close();
  if (wasRunning) markRunning(file);
}

/** Gives a store its number and lockgate's application id, where it has none yet; and the WAL its page 1. */
export function numberStore(writer: Database): void {
  if (writer.pragma('user_version', { simple: true }) === 0) {
    writer.pragma(`application_id = ${APPLICATION_ID}`);
    writer.pragma(`user_version = ${randomInt(1, STORE_NUMBER_MOST)}`);
    // A WAL can be compared with the number only once the file has it.
    writer.pragma('wal_checkpoint(TRUNCATE)');
  }
  rewriteNumber(writer);
}

/** Writes the same number again: a short WAL would not have page 1 otherwise, or be empty. */
function rewriteNumber(writer: Database): void {
  writer.pragma(`user_version = ${writer.pragma('user_version', { simple: true })}`);
}

/** Checkpoints the whole WAL and truncates it. Returns whether that was possible. */
export function truncateWal(writer: Database, file: string): boolean {
  unmarkRunning(file);
  const [{ busy }] = writer.pragma('wal_checkpoint(TRUNCATE)') as [{ busy: number }];
  rewriteNumber(writer);
  markRunning(file);
  return busy === 0;
}

/** Whether the WAL was lost: the store was not closed, and has none, or an empty one, which any reader creates. */
export function isWalLost(file: string): boolean {
  return existsSync(runningFileOf(file)) && isWalEmpty(file);
}

function isWalEmpty(file: string): boolean {
  return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/** Whether the WAL has another store's number. */
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

/** The store's number in the WAL's first copy of page 1; 0 where it has none. */
function numberInWal(wal: string): number {
  const { size } = statSync(wal);
  const handle = openSync(wal, 'r');
  try {
    const header = readAt(handle, 0, WAL_HEADER_BYTES);
    const salt = header.subarray(SALT_AT, SALT_AT + SALT_BYTES);
    const frameBytes = FRAME_HEADER_BYTES + header.readUInt32BE(PAGE_SIZE_AT);
    for (let at = WAL_HEADER_BYTES; at + frameBytes <= size; at += frameBytes) {
      const frame = readAt(handle, at, FRAME_HEADER_BYTES);
      // A frame from before the WAL's last restart.
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

/**
 * Checks that a store's write-ahead log (WAL) is present and belongs to the store. Only the WAL has the latest commits,
 * and SQLite does not notice that a WAL is missing or another store's.
 *
 * While a store is open, there is a file `NAME.running` next to it. That file is created once the WAL has content and
 * deleted before the WAL is, so if it is there without a WAL, the WAL was lost. Each store has a random number in its
 * header (SQLite's `user_version`), and its WAL has the same number in each copy of page 1; the number shows to which
 * store a WAL belongs.
 */
import { randomInt } from 'node:crypto';
import { closeSync, existsSync, openSync, readSync, statSync, writeFileSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { deleteSecretFile } from '../../../data-folder/secret-file.js';

/** The `application_id` of lockgate's stores: "lkgt". */
export const APPLICATION_ID = 0x6c6b6774;

const RUNNING_TEXT =
  'A gateway has this store open, or was killed. The file in this folder that ends in -wal is part of the store.';

/* The format of a WAL (https://www.sqlite.org/fileformat2.html#the_write_ahead_log). */
const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const PAGE_SIZE_OFFSET = 8;
const SALT_OFFSET = 16;
const FRAME_SALT_OFFSET = 8;
const SALT_BYTES = 8;
/** The offset of the store's random number in page 1. */
const STORE_NUMBER_OFFSET = 60;
const MAX_STORE_NUMBER = 2 ** 31 - 1;

/** Returns the path of the file that marks a store as open. */
export function runningFileOf(file: string): string {
  return `${file}.running`;
}

/**
 * Marks the store as open. Must be called once the WAL has content. The mark is not durable: if a power loss removes
 * it, the only effect is that a lost WAL would not be noticed.
 */
export function markRunning(file: string): void {
  if (!isWalEmpty(file)) writeFileSync(runningFileOf(file), `${RUNNING_TEXT}\n`, { mode: 0o600 });
}

/**
 * Removes the mark, durably, with the function for secrets' files. Must be called before the WAL is truncated or
 * deleted: after a power cut, a mark without a WAL would be taken for a lost WAL.
 */
export function unmarkRunning(file: string): void {
  if (existsSync(runningFileOf(file))) deleteSecretFile(runningFileOf(file));
}

/**
 * Closes the only connection of a store that could not be opened for use. Closing may delete the WAL, so the mark is
 * removed first; it is set again if a WAL is left.
 */
export function closeUnopened(writer: Database, file: string): void {
  const wasRunning = existsSync(runningFileOf(file));
  unmarkRunning(file);
  writer.close();
  if (wasRunning) markRunning(file);
}

/** Gives a new store its random number and lockgate's application id, and puts page 1 into the WAL. */
export function numberStore(writer: Database): void {
  if (writer.pragma('user_version', { simple: true }) === 0) {
    writer.pragma(`application_id = ${APPLICATION_ID}`);
    writer.pragma(`user_version = ${randomInt(1, MAX_STORE_NUMBER)}`);
    // A WAL can be compared with the number only once the number is in the file.
    writer.pragma('wal_checkpoint(TRUNCATE)');
  }
  rewriteNumber(writer);
}

/** Writes the same number again, so that the WAL is not empty and has page 1. */
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

/**
 * Whether the WAL was lost: the store was not closed, and its WAL is missing or empty. An empty one means the same,
 * since any program that opens the store, even to read it, creates a missing WAL.
 */
export function isWalLost(file: string): boolean {
  return existsSync(runningFileOf(file)) && isWalEmpty(file);
}

function isWalEmpty(file: string): boolean {
  return (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/** Whether the WAL belongs to another store, by its number. */
export function isWalForeign(file: string): boolean {
  const storeNumber = readNumberAt(file, STORE_NUMBER_OFFSET);
  const walNumber = readNumberInWal(`${file}-wal`);
  return storeNumber !== 0 && walNumber !== 0 && storeNumber !== walNumber;
}

function readNumberAt(file: string, offset: number): number {
  const handle = openSync(file, 'r');
  try {
    return readAt(handle, offset, 4).readUInt32BE(0);
  } finally {
    closeSync(handle);
  }
}

/** Returns the store's number in the WAL's first copy of page 1; 0 if the WAL has no page 1. */
function readNumberInWal(wal: string): number {
  const { size } = statSync(wal);
  const handle = openSync(wal, 'r');
  try {
    const header = readAt(handle, 0, WAL_HEADER_BYTES);
    const salt = header.subarray(SALT_OFFSET, SALT_OFFSET + SALT_BYTES);
    const frameBytes = FRAME_HEADER_BYTES + header.readUInt32BE(PAGE_SIZE_OFFSET);
    for (let offset = WAL_HEADER_BYTES; offset + frameBytes <= size; offset += frameBytes) {
      const frame = readAt(handle, offset, FRAME_HEADER_BYTES);
      // Another salt: a frame from before the WAL's last restart.
      if (!frame.subarray(FRAME_SALT_OFFSET, FRAME_SALT_OFFSET + SALT_BYTES).equals(salt)) return 0;
      // A frame starts with its page's number.
      if (frame.readUInt32BE(0) === 1)
        return readAt(handle, offset + FRAME_HEADER_BYTES + STORE_NUMBER_OFFSET, 4).readUInt32BE(0);
    }
    return 0;
  } finally {
    closeSync(handle);
  }
}

function readAt(handle: number, offset: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  readSync(handle, buffer, 0, bytes, offset);
  return buffer;
}

/**
 * Makes a SQLite store in the state that a kill -9 leaves behind: its last commits are only in the write-ahead log
 * (WAL), not yet in the database file. Both files are copied while the store is still open, between two writes.
 */
import { copyFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { openSqliteStore } from '../../../gateway/store/sqlite/open-sqlite-store.js';
import { UplinkSource } from './append-fleet.js';
import { type Teardown, tempFolder } from './temp-folder.js';

const WAL_HEADER_BYTES = 32;
const PAGE_BYTES = 4096;
/** A frame of the WAL: a header of 24 bytes, whose first four bytes are the page's number, and the page. */
const FRAME_BYTES = 24 + PAGE_BYTES;
/** Offset in a frame's header of a number that is 0 except in the last frame of a commit. */
const COMMIT_OFFSET_BYTES = 4;
const UPLINKS_PER_COMMIT = 20;

/** The copied store. */
export interface KilledStore {
  readonly file: string;
  /** Where each commit of the WAL ends, in bytes. */
  readonly commitEnds: readonly number[];
  /** Whether the WAL has a newer copy of the page with this byte of the file, so that the file's copy is never read. */
  readonly isReplaced: (offset: number) => boolean;
}

/**
 * Makes a killed store whose WAL has `commits` commits.
 *
 * @param folder has a store made by `stockStore` with this many locks; the commits are added to it
 */
export async function killedStore(
  test: Teardown,
  folder: string,
  locks: number,
  commits: number,
): Promise<KilledStore> {
  const store = await openSqliteStore(folder);
  const uplinkSource = new UplinkSource(locks);
  for (let commit = 0; commit < commits; commit += 1) {
    const { incoming, ...rest } = uplinkSource.nextCommit(UPLINKS_PER_COMMIT);
    // The stocked uplinks have boot 1. With another boot, none of these repeats one of them.
    const uplinks = incoming.map((uplink) => (uplink.type === 'uplink' ? { ...uplink, boot: 2 } : uplink));
    await store.append({ ...rest, incoming: uplinks });
  }
  const file = path.join(tempFolder(test), 'killed.sqlite');
  for (const suffix of ['', '-wal']) copyFileSync(path.join(folder, `lockgate.sqlite${suffix}`), `${file}${suffix}`);
  await store.close();
  const frames = framesOf(readFileSync(`${file}-wal`));
  const pages = new Set(frames.map(({ page }) => page));
  return {
    file,
    commitEnds: frames.filter(({ isCommit }) => isCommit).map(({ end }) => end),
    isReplaced: (offset) => pages.has(1 + Math.floor(offset / PAGE_BYTES)),
  };
}

/** The frames of a WAL (https://sqlite.org/fileformat2.html#walformat), each with the offset of its end. */
function framesOf(wal: Buffer): { page: number; isCommit: boolean; end: number }[] {
  return Array.from({ length: Math.floor((wal.length - WAL_HEADER_BYTES) / FRAME_BYTES) }, (_, index) => {
    const offset = WAL_HEADER_BYTES + index * FRAME_BYTES;
    const isCommit = wal.readUInt32BE(offset + COMMIT_OFFSET_BYTES) !== 0;
    return { page: wal.readUInt32BE(offset), isCommit, end: offset + FRAME_BYTES };
  });
}

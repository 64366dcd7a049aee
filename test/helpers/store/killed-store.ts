/**
 * A store as a kill -9 leaves it: the last commits stand in its WAL alone. It is copied while it is open, when nothing
 * is written.
 */
import { copyFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { openSqliteStore } from '../../../gateway/store/sqlite/sqlite-store.js';
import type { SeededChance } from '../pair/seeded-chance.js';
import { AppendFleet } from './append-fleet.js';
import { type Stock, stockStore } from './stocked-store.js';
import { type Teardown, tempFolder } from './temp-folder.js';

const WAL_HEADER_BYTES = 32;
const FRAME_BYTES = 24 + 4096;
const COMMIT_AT = 4;
/** Uplinks of one commit. */
const PER_COMMIT = 20;

export interface KilledStore {
  readonly file: string;
  /** Where each commit of the WAL ends, in bytes. */
  readonly commitEnds: readonly number[];
  /** Whether the page that has this byte of the file stands in the WAL, so that nobody reads it in the file. */
  readonly isReplaced: (at: number) => boolean;
}

/** Makes one whose WAL has `commits` commits. */
export async function killedStore(
  test: Teardown,
  stock: Stock,
  commits: number,
  chance: SeededChance,
): Promise<KilledStore> {
  const folder = tempFolder(test);
  await stockStore(folder, stock, chance);
  const store = await openSqliteStore(folder);
  const fleet = new AppendFleet(stock.locks);
  for (let done = 0; done < commits; done += 1) {
    const { incoming, ...rest } = fleet.batch(PER_COMMIT);
    // Of another boot, so that none of them is a repeat.
    const uplinks = incoming.map((each) => (each.type === 'uplink' ? { ...each, boot: 2 } : each));
    await store.append({ ...rest, incoming: uplinks });
  }
  const file = path.join(tempFolder(test), 'killed.sqlite');
  for (const end of ['', '-wal']) copyFileSync(path.join(folder, `lockgate.sqlite${end}`), `${file}${end}`);
  await store.close();
  const frames = framesOf(readFileSync(`${file}-wal`));
  const pages = new Set(frames.map(({ page }) => page));
  return {
    file,
    commitEnds: frames.filter(({ isCommit }) => isCommit).map(({ end }) => end),
    isReplaced: (at) => pages.has(1 + Math.floor(at / 4096)),
  };
}

function framesOf(wal: Buffer): { page: number; isCommit: boolean; end: number }[] {
  return Array.from({ length: Math.floor((wal.length - WAL_HEADER_BYTES) / FRAME_BYTES) }, (_, index) => {
    const at = WAL_HEADER_BYTES + index * FRAME_BYTES;
    const isCommit = wal.readUInt32BE(at + COMMIT_AT) !== 0;
    return { page: wal.readUInt32BE(at), isCommit, end: at + FRAME_BYTES };
  });
}

/**
 * Simulates a loss of power: after a process was killed, everything that it wrote without an fsync is undone
 * (quality.md §2). The library built from power-loss.cc is preloaded into the process. For each write to a file since
 * its last fsync, the library stores the bytes that the write overwrote; this file reads these records and restores the
 * bytes.
 *
 * A disk writes sectors in any order, so at a loss of power any of the unsynced sectors may have been written. So half
 * of the simulated losses undo every unsynced write, and the other half only some sectors, at random.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { root } from '../house/our-files.js';
import type { SeededChance } from '../pair/seeded-chance.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';

/** The bytes that a disk writes either completely or not at all. */
const SECTOR_BYTES = 512;
/** The header of a record: the offset, the length of the old bytes and the file's old size, 64 bits each. */
const RECORD_HEADER_BYTES = 24;

/** A write that was not synced: the bytes that it overwrote, and the file's size before it. */
interface UnsyncedWrite {
  readonly offset: number;
  readonly oldBytes: Buffer;
  /** The file's size before the write. */
  readonly size: number;
}

/** The library, and the folder of its records. */
export class PowerLoss {
  readonly #library: string;
  /** For each recorded file, INODE.journal has its unsynced writes, and INODE.path its path. */
  readonly #journalFolder: string;

  private constructor(library: string, journalFolder: string) {
    this.#library = library;
    this.#journalFolder = journalFolder;
  }

  /** Builds the library; undefined if it can't be built, since it needs Linux and g++. */
  static build(test: Teardown): PowerLoss | undefined {
    if (process.platform !== 'linux') return undefined;
    const folder = tempFolder(test);
    const library = path.join(folder, 'power-loss.so');
    const source = path.join(root, 'test/helpers/durability/power-loss.cc');
    const { status } = spawnSync('g++', ['-shared', '-fPIC', '-O1', '-o', library, source]);
    if (status !== 0) return undefined;
    const journalFolder = path.join(folder, 'journal');
    mkdirSync(journalFolder);
    return new PowerLoss(library, journalFolder);
  }

  /** The environment variables for a process whose writes to files in `folder` are recorded. */
  environment(folder: string): NodeJS.ProcessEnv {
    return { LD_PRELOAD: this.#library, POWER_LOSS_FOLDER: folder, POWER_LOSS_JOURNAL: this.#journalFolder };
  }

  /** Undoes what the killed process had not synced. Returns how many bytes of its files changed by that. */
  undoUnsynced(chance: SeededChance): number {
    const undoesAll = chance.next() >= 0.5;
    let lost = 0;
    for (const name of readdirSync(this.#journalFolder).sort()) {
      if (!name.endsWith('.journal')) continue;
      const journal = path.join(this.#journalFolder, name);
      const file = readFileSync(journal.replace(/journal$/, 'path'), 'utf8');
      // The file may have been deleted since, or replaced by another one with the same path.
      const isSameFile = existsSync(file) && `${statSync(file).ino}.journal` === name;
      if (isSameFile) lost += undo(file, readUnsyncedWrites(readFileSync(journal)), undoesAll ? undefined : chance);
      rmSync(journal);
      // SQLite rebuilds its shared memory from the files.
      rmSync(`${file}-shm`, { force: true });
    }
    return lost;
  }
}

/**
 * Reads the records of a journal, in order. Each has three numbers of 8 bytes (the write's offset, how many old bytes
 * follow, the file's size before it), and the bytes that the write replaced.
 */
function readUnsyncedWrites(bytes: Buffer): UnsyncedWrite[] {
  const writes: UnsyncedWrite[] = [];
  for (let position = 0; position < bytes.length; ) {
    const [offset, length, size] = [0, 8, 16].map((fieldOffset) =>
      Number(bytes.readBigInt64LE(position + fieldOffset)),
    );
    writes.push({
      offset: offset ?? 0,
      oldBytes: bytes.subarray(position + RECORD_HEADER_BYTES, position + RECORD_HEADER_BYTES + (length ?? 0)),
      size: size ?? 0,
    });
    position += RECORD_HEADER_BYTES + (length ?? 0);
  }
  return writes;
}

/** Undoes all unsynced writes of a file or, with a `chance`, some sectors of them. Returns how many bytes changed. */
function undo(file: string, writes: readonly UnsyncedWrite[], chance: SeededChance | undefined): number {
  if (writes.length === 0) return 0;
  const current = readFileSync(file);
  const synced = contentAtLastSync(current, writes);
  const after = chance === undefined ? synced : mixSectors(synced, current, chance);
  writeFileSync(file, after);
  return countDifferent(current, after);
}

/** The file's bytes as they were at its last fsync. */
function contentAtLastSync(current: Buffer, writes: readonly UnsyncedWrite[]): Buffer {
  const image = Buffer.alloc(writes.reduce((maximum, { size }) => Math.max(maximum, size), current.length));
  current.copy(image);
  for (const { offset, oldBytes } of writes.toReversed()) oldBytes.copy(image, offset);
  return image.subarray(0, writes[0]?.size);
}

/** Returns each sector at random either as last synced or with its current bytes; the same for the file's length. */
function mixSectors(synced: Buffer, current: Buffer, chance: SeededChance): Buffer {
  const after = Buffer.alloc(chance.pick([synced, current]).length);
  for (let position = 0; position < after.length; position += SECTOR_BYTES)
    chance
      .pick([synced, current])
      .subarray(position, position + SECTOR_BYTES)
      .copy(after, position);
  return after;
}

/** How many bytes differ, or are in only one of the two. */
function countDifferent(a: Buffer, b: Buffer): number {
  let count = Math.abs(a.length - b.length);
  for (let index = 0; index < Math.min(a.length, b.length); index += 1) if (a[index] !== b[index]) count += 1;
  return count;
}

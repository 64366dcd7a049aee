/**
 * Loss of power: what a process wrote and did not fsync is taken back after it was killed (quality.md §2). The library
 * of power-loss.cc, preloaded into the process, notes what each such write overwrote; here the notes are read.
 *
 * A disk without power keeps no order: of what was not synced, any sectors may be there and any not. So one loss in two
 * takes all of it back, and the others only some sectors, by chance.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { root } from '../house/our-files.js';
import type { SeededChance } from '../pair/seeded-chance.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';

/** What a disk writes whole or not at all, bytes. */
const SECTOR = 512;
/** Offset, length of what was there, size of the file before: three numbers of 64 bits. */
const HEAD = 24;

/** A write that was not synced: what stood there, and how long the file was. */
interface Note {
  readonly offset: number;
  readonly before: Buffer;
  readonly size: number;
}

export class PowerLoss {
  readonly #library: string;
  readonly #journal: string;

  private constructor(library: string, journal: string) {
    this.#library = library;
    this.#journal = journal;
  }

  /** Undefined where it can't be had: it wants Linux and a compiler. */
  static make(test: Teardown): PowerLoss | undefined {
    if (process.platform !== 'linux') return undefined;
    const folder = tempFolder(test);
    const library = path.join(folder, 'power-loss.so');
    const source = path.join(root, 'test/helpers/durability/power-loss.cc');
    const { status } = spawnSync('g++', ['-shared', '-fPIC', '-O1', '-o', library, source]);
    if (status !== 0) return undefined;
    const journal = path.join(folder, 'journal');
    mkdirSync(journal);
    return new PowerLoss(library, journal);
  }

  /** With what a process is to be started whose files in `folder` are meant. */
  environment(folder: string): NodeJS.ProcessEnv {
    return { LD_PRELOAD: this.#library, POWER_LOSS_FOLDER: folder, POWER_LOSS_JOURNAL: this.#journal };
  }

  /** Takes back what the process, killed by now, had not synced; how many bytes of its files are others now. */
  strike(chance: SeededChance): number {
    const keepsSome = chance.next() < 0.5;
    let lost = 0;
    for (const name of readdirSync(this.#journal).sort()) {
      if (!name.endsWith('.journal')) continue;
      const journal = path.join(this.#journal, name);
      const file = readFileSync(journal.replace(/journal$/, 'path'), 'utf8');
      const isThere = existsSync(file) && `${statSync(file).ino}.journal` === name;
      if (isThere) lost += takeBack(file, readNotes(readFileSync(journal)), keepsSome ? chance : undefined);
      rmSync(journal);
      rmSync(`${file}-shm`, { force: true });
    }
    return lost;
  }
}

function readNotes(bytes: Buffer): Note[] {
  const notes: Note[] = [];
  for (let at = 0; at < bytes.length; ) {
    const [offset, length, size] = [0, 8, 16].map((place) => Number(bytes.readBigInt64LE(at + place)));
    notes.push({ offset: offset ?? 0, before: bytes.subarray(at + HEAD, at + HEAD + (length ?? 0)), size: size ?? 0 });
    at += HEAD + (length ?? 0);
  }
  return notes;
}

function takeBack(file: string, notes: readonly Note[], keepsSome: SeededChance | undefined): number {
  if (notes.length === 0) return 0;
  const now = readFileSync(file);
  const synced = undone(now, notes);
  const after = keepsSome === undefined ? synced : torn(synced, now, keepsSome);
  writeFileSync(file, after);
  return differing(now, after);
}

/** The file as it was at its last sync. */
function undone(now: Buffer, notes: readonly Note[]): Buffer {
  const image = Buffer.alloc(notes.reduce((most, { size }) => Math.max(most, size), now.length));
  now.copy(image);
  for (const { offset, before } of notes.toReversed()) before.copy(image, offset);
  return image.subarray(0, notes[0]?.size);
}

/** Each sector as it was or as it is, by chance; the end of the file too. */
function torn(synced: Buffer, now: Buffer, chance: SeededChance): Buffer {
  const after = Buffer.alloc(chance.pick([synced, now]).length);
  for (let at = 0; at < after.length; at += SECTOR)
    chance
      .pick([synced, now])
      .subarray(at, at + SECTOR)
      .copy(after, at);
  return after;
}

function differing(one: Buffer, other: Buffer): number {
  let count = Math.abs(one.length - other.length);
  for (let at = 0; at < Math.min(one.length, other.length); at += 1) if (one[at] !== other[at]) count += 1;
  return count;
}

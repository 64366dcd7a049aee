/** Bit rot: single bits of a store's file are flipped, one at a time, and `db check` is asked what it finds. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { checkDatabase } from '../../gateway/store/check/check.js';
import { checkBlocks } from '../../gateway/store/check/check-blocks.js';
import type { SeededChance } from './seeded-chance.js';

export interface Flips {
  readonly count: number;
  readonly found: number;
  /** The bits that were not found: byte and bit. */
  readonly missed: readonly string[];
}

/** Flips `count` bits of chance in the whole file; it is as it was in the end. */
export async function flipBits(file: string, count: number, chance: SeededChance): Promise<Flips> {
  const bytes = readFileSync(file);
  const missed: string[] = [];
  for (let done = 0; done < count; done += 1) {
    const at = chance.between(0, bytes.length);
    const bit = chance.between(0, 8);
    if (!(await isFound(file, bytes, at, bit))) missed.push(`byte ${at}, bit ${bit}`);
  }
  restore(file, bytes);
  return { count, found: count - missed.length, missed };
}

async function isFound(file: string, bytes: Buffer, at: number, bit: number): Promise<boolean> {
  const flipped = Buffer.from(bytes);
  flipped.writeUInt8(flipped.readUInt8(at) ^ (1 << bit), at);
  restore(file, flipped);
  // One check that finds it is enough, and the sums of blocks are the quickest.
  let damaged = 0;
  checkBlocks(file, { damage: () => (damaged += 1), progress: () => undefined });
  return damaged > 0 || (await checkDatabase(file)).damage.length > 0;
}

/** What SQLite left beside it is of the file before. */
function restore(file: string, bytes: Buffer): void {
  for (const end of ['-wal', '-shm']) rmSync(`${file}${end}`, { force: true });
  writeFileSync(file, bytes);
}

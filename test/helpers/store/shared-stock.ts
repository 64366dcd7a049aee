/**
 * One store with rows in each table for all tests of a file, each of which gets a copy: making it costs more than most
 * tests.
 */
import { cpSync } from 'node:fs';
import path from 'node:path';
import type { SeededChance } from '../pair/seeded-chance.js';
import { type StockSize, stockStore } from './stocked-store.js';
import { type Teardown, tempFolder } from './temp-folder.js';

/** A closed store: its folder, and its file there. */
export interface StockCopy {
  readonly folder: string;
  readonly file: string;
}

/** Copies the store to a folder that is deleted after the test. */
export type CopyStock = (test: Teardown) => Promise<StockCopy>;

/** Returns a function that copies the store. The first call makes it; it is deleted at the end of `tests`. */
export function sharedStock(tests: Teardown, size: StockSize, chance: SeededChance): CopyStock {
  let made: Promise<string> | undefined;
  const make = async (): Promise<string> => {
    const folder = tempFolder(tests);
    await stockStore(folder, size, chance);
    return folder;
  };
  const copy = async (test: Teardown): Promise<StockCopy> => {
    made ??= make();
    const folder = tempFolder(test);
    cpSync(await made, folder, { recursive: true });
    return { folder, file: path.join(folder, 'lockgate.sqlite') };
  };
  return copy;
}

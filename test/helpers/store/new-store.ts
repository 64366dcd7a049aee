/**
 * New, empty stores for tests. Creating one takes 70 ms of CPU time, and a test file needs dozens, so one is created
 * for each build and then copied. Tests of the creation itself call openSqliteStore on an empty folder instead.
 */
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Store } from '../../../gateway/store/contract/store.js';
import type { StoreOptions } from '../../../gateway/store/contract/store-options.js';
import { openSqliteStore } from '../../../gateway/store/sqlite/open-sqlite-store.js';
import { root } from '../house/our-files.js';

const FILE = 'lockgate.sqlite';
/** The store that is copied. Each build empties this folder. */
const CACHED_FILE = path.join(root, 'dist/program/new-store.sqlite');

let newStoreBytes: Promise<Buffer> | undefined;

/** Puts a new store into an existing folder without a store; does nothing in any other folder. */
export async function makeStore(folder: string): Promise<void> {
  const file = path.join(folder, FILE);
  if (!existsSync(folder) || !statSync(folder).isDirectory() || existsSync(file)) return;
  newStoreBytes ??= createStoreBytes();
  writeFileSync(file, await newStoreBytes, { mode: 0o600 });
}

/** Opens the store in a folder, as openSqliteStore does. */
export async function openStore(folder: string, options: StoreOptions = {}): Promise<Store> {
  await makeStore(folder);
  return await openSqliteStore(folder, options);
}

/** The bytes of an empty store's file, which the first test process of a build makes and the others read. */
async function createStoreBytes(): Promise<Buffer> {
  if (existsSync(CACHED_FILE)) return readFileSync(CACHED_FILE);
  const folder = mkdtempSync(path.join(tmpdir(), 'lockgate-test-'));
  try {
    await (await openSqliteStore(folder)).close();
    const bytes = readFileSync(path.join(folder, FILE));
    // Other test files run at the same time and may read the file: the rename makes it appear complete.
    const unfinished = `${CACHED_FILE}.${process.pid}`;
    writeFileSync(unfinished, bytes);
    renameSync(unfinished, CACHED_FILE);
    return bytes;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

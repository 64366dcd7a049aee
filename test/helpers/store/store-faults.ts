/**
 * Stores that fail as disks do, from the moment on at which a file lies in the data folder: so a test in another
 * process decides when.
 */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { StoreFailure } from '../../../gateway/store/contract/errors.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { overriding } from '../durability/sabotage.js';

export type StoreFault = 'io-error' | 'never-ends';

/** What an engine throws: an error with SQLite's code. */
export function sqliteError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

export const FAULTS: Readonly<Record<StoreFault, (store: Store, data: string) => Store>> = {
  /** An fsync fails. What was written before it is on the disk or not: here it is not. */
  'io-error': (store, data) =>
    overriding(store, {
      append: async (commit) => {
        if (!hasFault(data)) return await store.append(commit);
        throw new StoreFailure('append', sqliteError('SQLITE_IOERR_FSYNC', 'disk I/O error'));
      },
    }),

  /** A write never ends, as on a network disk whose server is gone. */
  'never-ends': (store, data) =>
    overriding(store, {
      append: async (commit) => {
        if (hasFault(data)) await new Promise<never>(() => undefined);
        await store.append(commit);
      },
    }),
};

function faultFile(data: string): string {
  return path.join(data, 'fault');
}

function hasFault(data: string): boolean {
  return existsSync(faultFile(data));
}

/** From now on the store of this folder fails. */
export function beginFault(data: string): void {
  writeFileSync(faultFile(data), '');
}

/** It is well again, for the next start. */
export function endFault(data: string): void {
  rmSync(faultFile(data));
}

/**
 * Stores that fail as disks do once a certain file is in the data folder, so that a test in another process decides
 * when.
 */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { StoreFailure } from '../../../gateway/store/contract/errors.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { withOverrides } from '../durability/sabotage.js';

/** How the store fails; {@link FAULTS} explains each. */
export type StoreFault = 'io-error' | 'never-ends';

/** Returns an error as an engine throws it, with SQLite's code. */
export function sqliteError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

/** Returns a store that fails in this way while the data folder has the file. */
export const FAULTS: Readonly<Record<StoreFault, (store: Store, data: string) => Store>> = {
  /** An fsync fails, and nothing of the write is on the disk. */
  'io-error': (store, data) =>
    withOverrides(store, {
      append: async (commit) => {
        if (!hasFault(data)) return await store.append(commit);
        throw new StoreFailure('append', sqliteError('SQLITE_IOERR_FSYNC', 'disk I/O error'));
      },
    }),

  /** A write never finishes, as on a network disk whose server is gone. */
  'never-ends': (store, data) =>
    withOverrides(store, {
      append: async (commit) => {
        if (hasFault(data)) await new Promise<never>(() => undefined);
        return await store.append(commit);
      },
    }),
};

function faultFile(data: string): string {
  return path.join(data, 'fault');
}

function hasFault(data: string): boolean {
  return existsSync(faultFile(data));
}

/** Makes the store of this folder fail from now on. */
export function beginFault(data: string): void {
  writeFileSync(faultFile(data), '');
}

/** Ends the fault, so that the next start of the gateway succeeds. */
export function endFault(data: string): void {
  rmSync(faultFile(data));
}

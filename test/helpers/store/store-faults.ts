/**
 * Stores that fail as disks do: of a gateway in the test's process, or once a certain file is in the data folder, so
 * that a test in another process decides when.
 */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { StoreFailure } from '../../../gateway/store/contract/errors.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { withOverrides } from '../durability/sabotage.js';

/**
 * The store of a gateway in the test's process. Once `isFull` is set, nothing is appended, as on a full disk; the
 * store's probes fail too, so that the gateway stays unready. Replacing a lock's credential always fails so.
 */
export class FillingStore {
  isFull = false;

  /** An option of the gateway. */
  readonly wrapStore = (store: Store): Store => {
    const full = (): never => {
      throw sqliteError('SQLITE_FULL', 'database or disk is full');
    };
    return withOverrides(store, {
      replaceLockCredential: async () => full(),
      append: async (commit) => (this.isFull ? full() : await store.append(commit)),
    });
  };
}

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

/**
 * Work on a data folder by its owner, while no gateway is running on it. The store is open only during the work, which
 * the audit log records.
 */
import { existsSync } from 'node:fs';
import { type Clock, systemClock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { type AuditDetails, makeNoted } from '../audit/audit.js';
import type { AuditWho } from '../store/contract/audit-store.js';
import type { Store } from '../store/contract/store.js';
import type { StoreOptions } from '../store/contract/store-options.js';
import { openStore, sqliteUrl } from '../store/open-store.js';

/** Whoever can write to the folder's files, where no more is known. */
export const OWNER: AuditWho = { actor: 'owner', address: null, agent: null, osUser: null, token: null };

/** What the audit log records about the work, and how damage is handled. */
export interface FolderWork<T> {
  /** As `secrets.rotate-key`. */
  readonly action: string;
  /** Who does it; the folder's owner by default. */
  readonly who?: AuditWho | undefined;
  /** The wall clock; the system's by default. */
  readonly clock?: Clock | undefined;
  /** What the audit log records of the result. */
  readonly facts: (done: T) => AuditDetails;
  /** Called with a sentence where files of the folder were readable by others. */
  readonly onMended?: StoreOptions['onMended'];
  /** Where it is given, a damaged store is opened too (store/contract/store-options.ts). */
  readonly onDamage?: StoreOptions['onDamage'];
}

/** @throws LockgateError `input-data` where there is no such folder */
export function checkFolder(folder: string): void {
  if (!existsSync(folder)) throw new LockgateError('input-data', `there is no data folder ${folder}`);
}

/**
 * Runs `work` on the store of a folder, with an entry in the audit log.
 *
 * @throws LockgateError `input-data`, `data-in-use` while a gateway runs; what `openStore` and `work` throw
 */
export async function workOnFolder<T>(
  folder: string,
  { action, who = OWNER, clock = systemClock, facts, onMended, onDamage }: FolderWork<T>,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  checkFolder(folder);
  const store = await openStore(sqliteUrl(folder), { onMended, onDamage });
  try {
    return await makeNoted(store.audit, clock, {
      change: { who, action, object: '', before: null },
      work: () => work(store),
      describe: (done) => ({ object: '', after: done === undefined ? null : facts(done as T) }),
    });
  } finally {
    await store.close();
  }
}

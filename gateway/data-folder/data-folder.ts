/**
 * Runs maintenance tasks on a data folder while no gateway is running on it. The store is open only during the task,
 * and the audit log records the task.
 */
import { existsSync } from 'node:fs';
import { type Clock, systemClock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { type AuditDetails, makeRecorded } from '../audit/audit.js';
import type { AuditWho } from '../store/contract/operators/audit-store.js';
import type { Store } from '../store/contract/store.js';
import type { StoreOptions } from '../store/contract/store-options.js';
import { openStore, sqliteUrl } from '../store/open-store.js';

/** The actor in the audit log if nothing more is known: a person who can write to the folder's files. */
export const OWNER: AuditWho = { actor: 'owner', address: null, agent: null, osUser: null, token: null };

/** What the audit log records about a task, and how damage of the store is handled. */
export interface FolderWork<T> {
  /** The action's name, for example `secrets.rotate-key`. */
  readonly action: string;
  /** Who does it; the folder's owner by default. */
  readonly who?: AuditWho | undefined;
  /** The wall clock; the system's by default. */
  readonly clock?: Clock | undefined;
  /** Returns what the audit log records of the task's result. */
  readonly auditDetails: (result: T) => AuditDetails;
  /** Called with a sentence after file modes were corrected: other users could read files of the folder. */
  readonly onModesCorrected?: StoreOptions['onModesCorrected'];
  /** If given, a damaged store is opened too (store/contract/store-options.ts). */
  readonly onDamage?: StoreOptions['onDamage'];
}

/** @throws LockgateError `input-data` if the folder does not exist */
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
  { action, who = OWNER, clock = systemClock, auditDetails, onModesCorrected, onDamage }: FolderWork<T>,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  checkFolder(folder);
  const store = await openStore(sqliteUrl(folder), { onModesCorrected, onDamage });
  try {
    return await makeRecorded(store.audit, clock, {
      change: { who, action, object: '', before: null },
      work: () => work(store),
      // A task that failed has no result.
      describe: (result) => ({ object: '', after: result === undefined ? null : auditDetails(result as T) }),
    });
  } finally {
    await store.close();
  }
}

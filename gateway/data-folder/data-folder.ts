/**
 * Work on a data folder by whoever owns it, with no gateway running on it: the store is opened for as long as the work
 * lasts, and the audit log has it.
 */
import { existsSync } from 'node:fs';
import { type Clock, systemClock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { type AuditFacts, makeNoted } from '../audit/audit.js';
import type { AuditWho } from '../store/contract/audit-store.js';
import type { Store } from '../store/contract/store.js';
import type { StoreOptions } from '../store/contract/store-options.js';
import { openStore, sqliteUrl } from '../store/open-store.js';

/** Whoever can write the folder's files, where no more is known. */
export const OWNER: AuditWho = { actor: 'owner', address: null, agent: null, osUser: null, token: null };

/** What the audit log is told of it. */
export interface FolderWork<T> {
  /** As `secrets.rotate-key`. */
  readonly action: string;
  /** Who does it; the folder's owner where nobody says. */
  readonly who?: AuditWho | undefined;
  /** The wall's; the system's where it is left out. */
  readonly clock?: Clock | undefined;
  /** Of what came of it, what is kept. */
  readonly facts: (done: T) => AuditFacts;
  /** Told a sentence where files of the folder could be read by others. */
  readonly onMended?: StoreOptions['onMended'];
  /** Where it is given, a damaged store is worked on too (store/contract/store-options.ts). */
  readonly onDamage?: StoreOptions['onDamage'];
}

/** @throws LockgateError `input-data` where there is no such folder */
export function checkFolder(folder: string): void {
  if (!existsSync(folder)) throw new LockgateError('input-data', `there is no data folder ${folder}`);
}

/**
 * Does it, with an entry in the audit log.
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
      tell: (done) => ({ object: '', after: done === undefined ? null : facts(done as T) }),
    });
  } finally {
    await store.close();
  }
}

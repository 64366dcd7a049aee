/**
 * Going on with a store that its checksums call damaged, because whoever owns its folder says so. What proves the
 * damage is kept under another name, and the audit log and a notice have that it was accepted.
 */
import { existsSync } from 'node:fs';
import { type Clock, systemClock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { AuditWho } from '../store/contract/audit-store.js';
import { storeFileOf } from '../store/store-at-rest.js';
import { workOnFolder } from './data-folder.js';

/** What was accepted. */
export interface AcceptedDamage {
  /** Sentences. */
  readonly damage: readonly string[];
  /** The files that prove it, under the names that they have now. */
  readonly kept: readonly string[];
}

export interface AcceptOptions {
  readonly clock?: Clock;
  /** Who does so, for the audit log. */
  readonly who?: AuditWho;
  /** Told a sentence where files of the folder could be read by others. */
  readonly onMended?: (sentence: string) => void;
}

/**
 * Accepts the damage of the store in a folder that no gateway runs on.
 *
 * @throws LockgateError `input-data` where there is no store, `store-whole` where nothing is wrong; what `workOnFolder`
 * throws
 */
export async function acceptDamage(folder: string, options: AcceptOptions = {}): Promise<AcceptedDamage> {
  const { clock = systemClock } = options;
  const file = storeFileOf(folder);
  if (!existsSync(file)) throw new LockgateError('input-data', `there is no store in ${folder}: no ${file}`);
  const found: AcceptedDamage[] = [];
  const facts = ({ damage, kept }: AcceptedDamage) => ({ damage, kept });
  const onDamage = (damage: readonly string[], kept: readonly string[]): void => {
    found.push({ damage, kept });
  };
  return await workOnFolder(folder, { ...options, action: 'store.accept-damage', facts, onDamage }, async (store) => {
    const [accepted] = found;
    if (accepted === undefined)
      throw new LockgateError('store-whole', `nothing is wrong with the store in ${folder} that a start would refuse`);
    const { damage, kept } = accepted;
    const text = `an operator went on with a damaged store: ${damage.join('; ')} (kept: ${kept.join(', ')})`;
    const nowMs = clock.now();
    const when = { count: 1, firstAtMs: nowMs, lastAtMs: nowMs, resolvedAtMs: null };
    await store.notices.write([{ kind: 'store-damaged', subject: 'store', text, ...when }]);
    return accepted;
  });
}

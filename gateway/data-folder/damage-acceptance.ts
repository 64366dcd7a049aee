/**
 * Accepts a store whose checksums report damage, because the owner of its folder decides so. The files that prove the
 * damage are retained under other names; the audit log and a notice record the decision.
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
  /** The files that prove it, under their new names. */
  readonly kept: readonly string[];
}

export interface AcceptOptions {
  readonly clock?: Clock;
  /** Who accepts it, for the audit log. */
  readonly who?: AuditWho;
  /** Called with a sentence where files of the folder were readable by others. */
  readonly onMended?: (sentence: string) => void;
}

/**
 * Accepts the damage of the store in a folder on which no gateway is running.
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

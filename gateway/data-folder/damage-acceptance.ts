/**
 * Accepts a damaged store on request of the folder's owner (`lockgate db accept`), so that the gateway starts with it
 * again. The files that prove the damage are renamed and retained; the audit log and a notice record the decision.
 */
import { existsSync } from 'node:fs';
import { type Clock, systemClock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { AuditWho } from '../store/contract/operators/audit-store.js';
import { storeFileOf } from '../store/store-at-rest.js';
import { workOnFolder } from './data-folder.js';

/** What was accepted. */
export interface AcceptedDamage {
  /** A sentence for each finding. */
  readonly damage: readonly string[];
  /** The files that prove the damage, under their new names. */
  readonly kept: readonly string[];
}

export interface AcceptOptions {
  readonly clock?: Clock;
  /** Who accepts the damage, for the audit log. */
  readonly who?: AuditWho;
  /** Called with a sentence after file modes were corrected: other users could read files of the folder. */
  readonly onModesCorrected?: (sentence: string) => void;
}

/**
 * Accepts the damage of the store in a folder on which no gateway is running.
 *
 * @throws LockgateError `input-data` if there is no store, `store-whole` if the store is undamaged; what `workOnFolder`
 * throws
 */
export async function acceptDamage(folder: string, options: AcceptOptions = {}): Promise<AcceptedDamage> {
  const { clock = systemClock } = options;
  const file = storeFileOf(folder);
  if (!existsSync(file)) throw new LockgateError('input-data', `there is no store in ${folder}: no ${file}`);
  /** Set while the store is opened, if it is damaged. */
  const found: AcceptedDamage[] = [];
  const auditDetails = ({ damage, kept }: AcceptedDamage) => ({ damage, kept });
  const onDamage = (damage: readonly string[], kept: readonly string[]): void => {
    found.push({ damage, kept });
  };
  // With `onDamage`, workOnFolder does not refuse a damaged store: it renames the evidence, calls this, and opens it.
  return await workOnFolder(
    folder,
    { ...options, action: 'store.accept-damage', auditDetails, onDamage },
    async (store) => {
      const [accepted] = found;
      if (accepted === undefined)
        throw new LockgateError('store-whole', `the store in ${folder} has no damage that a start would refuse`);
      const { damage, kept } = accepted;
      const text = `an operator accepted a damaged store: ${damage.join('; ')} (evidence: ${kept.join(', ')})`;
      const nowMs = clock.now();
      const occurrence = { count: 1, firstAtMs: nowMs, lastAtMs: nowMs, resolvedAtMs: null };
      await store.notices.write([{ kind: 'store-damaged', subject: 'store', text, ...occurrence }]);
      return accepted;
    },
  );
}

/** How much a merchant may keep, and the refusal of what would be more (interfaces.md §2, Fairness). */
import { LockgateError } from '../../../proto/errors.js';
import { OverBudget } from '../../fairness/over-budget.js';

/** What one merchant may keep. */
export interface Quota {
  readonly pets: number;
  /** Of one pet, in bytes. */
  readonly petBytes: number;
  readonly users: number;
  /** Of everything together, in bytes. Tokens and sessions count, and have limits of their own. */
  readonly bytes: number;
}

/** As interfaces.md §2 has it. */
export const DEFAULT_QUOTA: Quota = { pets: 100_000, petBytes: 16 * 1024, users: 1_000_000, bytes: 1024 ** 3 };

/** A quota that is full. */
export type FullQuota = 'pets' | 'users' | 'kept-bytes';

/** What a merchant keeps. */
export interface QuotaUse {
  readonly pets: number;
  readonly users: number;
  readonly bytes: number;
}

/**
 * The quota that this is over; undefined where it is within.
 *
 * @param grown what there shall be more of; the bytes grow in any case
 */
export function fullQuota(kept: QuotaUse, quota: Quota, grown?: 'pets' | 'users'): FullQuota | undefined {
  if (grown !== undefined && kept[grown] > quota[grown]) return grown;
  return kept.bytes > quota.bytes ? 'kept-bytes' : undefined;
}

/** The refusal of what would go over it. */
export function overQuota(full: FullQuota, quota: Quota): OverBudget {
  const most = {
    pets: `${quota.pets.toLocaleString('en')} pets`,
    users: `${quota.users.toLocaleString('en')} users`,
    'kept-bytes': `${quota.bytes.toLocaleString('en')} bytes in all`,
  }[full];
  return OverBudget.quota(full, `the merchant would keep more than ${most}, its quota; nothing was changed`);
}

/** A pet that would have become larger than one may be, by what its creation and its update said together. */
export class PetTooLarge extends LockgateError {
  constructor(bytes: number, { petBytes }: Quota) {
    const [now, most] = [bytes, petBytes].map((each) => each.toLocaleString('en'));
    super('pet-too-large', `the pet would have ${now} bytes of text: one has at most ${most}; nothing was changed`);
    this.name = 'PetTooLarge';
  }
}

/** How much a merchant may store, and the refusal of more (interfaces.md §2, Fairness). */
import { LockgateError } from '../../../../proto/errors.js';
import { OverBudget } from '../../../fairness/over-budget.js';

/** The limits of one merchant. */
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

/** What a merchant stores. */
export interface QuotaUse {
  readonly pets: number;
  readonly users: number;
  readonly bytes: number;
}

/**
 * The limit that the use exceeds; undefined where it is within all.
 *
 * @param grown what grows; the bytes do in any case
 */
export function fullQuota(use: QuotaUse, quota: Quota, grown?: 'pets' | 'users'): FullQuota | undefined {
  if (grown !== undefined && use[grown] > quota[grown]) return grown;
  return use.bytes > quota.bytes ? 'kept-bytes' : undefined;
}

/** The error for what would exceed it. */
export function overQuota(full: FullQuota, quota: Quota): OverBudget {
  const most = {
    pets: `${quota.pets.toLocaleString('en')} pets`,
    users: `${quota.users.toLocaleString('en')} users`,
    'kept-bytes': `${quota.bytes.toLocaleString('en')} bytes in all`,
  }[full];
  return OverBudget.quota(full, `the merchant would keep more than ${most}, its quota; nothing was changed`);
}

/** A pet that would become too large, by the members of its creation and of its update together. */
export class PetTooLarge extends LockgateError {
  constructor(bytes: number, { petBytes }: Quota) {
    const [now, most] = [bytes, petBytes].map((each) => each.toLocaleString('en'));
    super('pet-too-large', `the pet would have ${now} bytes of text: one has at most ${most}; nothing was changed`);
    this.name = 'PetTooLarge';
  }
}

/** The limits of what a merchant may store, and the errors for exceeding them (interfaces.md §2, Fairness). */
import { LockgateError } from '../../../../proto/errors.js';
import { OverBudget } from '../../../fairness/over-budget.js';

/** The limits of one merchant. */
export interface Quota {
  readonly pets: number;
  /** Maximum size of one pet. */
  readonly petBytes: number;
  readonly users: number;
  /** Maximum size of everything together. Tokens and sessions count too, and have further limits. */
  readonly bytes: number;
}

/** The quota of interfaces.md §2. */
export const DEFAULT_QUOTA: Quota = { pets: 100_000, petBytes: 16 * 1024, users: 1_000_000, bytes: 1024 ** 3 };

/** The name of a limit that is exceeded; `kept-bytes` is the limit `bytes`. */
export type ExceededQuota = 'pets' | 'users' | 'kept-bytes';

/** The current use of a merchant. */
export interface QuotaUse {
  readonly pets: number;
  readonly users: number;
  readonly bytes: number;
}

/**
 * Returns the limit that `use` exceeds; undefined if none is exceeded.
 *
 * @param grown which count grows; `bytes` is checked in any case
 */
export function exceededQuota(use: QuotaUse, quota: Quota, grown?: 'pets' | 'users'): ExceededQuota | undefined {
  if (grown !== undefined && use[grown] > quota[grown]) return grown;
  return use.bytes > quota.bytes ? 'kept-bytes' : undefined;
}

/** Returns the error for a write that would exceed the limit `full`. */
export function overQuotaError(full: ExceededQuota, quota: Quota): OverBudget {
  const limit = {
    pets: `${quota.pets.toLocaleString('en')} pets`,
    users: `${quota.users.toLocaleString('en')} users`,
    'kept-bytes': `${quota.bytes.toLocaleString('en')} bytes in all`,
  }[full];
  return OverBudget.quota(full, `the merchant would store more than ${limit}, its quota; nothing was changed`);
}

/** The error for a pet that would be too large, counting the members of its creation and of its update. */
export class PetTooLarge extends LockgateError {
  constructor(bytes: number, { petBytes }: Quota) {
    const [size, limit] = [bytes, petBytes].map((each) => each.toLocaleString('en'));
    super(
      'pet-too-large',
      `the pet would have ${size} bytes of text, more than the maximum of ${limit}; nothing was changed`,
    );
    this.name = 'PetTooLarge';
  }
}

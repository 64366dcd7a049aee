/** The errors for merchants' writes that an engine refused. */
import { LockgateError } from '../../../proto/errors.js';
import { RequestFaults } from '../../faults.js';
import { MAX_INVITATIONS_PER_MERCHANT } from '../contract/merchants/invitation-store.js';
import type { MerchantOperation, MerchantOutcome, MerchantRefusal } from '../contract/merchants/merchant-write.js';
import { overQuotaError, PetTooLarge, type Quota } from '../contract/merchants/quota.js';

/** Makes a write for a merchant; `action` completes a failure's message "the store could not …". */
export type WriteForMerchant = (action: string, operation: MerchantOperation) => Promise<MerchantOutcome>;

/** Returns the error for a refused write: RequestFaults `user-exists`, OverBudget, PetTooLarge, or a LockgateError. */
export function refusalError(refusal: MerchantRefusal, quota: Quota): Error {
  if (refusal.code === 'full') return overQuotaError(refusal.quota, quota);
  if (refusal.code === 'last-owner')
    return new LockgateError('last-owner', 'the user is the merchant’s last owner: make another user an owner first');
  if (refusal.code === 'no-such-invitation')
    return new LockgateError('no-such-invitation', 'the invitation is unknown, used, withdrawn or expired');
  if (refusal.code === 'too-many-invitations')
    return new LockgateError(
      'too-many-invitations',
      `the merchant has ${MAX_INVITATIONS_PER_MERCHANT} open invitations, which is the maximum: withdraw one first`,
    );
  if (refusal.code === 'pet-too-large') return new PetTooLarge(refusal.bytes, quota);
  return new RequestFaults('user-exists', 'a user name or an id is taken already; no user was added', refusal.faults);
}

/**
 * Writes of merchants over HTTP, in the form that the log's writer gets, the code that stores locks' pings
 * (sqlite/log/log-writer.ts). It commits such writes in groups, together with pings, so that no write costs a separate
 * fsync (interfaces.md §2, Fairness). A refusal is a returned value, not an error, since it must not roll back other
 * writes in the same transaction.
 */
import type { Mac } from '../../../../proto/wire/mac.js';
import type { Fault } from '../../../faults.js';
import type { Labels } from '../devices/device-labels.js';
import type { NewAccessToken } from './access-store.js';
import type { AcceptedInvitation, NewInvitation } from './invitation-store.js';
import type { NewPet, NewSession, NewUser, Pet, PetProfile, UserChange } from './people-store.js';
import type { ExceededQuota, Quota } from './quota.js';

/** Adds a pet: a record of merchants, with a name and a species, which the specification asks for beside locks. */
export interface AddPet {
  readonly op: 'add-pet';
  readonly merchantId: number;
  readonly pet: NewPet;
  readonly nowMs: number;
  readonly quota: Quota;
}

export interface UpdatePet {
  readonly op: 'update-pet';
  readonly merchantId: number;
  readonly id: bigint;
  readonly profile: PetProfile;
  readonly nowMs: number;
  readonly quota: Quota;
}

export interface AddUsers {
  readonly op: 'add-users';
  readonly merchantId: number;
  readonly users: readonly NewUser[];
  readonly nowMs: number;
  readonly quota: Quota;
}

/** A new name or new labels of a merchant's lock; members that are left out do not change. */
export interface DescribeLock {
  readonly op: 'describe-lock';
  readonly merchantId: number;
  readonly mac: Mac;
  /** Null removes the name. */
  readonly name?: string | null | undefined;
  /** Replaces all labels. */
  readonly labels?: Labels | undefined;
}

export interface ChangeUser {
  readonly op: 'change-user';
  readonly merchantId: number;
  readonly id: bigint;
  readonly change: UserChange;
  readonly quota: Quota;
}

/** Adds the invited user and ends the invitation. */
export interface AcceptInvitation extends AcceptedInvitation {
  readonly op: 'accept-invitation';
  readonly quota: Quota;
}

export type MerchantOperation =
  | AddPet
  | UpdatePet
  | DescribeLock
  | AddUsers
  | ChangeUser
  | AcceptInvitation
  | { readonly op: 'add-invitation'; readonly invitation: NewInvitation }
  | { readonly op: 'remove-invitation'; readonly merchantId: number; readonly id: number }
  | { readonly op: 'remove-user'; readonly merchantId: number; readonly id: bigint }
  | { readonly op: 'add-session'; readonly session: NewSession }
  | { readonly op: 'end-session'; readonly merchantId: number; readonly tokenHash: Buffer }
  | { readonly op: 'add-token'; readonly token: NewAccessToken }
  | { readonly op: 'record-key-use'; readonly keyId: number; readonly atMs: number };

/** An operation as a batched write. */
export interface MerchantWrite {
  readonly type: 'merchant';
  readonly operation: MerchantOperation;
}

/**
 * Why a write was refused. `taken`: a user has the id or the name already. `last-owner`: the merchant would have no
 * owner. `full`: the quota would be exceeded.
 */
export type MerchantRefusal =
  | { readonly code: 'taken'; readonly faults: readonly Fault[] }
  | { readonly code: 'last-owner' }
  | { readonly code: 'no-such-invitation' }
  | { readonly code: 'too-many-invitations' }
  | { readonly code: 'full'; readonly quota: ExceededQuota }
  | { readonly code: 'pet-too-large'; readonly bytes: number };

/**
 * The outcome of a write; with the pet, if the operation is about an existing pet, or the id of the invitation that was
 * added or removed.
 */
export type MerchantOutcome =
  | { readonly refusal?: undefined; readonly pet?: Pet | undefined; readonly id?: number | undefined }
  | { readonly refusal: MerchantRefusal };

/**
 * Returns how many things a write adds or changes: its cost in a transaction that pings wait for. Each takes a few
 * rows.
 */
export function writeCost({ operation }: MerchantWrite): number {
  return operation.op === 'add-users' ? operation.users.length : 1;
}

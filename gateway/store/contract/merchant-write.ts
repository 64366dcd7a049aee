/**
 * What merchants write over HTTP, as it is handed to the log's writer: it commits such writes in groups, with pings
 * where there are some, so that none of them costs an fsync of its own (interfaces.md §2, Fairness). What the caller
 * got wrong is a value here, since one refusal must not take back what others write in the same transaction.
 */
import type { Fault } from '../../faults.js';
import type { NewAccessToken } from './access-store.js';
import type { NewPet, NewSession, NewUser, Pet, PetProfile } from './people-store.js';
import type { FullQuota, Quota } from './quota.js';

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

export type MerchantOperation =
  | AddPet
  | UpdatePet
  | AddUsers
  | { readonly op: 'add-session'; readonly session: NewSession }
  | { readonly op: 'end-session'; readonly merchantId: number; readonly tokenHash: Buffer }
  | { readonly op: 'add-token'; readonly token: NewAccessToken }
  | { readonly op: 'note-key-use'; readonly keyId: number; readonly atMs: number };

/** One of them, as a write beside the log. */
export interface MerchantWrite {
  readonly type: 'merchant';
  readonly operation: MerchantOperation;
}

/** Why nothing was written. */
export type MerchantRefusal =
  | { readonly code: 'taken'; readonly faults: readonly Fault[] }
  | { readonly code: 'full'; readonly quota: FullQuota }
  | { readonly code: 'pet-too-large'; readonly bytes: number };

/** What came of it: the pet, where it is about one that there is. */
export type MerchantOutcome =
  | { readonly refusal?: undefined; readonly pet?: Pet | undefined }
  | { readonly refusal: MerchantRefusal };

/** Rows that a write adds or changes, at most: what it costs a transaction that pings wait for. */
export function rowsOf({ operation }: MerchantWrite): number {
  return operation.op === 'add-users' ? operation.users.length : 1;
}

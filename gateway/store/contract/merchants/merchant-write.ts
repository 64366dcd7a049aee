/**
 * What merchants write over HTTP, as the log's writer gets it. It commits such writes in groups, with pings where there
 * are some, so that none costs an fsync of its own (interfaces.md §2, Fairness). A refusal is a value here, since it
 * must not roll back what others write in the same transaction.
 */
import type { Fault } from '../../../faults.js';
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

/** One of them, as a batched write. */
export interface MerchantWrite {
  readonly type: 'merchant';
  readonly operation: MerchantOperation;
}

/** Why nothing was written. */
export type MerchantRefusal =
  | { readonly code: 'taken'; readonly faults: readonly Fault[] }
  | { readonly code: 'full'; readonly quota: FullQuota }
  | { readonly code: 'pet-too-large'; readonly bytes: number };

/** The outcome; with the pet, where the operation is about an existing one. */
export type MerchantOutcome =
  | { readonly refusal?: undefined; readonly pet?: Pet | undefined }
  | { readonly refusal: MerchantRefusal };

/** The most rows that a write adds or changes: its cost in a transaction that pings wait for. */
export function rowsOf({ operation }: MerchantWrite): number {
  return operation.op === 'add-users' ? operation.users.length : 1;
}

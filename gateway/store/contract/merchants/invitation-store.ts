/**
 * One-time invitations to become a user with a role on a merchant's dashboard, as hashes of their tokens. As in
 * store.ts, a method that writes resolves after the write is on the disk. Times are ms since the epoch, wall-clock
 * time.
 *
 * An invitation is *open* until it is accepted, withdrawn or expired. Only open ones are stored, except that an expired
 * one may stay a while; no method returns it.
 */
import type { DashboardRole } from './dashboard-roles.js';
import type { NewUser } from './people-store.js';

/** Maximum number of open invitations of a merchant. */
export const MAX_INVITATIONS_PER_MERCHANT = 100;

export interface Invitation {
  readonly id: number;
  readonly merchantId: number;
  readonly merchantName: string;
  /** The name that the new user gets; null lets the invited person choose. */
  readonly username: string | null;
  readonly dashboardRole: DashboardRole;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

export interface NewInvitation {
  readonly merchantId: number;
  readonly username: string | null;
  readonly dashboardRole: DashboardRole;
  readonly tokenHash: Buffer;
  readonly nowMs: number;
  readonly expiresAtMs: number;
}

/** An acceptance: the user that it adds, whose role is that of the invitation. */
export interface AcceptedInvitation {
  readonly tokenHash: Buffer;
  readonly user: Omit<NewUser, 'dashboardRole'>;
  readonly nowMs: number;
}

/** A page of a merchant's open invitations, in the order of their ids. */
export interface InvitationPage {
  readonly merchantId: number;
  readonly afterId: number;
  readonly nowMs: number;
  readonly limit: number;
}

export interface InvitationStore {
  /**
   * Adds an invitation and returns its id. It replaces an open one of the merchant for the same user name.
   *
   * @throws LockgateError `too-many-invitations`
   */
  add(invitation: NewInvitation): Promise<number>;
  list(page: InvitationPage): Promise<Invitation[]>;
  /** Returns the open invitation with this token; null also while the merchant is closed. */
  find(tokenHash: Buffer, nowMs: number): Promise<Invitation | null>;
  /** Withdraws a merchant's invitation, and returns whether there was one. */
  remove(merchantId: number, id: number): Promise<boolean>;
  /**
   * Adds the invited user and ends the invitation, both or neither.
   *
   * @throws LockgateError `no-such-invitation` if it is not open
   * @throws RequestFaults `user-exists` if the merchant has a user with that name
   * @throws OverBudget if the merchant may not have another user
   */
  accept(acceptance: AcceptedInvitation): Promise<void>;
}

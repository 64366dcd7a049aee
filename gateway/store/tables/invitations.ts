/**
 * Invitations (contract/merchants/invitation-store.ts): what the engines share. Each engine reads rows in its own way.
 */
import { dashboardRole } from '../contract/merchants/dashboard-roles.js';
import type {
  AcceptedInvitation,
  Invitation,
  InvitationPage,
  InvitationStore,
  NewInvitation,
} from '../contract/merchants/invitation-store.js';
import type { MerchantOperation, MerchantOutcome } from '../contract/merchants/merchant-write.js';
import type { Quota } from '../contract/merchants/quota.js';
import { refusalError, type WriteForMerchant } from './merchant-refusals.js';

/** A row of `SELECT_INVITATION`. */
export interface InvitationRow {
  readonly id: number;
  readonly merchant_id: number;
  readonly merchant_name: string;
  readonly username: string | null;
  readonly dashboard_role: string;
  readonly created_at_ms: number;
  readonly expires_at_ms: number;
}

/** The start of an engine's statements that read invitations. */
export const SELECT_INVITATION = `SELECT i.id, i.merchant_id, m.name AS merchant_name, i.username,
  i.dashboard_role, i.created_at_ms, i.expires_at_ms FROM invitation i JOIN merchant m ON m.id = i.merchant_id`;

/** An engine's statements that read invitations. */
export interface InvitationReads {
  /** The open invitations of a merchant after an id, in the order of ids. */
  list(page: InvitationPage): Promise<InvitationRow[]>;
  /** The open invitation with this token; undefined if there is none. */
  find(tokenHash: Buffer, nowMs: number): Promise<InvitationRow | undefined>;
}

export interface InvitationsParts {
  readonly reads: InvitationReads;
  readonly write: WriteForMerchant;
  readonly quota: Quota;
}

export class Invitations implements InvitationStore {
  readonly #parts: InvitationsParts;

  constructor(parts: InvitationsParts) {
    this.#parts = parts;
  }

  async add(invitation: NewInvitation): Promise<number> {
    return (await this.#write('add an invitation', { op: 'add-invitation', invitation })).id ?? 0;
  }

  async list(page: InvitationPage): Promise<Invitation[]> {
    return (await this.#parts.reads.list(page)).map(toInvitation);
  }

  async find(tokenHash: Buffer, nowMs: number): Promise<Invitation | null> {
    const row = await this.#parts.reads.find(tokenHash, nowMs);
    return row === undefined ? null : toInvitation(row);
  }

  async remove(merchantId: number, id: number): Promise<boolean> {
    const outcome = await this.#write('withdraw an invitation', { op: 'remove-invitation', merchantId, id });
    return outcome.id !== undefined;
  }

  async accept(acceptance: AcceptedInvitation): Promise<void> {
    const { quota } = this.#parts;
    await this.#write('accept an invitation', { op: 'accept-invitation', ...acceptance, quota });
  }

  async #write(action: string, operation: MerchantOperation): Promise<MerchantOutcome & { refusal?: undefined }> {
    const outcome = await this.#parts.write(action, operation);
    if (outcome.refusal !== undefined) throw refusalError(outcome.refusal, this.#parts.quota);
    return outcome;
  }
}

function toInvitation(row: InvitationRow): Invitation {
  return {
    id: row.id,
    merchantId: row.merchant_id,
    merchantName: row.merchant_name,
    username: row.username,
    // The least role, for a role of a later version.
    dashboardRole: dashboardRole(row.dashboard_role) ?? 'viewer',
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
  };
}

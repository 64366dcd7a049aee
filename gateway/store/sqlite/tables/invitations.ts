/**
 * Invitations (contract/merchants/invitation-store.ts) in the SQLite store. Writes go to the log's writer, which
 * commits them in groups.
 */
import type { Database, Statement } from 'better-sqlite3';
import { dashboardRole } from '../../contract/merchants/dashboard-roles.js';
import type {
  AcceptedInvitation,
  Invitation,
  InvitationPage,
  InvitationStore,
  NewInvitation,
} from '../../contract/merchants/invitation-store.js';
import type { MerchantOperation, MerchantOutcome } from '../../contract/merchants/merchant-write.js';
import type { Quota } from '../../contract/merchants/quota.js';
import { refusalError, type WriteForMerchant } from './people.js';

export interface InvitationsParts {
  readonly reader: Database;
  readonly write: WriteForMerchant;
  readonly quota: Quota;
}

interface InvitationRow {
  readonly id: number;
  readonly merchant_id: number;
  readonly merchant_name: string;
  readonly username: string | null;
  readonly dashboard_role: string;
  readonly created_at_ms: number;
  readonly expires_at_ms: number;
}

const SELECT = `SELECT i.id, i.merchant_id, m.name AS merchant_name, i.username, i.dashboard_role, i.created_at_ms,
  i.expires_at_ms FROM invitation i JOIN merchant m ON m.id = i.merchant_id`;

export class SqliteInvitations implements InvitationStore {
  readonly #parts: InvitationsParts;
  readonly #page: Statement;
  readonly #byToken: Statement;

  constructor(parts: InvitationsParts) {
    this.#parts = parts;
    this.#page = parts.reader.prepare(
      `${SELECT} WHERE i.merchant_id = @merchantId AND i.id > @afterId AND i.expires_at_ms > @nowMs
       ORDER BY i.id LIMIT @limit`,
    );
    this.#byToken = parts.reader.prepare(
      `${SELECT} WHERE i.token_hash = ? AND i.expires_at_ms > ? AND m.closed_at_ms IS NULL`,
    );
  }

  async add(invitation: NewInvitation): Promise<number> {
    return (await this.#write('add an invitation', { op: 'add-invitation', invitation })).id ?? 0;
  }

  async list(page: InvitationPage): Promise<Invitation[]> {
    return (this.#page.all(page) as InvitationRow[]).map(toInvitation);
  }

  async find(tokenHash: Buffer, nowMs: number): Promise<Invitation | null> {
    const row = this.#byToken.get(tokenHash, nowMs) as InvitationRow | undefined;
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

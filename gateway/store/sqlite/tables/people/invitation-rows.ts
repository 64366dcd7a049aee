/** Inserts, finds and deletes invitations on the connection of the log's writer, in hand-written SQL. */
import type { Database, Statement } from 'better-sqlite3';
import { type DashboardRole, dashboardRole } from '../../../contract/merchants/dashboard-roles.js';
import { MAX_INVITATIONS_PER_MERCHANT, type NewInvitation } from '../../../contract/merchants/invitation-store.js';
import { usernameKey } from '../../../contract/merchants/username-key.js';

/** An open invitation, as far as its acceptance needs it. */
export interface OpenInvitation {
  readonly id: number;
  readonly merchantId: number;
  readonly dashboardRole: DashboardRole | null;
}

export class InvitationRows {
  readonly #deleteOld: Statement;
  readonly #count: Statement;
  readonly #insert: Statement;
  readonly #findOpen: Statement;
  readonly #delete: Statement;

  constructor(db: Database) {
    this.#deleteOld = db.prepare(
      `DELETE FROM invitation WHERE merchant_id = @merchantId
         AND (expires_at_ms <= @nowMs OR ifnull(username_key = @usernameKey, false))`,
    );
    this.#count = db.prepare('SELECT count(*) FROM invitation WHERE merchant_id = ?').pluck();
    this.#insert = db.prepare(
      `INSERT INTO invitation
         (merchant_id, token_hash, username, username_key, dashboard_role, created_at_ms, expires_at_ms)
       VALUES (@merchantId, @tokenHash, @username, @usernameKey, @dashboardRole, @nowMs, @expiresAtMs)`,
    );
    this.#findOpen = db.prepare(
      `SELECT i.id, i.merchant_id AS merchantId, i.dashboard_role AS dashboardRole
       FROM invitation i JOIN merchant m ON m.id = i.merchant_id
       WHERE i.token_hash = ? AND i.expires_at_ms > ? AND m.closed_at_ms IS NULL`,
    );
    this.#delete = db.prepare('DELETE FROM invitation WHERE merchant_id = ? AND id = ?');
  }

  /**
   * Adds an invitation, in place of one for the same name, and deletes the merchant's expired ones. Returns its id;
   * undefined if the merchant has too many.
   */
  add({ username, ...invitation }: NewInvitation): number | undefined {
    const values = { ...invitation, username, usernameKey: username === null ? null : usernameKey(username) };
    this.#deleteOld.run(values);
    if ((this.#count.get(invitation.merchantId) as number) >= MAX_INVITATIONS_PER_MERCHANT) return undefined;
    return Number(this.#insert.run(values).lastInsertRowid);
  }

  findOpen(tokenHash: Buffer, nowMs: number): OpenInvitation | undefined {
    const row = this.#findOpen.get(tokenHash, nowMs) as (OpenInvitation & { dashboardRole: string }) | undefined;
    return row && { ...row, dashboardRole: dashboardRole(row.dashboardRole) };
  }

  /** Deletes an invitation, and returns whether there was one. */
  delete(merchantId: number, id: number): boolean {
    return this.#delete.run(merchantId, id).changes > 0;
  }
}

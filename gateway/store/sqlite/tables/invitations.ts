/** The statements that read invitations in the SQLite store. */
import type { Database } from 'better-sqlite3';
import { type InvitationReads, type InvitationRow, SELECT_INVITATION } from '../../tables/invitations.js';

/** Prepares the statements on the connection that only reads. */
export function invitationReads(reader: Database): InvitationReads {
  const page = reader.prepare(
    `${SELECT_INVITATION} WHERE i.merchant_id = @merchantId AND i.id > @afterId AND i.expires_at_ms > @nowMs
     ORDER BY i.id LIMIT @limit`,
  );
  const byToken = reader.prepare(
    `${SELECT_INVITATION} WHERE i.token_hash = ? AND i.expires_at_ms > ? AND m.closed_at_ms IS NULL`,
  );
  return {
    list: async (range) => page.all(range) as InvitationRow[],
    find: async (tokenHash, nowMs) => byToken.get(tokenHash, nowMs) as InvitationRow | undefined,
  };
}

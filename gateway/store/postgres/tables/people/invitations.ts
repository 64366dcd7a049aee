/** The statements that read invitations in PostgreSQL. */
import { type InvitationReads, type InvitationRow, SELECT_INVITATION } from '../../../tables/invitations.js';
import type { Sql } from '../../sql.js';

export function invitationReads(read: Sql): InvitationReads {
  return {
    list: (page) =>
      read.all<InvitationRow>(
        `${SELECT_INVITATION} WHERE i.merchant_id = @merchantId AND i.id > @afterId AND i.expires_at_ms > @nowMs
         ORDER BY i.id LIMIT @limit`,
        { ...page },
      ),
    find: (tokenHash, nowMs) =>
      read.get<InvitationRow>(
        `${SELECT_INVITATION} WHERE i.token_hash = @tokenHash AND i.expires_at_ms > @nowMs AND m.closed_at_ms IS NULL`,
        { tokenHash, nowMs },
      ),
  };
}

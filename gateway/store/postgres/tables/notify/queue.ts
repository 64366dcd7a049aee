/** Writes troubles into the queue of notifications, within the caller's exclusive transaction. */
import { randomBytes } from 'node:crypto';
import {
  FLAP_HOLD,
  FLAP_WINDOW,
  MAX_NOTIFICATIONS,
  type NotificationChange,
} from '../../../contract/notify/notification-store.js';
import type { Sql } from '../../sql.js';

/** The random bytes of a notification's public id: enough that no two are equal. */
const PUBLIC_ID_BYTES = 16;

type OpenChange = NotificationChange & { readonly change: { readonly type: 'open' } };
type EndChange = NotificationChange & { readonly change: { readonly type: 'end' } };

/** A trouble's latest notification. */
interface LatestRow {
  readonly id: number;
  /**
   * The state of the message about the opening: `held` back because of flapping, `pending`, `delivered`, `dead` (given
   * up), or `skipped`: it is never sent.
   */
  readonly opened_state: string;
  readonly ended_at_ms: number | null;
  readonly next_attempt_at_ms: number | null;
}

/** Stores the changes, in order. A recipient without a URL gets no new notifications. */
export async function recordNotifications(sql: Sql, changes: readonly NotificationChange[]): Promise<void> {
  /** The recipients that got a new notification: what they have beyond the maximum is deleted, finished first. */
  const grown = new Set<number>();
  for (const each of changes) {
    if (each.change.type === 'end') await recordEnd(sql, each as EndChange);
    else if (await recordOpen(sql, each as OpenChange)) grown.add(each.recipientId);
  }
  for (const recipientId of grown)
    await sql.run(
      `DELETE FROM notification WHERE id IN (
         SELECT id FROM notification WHERE recipient_id = @recipientId
         ORDER BY ended_at_ms IS NULL OR next_attempt_at_ms IS NOT NULL, id
         LIMIT greatest(0,
           (SELECT count(*) FROM notification WHERE recipient_id = @recipientId) - ${MAX_NOTIFICATIONS}))`,
      { recipientId },
    );
}

function latestOf(sql: Sql, { recipientId, kind, subject }: NotificationChange): Promise<LatestRow | undefined> {
  return sql.get<LatestRow>(
    `SELECT id, opened_state, ended_at_ms, next_attempt_at_ms FROM notification
     WHERE recipient_id = @recipientId AND kind = @kind AND subject = @subject ORDER BY id DESC LIMIT 1`,
    { recipientId, kind, subject },
  );
}

/** Returns whether it added a notification. */
async function recordOpen(sql: Sql, each: OpenChange): Promise<boolean> {
  const { recipientId, kind, subject, atMs, change } = each;
  const { text, details, mayHold } = change;
  const recipient = await sql.get('SELECT 1 AS one FROM notify_recipient WHERE id = @recipientId AND url IS NOT NULL', {
    recipientId,
  });
  if (recipient === undefined) return false;
  const latest = await latestOf(sql, each);
  if (latest?.ended_at_ms === null) return false;
  // The trouble opens again soon after its end: its message is sent only if it stays open for a while.
  const isFlapping = mayHold && latest !== undefined && atMs - latest.ended_at_ms < FLAP_WINDOW;
  const state = isFlapping ? 'held' : 'pending';
  // Not before the messages about the same trouble that still wait: between equal times the older one is sent first.
  const dueAtMs = Math.max(isFlapping ? atMs + FLAP_HOLD : 0, latest?.next_attempt_at_ms ?? 0);
  const row = { text, details: JSON.stringify(details), atMs, state, dueAtMs };
  // A row of which nothing was sent serves again, so that flapping does not fill the table.
  if (latest?.opened_state === 'skipped') {
    await sql.run(
      `UPDATE notification SET text = @text, details = @details, opened_at_ms = @atMs, ended_at_ms = NULL,
         ended_how = NULL, ended_state = NULL, opened_state = @state, next_attempt_at_ms = @dueAtMs WHERE id = @id`,
      { ...row, id: latest.id },
    );
    return false;
  }
  const publicId = `ntf_${randomBytes(PUBLIC_ID_BYTES).toString('base64url')}`;
  await sql.run(
    `INSERT INTO notification (recipient_id, public_id, kind, subject, text, details, opened_at_ms, opened_state,
       attempts, next_attempt_at_ms)
     VALUES (@recipientId, @publicId, @kind, @subject, @text, @details, @atMs, @state, 0, @dueAtMs)`,
    { ...row, publicId, recipientId, kind, subject },
  );
  return true;
}

/** Ends a trouble that is open. A trouble whose opening was held back or is not to be reported ends silently. */
async function recordEnd(sql: Sql, each: EndChange): Promise<void> {
  const { atMs, change } = each;
  const latest = await latestOf(sql, each);
  if (latest === undefined || latest.ended_at_ms !== null) return;
  const isSent = change.how !== null && latest.opened_state !== 'held';
  const changes = isSent
    ? `ended_state = 'pending',
       next_attempt_at_ms = CASE opened_state WHEN 'pending' THEN next_attempt_at_ms ELSE 0 END`
    : `ended_state = 'skipped', next_attempt_at_ms = NULL,
       opened_state = CASE WHEN opened_state IN ('held', 'pending') THEN 'skipped' ELSE opened_state END`;
  await sql.run(`UPDATE notification SET ended_at_ms = @atMs, ended_how = @how, ${changes} WHERE id = @id`, {
    id: latest.id,
    atMs,
    how: change.how,
  });
}

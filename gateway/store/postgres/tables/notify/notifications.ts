/** Notifications and their recipients (notification-store.ts) in PostgreSQL. Writes are exclusive. */
import { LockgateError } from '../../../../../proto/errors.js';
import {
  type DueMessage,
  MAX_RECIPIENT_SECRETS,
  type MessageAttempt,
  type MessageCounts,
  type NotificationChange,
  type NotificationStore,
  OPERATOR_RECIPIENT,
  type OpenTrouble,
  type Recipient,
  type RecipientSecret,
} from '../../../contract/notify/notification-store.js';
import {
  type NotificationRow,
  type RecipientRow,
  toDueMessage,
  toRecipient,
} from '../../../tables/notification-rows.js';
import type { Sql } from '../../sql.js';
import type { Writes } from '../../writes.js';
import { recordNotifications } from './queue.js';

export class Notifications implements NotificationStore {
  readonly #read: Sql;
  readonly #writes: Writes;

  constructor(read: Sql, writes: Writes) {
    this.#read = read;
    this.#writes = writes;
  }

  async readRecipients(): Promise<Recipient[]> {
    return (await this.#read.all<RecipientRow>('SELECT * FROM notify_recipient ORDER BY id')).map(toRecipient);
  }

  setUrl(id: number, url: string | null, secretSealed: Buffer): Promise<{ readonly isSecretNew: boolean }> {
    return this.#write('set a notify URL', async (sql) => {
      if (url === null && id !== OPERATOR_RECIPIENT) {
        await sql.run('DELETE FROM notification WHERE recipient_id = @id', { id });
        await sql.run('DELETE FROM notify_secret WHERE recipient_id = @id', { id });
        await sql.run('DELETE FROM notify_recipient WHERE id = @id', { id });
        return { isSecretNew: false };
      }
      await sql.run('INSERT INTO notify_recipient (id) VALUES (@id) ON CONFLICT (id) DO NOTHING', { id });
      await sql.run(
        `UPDATE notify_recipient SET url = @url, last_success_at_ms = NULL, last_error_at_ms = NULL,
           last_error_status = NULL, last_error = NULL WHERE id = @id AND url IS DISTINCT FROM @url`,
        { id, url },
      );
      const secret = await sql.get('SELECT 1 AS one FROM notify_secret WHERE recipient_id = @id', { id });
      if (secret === undefined)
        await sql.run('INSERT INTO notify_secret (recipient_id, secret_sealed) VALUES (@id, @secretSealed)', {
          id,
          secretSealed,
        });
      return { isSecretNew: secret === undefined };
    });
  }

  async readSecrets(recipientId: number, nowMs: number): Promise<RecipientSecret[]> {
    return await this.#read.all<RecipientSecret>(
      `SELECT secret_sealed AS "secretSealed", valid_until_ms AS "validUntilMs" FROM notify_secret
       WHERE recipient_id = @recipientId AND (valid_until_ms IS NULL OR valid_until_ms > @nowMs) ORDER BY id DESC`,
      { recipientId, nowMs },
    );
  }

  addSecret(recipientId: number, secretSealed: Buffer, nowMs: number, oldValidUntilMs: number): Promise<void> {
    return this.#write('add a secret', async (sql) => {
      await sql.run(
        `UPDATE notify_secret SET valid_until_ms = least(@oldValidUntilMs, valid_until_ms)
         WHERE recipient_id = @recipientId`,
        { oldValidUntilMs, recipientId },
      );
      await sql.run('DELETE FROM notify_secret WHERE recipient_id = @recipientId AND valid_until_ms <= @nowMs', {
        recipientId,
        nowMs,
      });
      await sql.run('INSERT INTO notify_secret (recipient_id, secret_sealed) VALUES (@recipientId, @secretSealed)', {
        recipientId,
        secretSealed,
      });
      const counted = await sql.get<{ count: number }>(
        'SELECT count(*) AS count FROM notify_secret WHERE recipient_id = @recipientId',
        { recipientId },
      );
      if ((counted?.count ?? 0) > MAX_RECIPIENT_SECRETS)
        throw new LockgateError(
          'notify-secrets',
          `there are ${MAX_RECIPIENT_SECRETS} valid secrets: wait until one expires, or rotate with grace 0`,
        );
    });
  }

  record(changes: readonly NotificationChange[]): Promise<void> {
    return this.#write('queue notifications', (sql) => recordNotifications(sql, changes));
  }

  async readOpenTroubles(): Promise<OpenTrouble[]> {
    return await this.#read.all<OpenTrouble>(
      `SELECT recipient_id AS "recipientId", kind, subject FROM notification
       WHERE recipient_id > ${OPERATOR_RECIPIENT} AND ended_at_ms IS NULL`,
    );
  }

  async readDue(recipientId: number, nowMs: number): Promise<DueMessage | null> {
    const row = await this.#read.get<NotificationRow>(
      `SELECT * FROM notification WHERE recipient_id = @recipientId AND next_attempt_at_ms <= @nowMs
       ORDER BY next_attempt_at_ms, id LIMIT 1`,
      { recipientId, nowMs },
    );
    return row === undefined ? null : toDueMessage(row);
  }

  async nextDueAtMs(recipientId: number): Promise<number | null> {
    const row = await this.#read.get<{ at: number }>(
      `SELECT next_attempt_at_ms AS at FROM notification
       WHERE recipient_id = @recipientId AND next_attempt_at_ms IS NOT NULL ORDER BY next_attempt_at_ms LIMIT 1`,
      { recipientId },
    );
    return row?.at ?? null;
  }

  release(id: number): Promise<boolean> {
    return this.#write('release a notification', async (sql) => {
      const released = await sql.run(
        `UPDATE notification SET opened_state = 'pending' WHERE id = @id AND opened_state = 'held'`,
        { id },
      );
      return released > 0;
    });
  }

  conclude({ id, recipientId, part, atMs, failure, nextAttemptAtMs }: MessageAttempt): Promise<void> {
    return this.#write('record a notification', async (sql) => {
      // The state of the message if no attempt follows. A next attempt at 0 means at once.
      const state = failure === null ? 'delivered' : 'dead';
      if (nextAttemptAtMs !== null) {
        // No attempt follows if the notification was dropped meanwhile: then it has no next attempt any more.
        await sql.run(
          `UPDATE notification SET attempts = attempts + 1, next_attempt_at_ms = @nextAttemptAtMs
           WHERE id = @id AND next_attempt_at_ms IS NOT NULL`,
          { id, nextAttemptAtMs },
        );
        await delayLater(sql, id, nextAttemptAtMs);
      } else if (part === 'ended')
        await sql.run('UPDATE notification SET ended_state = @state, next_attempt_at_ms = NULL WHERE id = @id', {
          id,
          state,
        });
      else
        await sql.run(
          `UPDATE notification SET opened_state = @state, attempts = 0,
             next_attempt_at_ms = CASE ended_state WHEN 'pending' THEN 0 END WHERE id = @id`,
          { id, state },
        );
      if (failure === null)
        await sql.run('UPDATE notify_recipient SET last_success_at_ms = @atMs WHERE id = @recipientId', {
          atMs,
          recipientId,
        });
      else
        await sql.run(
          `UPDATE notify_recipient SET last_error_at_ms = @atMs, last_error_status = @status, last_error = @error
           WHERE id = @recipientId`,
          { atMs, recipientId, ...failure },
        );
    });
  }

  shortenWaits(nowMs: number, maxWaits: readonly number[]): Promise<void> {
    return this.#write('shorten waits', async (sql) => {
      for (const [attempts, maxWait] of maxWaits.entries())
        await sql.run(
          `UPDATE notification SET next_attempt_at_ms = @untilMs
           WHERE attempts = @attempts AND next_attempt_at_ms > @untilMs`,
          { attempts, untilMs: nowMs + maxWait },
        );
    });
  }

  async countMessages(recipientId: number): Promise<MessageCounts> {
    const counts = await this.#read.get<MessageCounts>(
      `SELECT count(*) FILTER (WHERE next_attempt_at_ms IS NOT NULL) AS pending,
         count(*) FILTER (WHERE 'dead' IN (opened_state, ended_state)) AS dead
       FROM notification WHERE recipient_id = @recipientId`,
      { recipientId },
    );
    return counts ?? { pending: 0, dead: 0 };
  }

  #write<T>(action: string, work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#writes.run(action, work, 'exclusive');
  }
}

/** Lets the later messages about the trouble of a notification wait until this time at least. */
async function delayLater(sql: Sql, id: number, untilMs: number): Promise<void> {
  await sql.run(
    `UPDATE notification AS later SET next_attempt_at_ms = @untilMs
     FROM notification AS first
     WHERE first.id = @id AND later.recipient_id = first.recipient_id AND later.kind = first.kind
       AND later.subject = first.subject AND later.id > first.id AND later.next_attempt_at_ms < @untilMs`,
    { id, untilMs },
  );
}

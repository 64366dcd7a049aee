/** Stores what a URL's worker did: attempts, outcomes, the cursor. */
import type { AttemptRecord, DeliveryProgress } from '../../../contract/webhooks/delivery.js';
import { plannedOnce, type Sql } from '../../sql.js';
import { moveCursor } from './url-rows.js';

/** Locks a URL's row. Returns whether progress at the URL may be stored. */
export type LockUrl = (sql: Sql, urlId: number) => Promise<boolean>;

const LOCK_URL = plannedOnce('SELECT 1 AS one FROM webhook_url WHERE id = @urlId FOR NO KEY UPDATE');

/** With one gateway, all progress may be stored. */
export const lockUrl: LockUrl = async (sql, urlId) => {
  await sql.get(LOCK_URL, { urlId });
  return true;
};

/** Stores the progress at one URL, in the caller's transaction. Returns false if it may not be stored. */
export async function recordProgress(sql: Sql, progress: DeliveryProgress, lock: LockUrl): Promise<boolean> {
  const { urlId, attempts, blocked = [], damaged = [], failing, hold, cursor, disabledWhy } = progress;
  // The URL's row first: an operator's change or another progress of this URL waits, or is waited for.
  if (!(await lock(sql, urlId))) return false;
  if (attempts.length > 0) await recordAttempts(sql, urlId, attempts);
  if (blocked.length > 0)
    await putDeliveries(
      sql,
      urlId,
      'DO NOTHING',
      blocked.map(({ uplinkId, atMs }) => {
        return { uplinkId, state: 'pending', attempts: 0, atMs };
      }),
    );
  if (damaged.length > 0)
    await putDeliveries(
      sql,
      urlId,
      'DO UPDATE SET state = excluded.state, next_attempt_at_ms = NULL',
      damaged.map((uplinkId) => ({ uplinkId, state: 'damaged', attempts: 0, atMs: null })),
    );
  if (failing !== undefined)
    await sql.run('UPDATE webhook_url SET failing_since_ms = @since, failing_for_ms = @for WHERE id = @urlId', {
      urlId,
      since: failing?.sinceMs ?? null,
      for: failing?.forMs ?? 0,
    });
  if (hold !== undefined)
    await sql.run('UPDATE webhook_url SET held_until_ms = @until, held_for_ms = @span WHERE id = @urlId', {
      urlId,
      until: hold.untilMs,
      span: hold.spanMs,
    });
  if (cursor !== undefined) await moveCursor(sql, urlId, cursor);
  if (disabledWhy !== undefined)
    await sql.run(`UPDATE webhook_url SET state = 'disabled', disabled_why = @disabledWhy WHERE id = @urlId`, {
      urlId,
      disabledWhy,
    });
  return true;
}

/**
 * Joins each row of `t` to its uplink, unless that is erased. The limit makes PostgreSQL look up each one by its index;
 * else, while the table's statistics are old, it may read a whole day of the log for a few rows.
 */
const UNERASED = `CROSS JOIN LATERAL (
  SELECT id, device_id FROM uplink WHERE id = t.uplink_id AND kind >= 0 LIMIT 1) u`;

/** A delivery to be stored; `atMs` is its next attempt, null if none is planned. */
interface DeliveryRow {
  readonly uplinkId: number;
  readonly state: string;
  readonly attempts: number;
  readonly atMs: number | null;
}

const INSERT_ATTEMPTS = plannedOnce(
  `INSERT INTO attempt (url_id, uplink_id, number, at_ms, duration_ms, status, error, answer)
   SELECT @urlId, u.id, t.number, t.at_ms, t.duration_ms, t.status, t.error, t.answer
   FROM unnest(@ids::bigint[], @numbers::bigint[], @times::double precision[], @durations::double precision[],
     @statuses::bigint[], @errors::text[], @answers::text[])
     WITH ORDINALITY AS t (uplink_id, number, at_ms, duration_ms, status, error, answer, n)
   ${UNERASED} ORDER BY t.n`,
);

async function recordAttempts(sql: Sql, urlId: number, attempts: readonly AttemptRecord[]): Promise<void> {
  await sql.run(INSERT_ATTEMPTS, {
    urlId,
    ids: attempts.map(({ uplinkId }) => uplinkId),
    numbers: attempts.map(({ number }) => number),
    times: attempts.map(({ atMs }) => atMs),
    durations: attempts.map(({ durationMs }) => durationMs),
    statuses: attempts.map(({ status }) => status),
    errors: attempts.map(({ error }) => error),
    answers: attempts.map(({ answer }) => answer),
  });
  // An event may have several attempts in one progress: the last one decides.
  const rows = new Map<number, DeliveryRow>();
  for (const { uplinkId, number, outcome, hasRow } of attempts) {
    if (outcome.state === 'delivered') {
      // A delivery that succeeds at its first attempt has no row.
      if (number === 1 && !hasRow) continue;
      rows.set(uplinkId, { uplinkId, state: 'delivered', attempts: number, atMs: null });
    } else {
      const atMs = outcome.state === 'pending' ? outcome.nextAttemptAtMs : null;
      rows.set(uplinkId, { uplinkId, state: outcome.state, attempts: number, atMs });
    }
  }
  if (rows.size === 0) return;
  const update = `DO UPDATE SET state = excluded.state, attempts = excluded.attempts,
    next_attempt_at_ms = excluded.next_attempt_at_ms`;
  await putDeliveries(sql, urlId, update, [...rows.values()]);
}

/**
 * Inserts or changes deliveries of uplinks that are not erased. @param conflict what to do with a stored row, in SQL
 */
async function putDeliveries(sql: Sql, urlId: number, conflict: string, rows: readonly DeliveryRow[]): Promise<void> {
  const statement = plannedOnce(
    `INSERT INTO delivery (url_id, uplink_id, state, attempts, next_attempt_at_ms, device_id)
     SELECT @urlId, u.id, t.state, t.attempts, t.at_ms, u.device_id
     FROM unnest(@ids::bigint[], @states::text[], @attempts::bigint[], @times::double precision[])
       AS t (uplink_id, state, attempts, at_ms)
     ${UNERASED} ORDER BY u.id
     ON CONFLICT (url_id, uplink_id) ${conflict}`,
  );
  await sql.run(statement, {
    urlId,
    ids: rows.map(({ uplinkId }) => uplinkId),
    states: rows.map(({ state }) => state),
    attempts: rows.map(({ attempts }) => attempts),
    times: rows.map(({ atMs }) => atMs),
  });
}

/**
 * Operators' work on webhooks in PostgreSQL. A change of a URL raises the version of its row, so that progress that a
 * worker made before the change is refused.
 */
import type { EventKey } from '../../../../webhooks/event-id.js';
import { LOG_START, type LogPosition, movedAfter } from '../../../contract/log/log-position.js';
import type { StoredUplink } from '../../../contract/log/stored-uplink.js';
import type {
  AttemptedCounts,
  CountedRange,
  DeliveryFilter,
  DeliveryReading,
  DeliveryWait,
  OldSecret,
  PingCount,
  RecoveryStep,
  ResendOutcome,
  SecretRotation,
  WaitsPage,
  WebhookChange,
  WebhookStore,
} from '../../../contract/webhook-store.js';
import type { AttemptFigures, SummedAttempts } from '../../../contract/webhooks/attempt-figures.js';
import type { WebhookFilter } from '../../../contract/webhooks/webhook-filter.js';
import type { WebhookUrl } from '../../../contract/webhooks/webhook-url.js';
import type { LogReads } from '../../log/log-reads.js';
import { endOfLog, idIn } from '../../position.js';
import type { Sql } from '../../sql.js';
import type { Writes } from '../../writes.js';
import { DeliveryReads, HAS_SUCCEEDED } from './delivery-reads.js';
import { PUT_DUE, Recovery } from './recovery.js';
import { changeUrl, findUrl, type OnVersion, requireUrl } from './url-rows.js';

/** Maximum number of a removed URL's rows that one transaction deletes. */
const MAX_REMOVED_AT_ONCE = 2_000;

export class Webhooks implements WebhookStore {
  readonly #read: Sql;
  readonly #writes: Writes;
  readonly #log: LogReads;
  readonly #deliveries: DeliveryReads;
  readonly #recovery: Recovery;
  readonly #onVersion: OnVersion | undefined;

  /** @param onVersion called with the version of each URL that `find` returns */
  constructor(read: Sql, writes: Writes, log: LogReads, onVersion?: OnVersion) {
    this.#read = read;
    this.#onVersion = onVersion;
    this.#writes = writes;
    this.#log = log;
    this.#deliveries = new DeliveryReads(read);
    this.#recovery = new Recovery(read, writes, this.#deliveries);
  }

  find(urlId: number): Promise<WebhookUrl | null> {
    return findUrl(this.#read, urlId, this.#onVersion);
  }

  change(urlId: number, change: WebhookChange): Promise<WebhookUrl> {
    return this.#writes.run('change a webhook', (sql) => changeUrl(sql, urlId, change), 'exclusive');
  }

  async remove(urlId: number): Promise<void> {
    // The URL's row is deleted last: rows that a crash leaves then still belong to a URL, and can be removed later.
    for (const table of ['delivery', 'attempt']) while ((await this.#removeSome(table, urlId)) > 0);
    await this.#writes.run(
      'remove a webhook',
      async (sql) => {
        await requireUrl(sql, urlId);
        for (const table of ['delivery', 'attempt', 'webhook_old_secret', 'webhook_gap'])
          await sql.run(`DELETE FROM ${table} WHERE url_id = @urlId`, { urlId });
        await sql.run('DELETE FROM webhook_url WHERE id = @urlId', { urlId });
      },
      'exclusive',
    );
  }

  /** Deletes some of a URL's rows in one transaction, and returns how many. */
  #removeSome(table: string, urlId: number): Promise<number> {
    return this.#writes.run('remove deliveries', (sql) =>
      sql.run(
        `DELETE FROM ${table} WHERE ctid = ANY(ARRAY(
           SELECT ctid FROM ${table} WHERE url_id = @urlId LIMIT ${MAX_REMOVED_AT_ONCE}))`,
        { urlId },
      ),
    );
  }

  rotateSecret(urlId: number, { secretSealed, nowMs, oldValidUntilMs }: SecretRotation): Promise<WebhookUrl> {
    return this.#writes.run(
      'rotate a secret',
      async (sql) => {
        const before = await requireUrl(sql, urlId);
        await sql.run(
          `INSERT INTO webhook_old_secret (url_id, secret_sealed, valid_until_ms)
           VALUES (@urlId, @sealed, @oldValidUntilMs)`,
          { urlId, sealed: before.secretSealed, oldValidUntilMs },
        );
        // A rotation may shorten the validity of older secrets, but never extends it.
        await sql.run(
          `UPDATE webhook_old_secret SET valid_until_ms = least(valid_until_ms, @oldValidUntilMs)
           WHERE url_id = @urlId`,
          { urlId, oldValidUntilMs },
        );
        await sql.run('DELETE FROM webhook_old_secret WHERE url_id = @urlId AND valid_until_ms <= @nowMs', {
          urlId,
          nowMs,
        });
        await sql.run('UPDATE webhook_url SET secret_sealed = @secretSealed, version = version + 1 WHERE id = @urlId', {
          urlId,
          secretSealed,
        });
        return await requireUrl(sql, urlId);
      },
      'exclusive',
    );
  }

  async readOldSecrets(urlId: number, nowMs: number): Promise<OldSecret[]> {
    return await this.#read.all<OldSecret>(
      `SELECT secret_sealed AS "secretSealed", valid_until_ms AS "validUntilMs" FROM webhook_old_secret
       WHERE url_id = @urlId AND valid_until_ms > @nowMs ORDER BY id DESC`,
      { urlId, nowMs },
    );
  }

  async readPendingLocks(urlId: number): Promise<number[]> {
    const rows = await this.#read.all<{ id: number }>(
      `SELECT DISTINCT device_id AS id FROM delivery WHERE url_id = @urlId AND state = 'pending'`,
      { urlId },
    );
    return rows.map(({ id }) => id);
  }

  async readWaits(urlId: number, page: WaitsPage): Promise<DeliveryWait[]> {
    return await this.#read.all<DeliveryWait>(
      `SELECT uplink_id AS "uplinkId", attempts - attempts_before AS attempts, next_attempt_at_ms AS "atMs"
       FROM delivery WHERE url_id = @urlId AND state = 'pending' AND uplink_id > @afterId
         AND next_attempt_at_ms > @afterMs ORDER BY uplink_id LIMIT @limit`,
      { urlId, ...page },
    );
  }

  async shortenWaits(
    urlId: number,
    waits: readonly { readonly uplinkId: number; readonly atMs: number }[],
  ): Promise<void> {
    await this.#writes.run('make deliveries due', (sql) =>
      sql.run(
        `UPDATE delivery y SET next_attempt_at_ms = t.at_ms
         FROM unnest(@ids::bigint[], @times::double precision[]) AS t (uplink_id, at_ms)
         WHERE y.url_id = @urlId AND y.uplink_id = t.uplink_id AND y.state = 'pending'
           AND y.next_attempt_at_ms > t.at_ms`,
        { urlId, ids: waits.map(({ uplinkId }) => uplinkId), times: waits.map(({ atMs }) => atMs) },
      ),
    );
  }

  async hasPending(urlId: number, deviceId: number): Promise<boolean> {
    const found = await this.#read.get(
      `SELECT 1 AS one FROM delivery WHERE url_id = @urlId AND device_id = @deviceId AND state = 'pending' LIMIT 1`,
      { urlId, deviceId },
    );
    return found !== undefined;
  }

  async findFirstUplinkFrom(receivedAtMs: number): Promise<number> {
    const statement = 'SELECT id, received_at_ms FROM uplink WHERE id >= @id ORDER BY id LIMIT 1';
    const read = (id: number): Promise<ReceivedUplink | undefined> => this.#read.get<ReceivedUplink>(statement, { id });
    return (await searchFrom(receivedAtMs, read)).firstId;
  }

  async findPositionAt(merchantId: number, receivedAtMs: number): Promise<LogPosition> {
    const end = await endOfLog(this.#read, merchantId);
    if (receivedAtMs === Number.POSITIVE_INFINITY) return end;
    // As in endOfLog, the order is one that only the index of merchants' events has.
    const statement = `SELECT id, received_at_ms, merchant_id = @merchantId AND slot = @slot AS is_wanted FROM uplink
      WHERE (merchant_id, slot, id) >= (@merchantId::bigint, @slot::bigint, @id::bigint) AND kind > 0
      ORDER BY merchant_id, slot, id LIMIT 1`;
    let position = LOG_START;
    for (const slot of end.keys()) {
      const read = async (id: number): Promise<ReceivedUplink | undefined> => {
        const row = await this.#read.get<ReceivedUplink & { readonly is_wanted: boolean }>(statement, {
          ...{ merchantId, slot, id },
        });
        return row?.is_wanted === true ? row : undefined;
      };
      const { lastId } = await searchFrom(receivedAtMs, read);
      if (lastId > 0) position = movedAfter(position, lastId);
    }
    return position;
  }

  findEvent(key: EventKey): Promise<StoredUplink | null> {
    return this.#log.findEvent(key);
  }

  selectPassing(filter: WebhookFilter, events: readonly StoredUplink[]): Promise<StoredUplink[]> {
    return this.#deliveries.selectPassing(filter, events);
  }

  async readDeliveries(filter: DeliveryFilter): Promise<DeliveryReading[]> {
    const found: DeliveryReading[] = [];
    for (const urlId of filter.urlIds) {
      const url = await this.find(urlId);
      if (url !== null) found.push(...(await this.#deliveries.read(url, filter)));
    }
    return found.sort((a, b) => b.uplink.id - a.uplink.id || a.urlId - b.urlId).slice(0, filter.limit);
  }

  sumUpNewestAttempts(urlId: number, summed: SummedAttempts): Promise<AttemptFigures> {
    return this.#deliveries.sumUpNewestAttempts(urlId, summed);
  }

  countAttempted(urlId: number, range: CountedRange): Promise<AttemptedCounts> {
    return this.#deliveries.countAttempted(urlId, range);
  }

  countPings(urlId: number, range: CountedRange): Promise<PingCount> {
    return this.#deliveries.countPings(urlId, range);
  }

  resend(urlId: number, uplinkId: number, nowMs: number): Promise<ResendOutcome> {
    return this.#writes.run('send an event again', async (sql) => {
      // On its way: beyond the cursor, up to which the URL's worker has read each slot of the log, and not sent yet.
      const cursor = '(SELECT jsonb_object_agg(c.slot, c.id) FROM url_cursor c WHERE c.url_id = w.id)';
      const onItsWay = await sql.get(
        `SELECT 1 AS one FROM webhook_url w JOIN uplink u ON u.id = @uplinkId
         WHERE w.id = @urlId AND u.id > ${idIn(cursor, 'u.slot')} AND NOT ${HAS_SUCCEEDED}
           AND NOT EXISTS (SELECT 1 FROM delivery y WHERE y.url_id = w.id AND y.uplink_id = u.id)`,
        { urlId, uplinkId },
      );
      if (onItsWay !== undefined) return 'on-its-way';
      await sql.run(PUT_DUE, { urlId, ids: [uplinkId], nowMs });
      return 'due';
    });
  }

  recover(urlId: number, step: RecoveryStep): Promise<{ count: number; next: LogPosition | null }> {
    return this.#recovery.recover(urlId, step);
  }

  releaseRepaired(urlId: number, range: Omit<RecoveryStep, 'limit'>): Promise<number> {
    return this.#recovery.releaseRepaired(urlId, range);
  }
}

interface ReceivedUplink {
  readonly id: number;
  readonly received_at_ms: number;
}

/**
 * A binary search in a part of the log, since times of receipt grow with ids.
 *
 * @param read returns the first uplink of that part with this id or a higher one
 * @returns `firstId`: the first uplink received at that time or later, or a higher id than all if there is none;
 * `lastId`: the last uplink before, 0 if there is none
 */
async function searchFrom(
  receivedAtMs: number,
  read: (id: number) => Promise<ReceivedUplink | undefined>,
): Promise<{ firstId: number; lastId: number }> {
  let [low, high, lastId] = [0, Number.MAX_SAFE_INTEGER, 0];
  while (low < high) {
    const middle = Math.floor(low + (high - low) / 2);
    const row = await read(middle);
    if (row === undefined || row.received_at_ms >= receivedAtMs) high = middle;
    else [low, lastId] = [row.id + 1, row.id];
  }
  const first = await read(low);
  return { firstId: first?.id ?? lastId + 1, lastId };
}

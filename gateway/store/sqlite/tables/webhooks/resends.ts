/**
 * Makes events due again at one webhook URL: a single event that an operator sends again, all undelivered events of a
 * range (`webhook recover`), and events whose stored ping was repaired. Hand-written SQL on the log and on deliveries;
 * every write waits for the writes before it.
 *
 * A due event has a row in the table `delivery`. An event in a *gap* (uplinks that the URL's cursor skipped when the
 * URL was enabled) has none yet.
 */
import type { Statement } from 'better-sqlite3';
import { DENSE_SLOT, idInSlot, type LogPosition, positionAfter } from '../../../contract/log/log-position.js';
import type { StoredUplink } from '../../../contract/log/stored-uplink.js';
import type { RecoveryStep, ResendOutcome } from '../../../contract/webhook-store.js';
import { FIRST_EVENT_KIND } from '../../../contract/webhooks/merchant-event.js';
import type { WebhookFilter } from '../../../contract/webhooks/webhook-filter.js';
import { toUplink, UPLINK_COLUMNS, type UplinkRow } from '../../../log/uplink-row.js';
import type { PassingEvents } from './passing-events.js';
import { storeCall, storeWrite } from './store-call.js';
import { findUrl, readGaps } from './url-changes.js';
import type { SqliteWebhooksParts } from './webhooks-parts.js';

/** Maximum number of damaged events that are read together and released in one commit. */
const MAX_REPAIRED_PER_COMMIT = 200;

export class Resends {
  readonly #parts: SqliteWebhooksParts;
  readonly #passing: PassingEvents;
  readonly #putDue: Statement;
  readonly #isOnItsWay: Statement;
  readonly #undelivered: Statement;
  readonly #undeliveredInGap: Statement;
  readonly #damaged: Statement;
  readonly #uplink: Statement;

  constructor(parts: SqliteWebhooksParts, passing: PassingEvents) {
    this.#parts = parts;
    this.#passing = passing;
    const { reader, writer } = parts;
    this.#uplink = reader.prepare(
      `SELECT ${UPLINK_COLUMNS} FROM uplink u JOIN device d ON d.id = u.device_id WHERE u.id = ?`,
    );
    // `attempts_before`: the attempts so far, after which the retry schedule starts again.
    this.#putDue = writer.prepare(
      `INSERT INTO delivery (url_id, uplink_id, device_id, state, attempts, attempts_before, next_attempt_at_ms)
       SELECT @urlId, u.id, u.device_id, 'pending', n.made, n.made, @nowMs FROM uplink u, (
         SELECT coalesce(max(number), 0) AS made FROM attempt WHERE url_id = @urlId AND uplink_id = @uplinkId) n
       WHERE u.id = @uplinkId AND u.kind > 0
       ON CONFLICT (url_id, uplink_id) DO UPDATE SET
         state = 'pending', device_id = excluded.device_id, attempts_before = attempts,
         next_attempt_at_ms = excluded.next_attempt_at_ms`,
    );
    this.#isOnItsWay = writer.prepare(
      `SELECT 1 FROM webhook_url w WHERE w.id = @urlId AND w.cursor < @uplinkId
         AND NOT EXISTS (SELECT 1 FROM delivery y WHERE y.url_id = w.id AND y.uplink_id = @uplinkId)
         AND NOT EXISTS (
           SELECT 1 FROM attempt a WHERE a.url_id = w.id AND a.uplink_id = @uplinkId AND a.error IS NULL)`,
    );
    this.#undelivered = writer
      .prepare(
        `SELECT uplink_id FROM delivery INDEXED BY delivery_by_state
         WHERE url_id = ? AND state = ? AND uplink_id > ? AND uplink_id <= ? ORDER BY uplink_id LIMIT ?`,
      )
      .pluck();
    this.#undeliveredInGap = writer
      .prepare(
        `SELECT u.id FROM uplink u JOIN webhook_url w ON w.merchant_id = u.merchant_id
         WHERE w.id = @urlId AND u.kind > 0 AND u.kind < @kindsBelow AND u.id > @from AND u.id <= @to
           AND NOT EXISTS (SELECT 1 FROM delivery y WHERE y.url_id = w.id AND y.uplink_id = u.id)
           AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.url_id = w.id AND a.uplink_id = u.id AND a.error IS NULL)
         ORDER BY u.id LIMIT @limit`,
      )
      .pluck();
    this.#damaged = reader.prepare(
      `SELECT ${UPLINK_COLUMNS} FROM delivery y INDEXED BY delivery_by_state
       JOIN uplink u ON u.id = y.uplink_id JOIN device d ON d.id = u.device_id
       WHERE y.url_id = @urlId AND y.state = 'damaged' AND y.uplink_id > @afterId AND y.uplink_id <= @toId
       ORDER BY y.uplink_id LIMIT ${MAX_REPAIRED_PER_COMMIT}`,
    );
  }

  /** Makes one event due now, unless its first delivery is still to come. @throws StoreFailure */
  resend(urlId: number, uplinkId: number, nowMs: number): Promise<ResendOutcome> {
    return storeWrite(this.#parts, 'send an event again', () => {
      if (this.#isOnItsWay.get({ urlId, uplinkId }) !== undefined) return 'on-its-way';
      this.#putDue.run({ urlId, uplinkId, nowMs });
      return 'due';
    });
  }

  /**
   * Makes the oldest undelivered events of a range due, at most `limit`.
   *
   * @returns how many, and the position after which the next call goes on; null at the end of the range
   * @throws StoreFailure
   */
  async recover(
    urlId: number,
    { limit, nowMs, ...range }: RecoveryStep,
  ): Promise<{ count: number; next: LogPosition | null }> {
    const { afterId, toId } = denseIds(range);
    const gaps = await readGaps(this.#parts.readTables, urlId);
    const filter = (await findUrl(this.#parts.readTables, urlId))?.filter ?? null;
    // A URL without a filter gets pings only.
    const kindsBelow = filter === null ? FIRST_EVENT_KIND : Number.MAX_SAFE_INTEGER;
    return await storeWrite(this.#parts, 'recover events', () => {
      const inTable = ['dead', 'pending'].flatMap((state) => {
        return this.#undelivered.all(urlId, state, afterId, toId, limit) as number[];
      });
      const inGaps = gaps.flatMap((gap) => {
        const [from, to] = [Math.max(gap.afterId, afterId), Math.min(gap.untilId, toId)];
        return from < to ? (this.#undeliveredInGap.all({ urlId, from, to, limit, kindsBelow }) as number[]) : [];
      });
      const oldest = [...inTable, ...inGaps].sort((a, b) => a - b).slice(0, limit);
      const passing = filter === null ? oldest : this.#passingIds(filter, oldest);
      for (const uplinkId of passing) this.#putDue.run({ urlId, uplinkId, nowMs });
      const lastId = oldest.at(-1);
      return { count: passing.length, next: lastId === undefined ? null : positionAfter(lastId) };
    });
  }

  /** Makes the damaged events of a range due whose pings have been repaired. Returns how many. @throws StoreFailure */
  async releaseRepaired(urlId: number, { nowMs, ...range }: Omit<RecoveryStep, 'limit'>): Promise<number> {
    const { afterId: first, toId } = denseIds(range);
    let released = 0;
    for (let afterId: number | undefined = first; afterId !== undefined; ) {
      const uplinks = this.#readDamaged({ urlId, afterId, toId });
      const repaired = uplinks.filter(({ isDamaged }) => !isDamaged);
      if (repaired.length > 0)
        await storeWrite(this.#parts, 'send repaired events', () => {
          for (const { id: uplinkId } of repaired) this.#putDue.run({ urlId, uplinkId, nowMs });
        });
      released += repaired.length;
      afterId = uplinks.at(-1)?.id;
    }
    return released;
  }

  #passingIds(filter: WebhookFilter, uplinkIds: readonly number[]): number[] {
    const rows = uplinkIds.map((id) => this.#uplink.get(id) as UplinkRow | undefined);
    const events = rows.filter((row) => row !== undefined).map(toUplink);
    return this.#passing.select(filter, events).map(({ id }) => id);
  }

  #readDamaged(range: { readonly urlId: number; readonly afterId: number; readonly toId: number }): StoredUplink[] {
    return storeCall('read deliveries', () => (this.#damaged.all(range) as UplinkRow[]).map(toUplink));
  }
}

/** The ids between two positions: all ids of this engine are in one slot of the log. */
function denseIds({ after, before }: Pick<RecoveryStep, 'after' | 'before'>) {
  const toId = before === undefined ? Number.MAX_SAFE_INTEGER : idInSlot(before, DENSE_SLOT);
  return { afterId: idInSlot(after, DENSE_SLOT), toId };
}

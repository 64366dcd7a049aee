/**
 * Operators' work on webhooks in the SQLite store. Ordinary tables go through Kysely; statements on the log or many
 * deliveries are hand-written SQL. Every write holds the write mutex.
 *
 * A URL's cursor is the last uplink of the log whose delivery was started. A gap is a range of uplinks that the cursor
 * skipped when a disabled URL was enabled; their events were not sent.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { Kysely, Transaction } from 'kysely';
import { afterThisTurn } from '../../../../../proto/clock.js';
import type { EventKey } from '../../../../webhooks/event-id.js';
import { noSuchWebhook, StoreFailure } from '../../../contract/errors.js';
import { DENSE_SLOT, idInSlot, type LogPosition, positionAfter } from '../../../contract/log/log-position.js';
import type { StoredUplink } from '../../../contract/log/stored-uplink.js';
import type {
  AttemptedCounts,
  AttemptSummary,
  CountedRange,
  DeliveryFilter,
  DeliveryReading,
  DeliveryWait,
  OldSecret,
  RecoveryStep,
  ResendOutcome,
  SecretRotation,
  UnsentCount,
  WaitsPage,
  WebhookChange,
  WebhookStore,
} from '../../../contract/webhook-store.js';
import { FIRST_EVENT_KIND } from '../../../contract/webhooks/merchant-event.js';
import type { WebhookFilter } from '../../../contract/webhooks/webhook-filter.js';
import type { WebhookUrl } from '../../../contract/webhooks/webhook-url.js';
import { toUplink, UPLINK_COLUMNS, type UplinkRow } from '../../../log/uplink-row.js';
import type { Tables } from '../../../tables/schema.js';
import type { UplinkLookup } from '../../log/uplink-lookup.js';
import type { WriteMutex } from '../../write-mutex.js';
import { DeliveryCounts } from './delivery-counts.js';
import { DeliveryWaits } from './delivery-waits.js';
import { PassingEvents } from './passing-events.js';
import { filterColumns, toWebhookUrl } from './url-rows.js';
import { DeliveryReader, type Gap } from './webhook-rows.js';

/** Maximum number of damaged events that are read together and released in one commit. */
const MAX_REPAIRED_PER_COMMIT = 200;
/** Maximum number of a removed URL's rows that one commit deletes, since pings wait for a commit. */
const MAX_REMOVED_PER_COMMIT = 200;

/** The number of uplink ids whose deliveries at a URL with a filter are read at once, before other work gets a turn. */
const FILTERED_SLICE = 1_024;

/** The columns of a URL without failures and pauses. */
const NO_FAILURES = { failing_since_ms: null, failing_for_ms: 0, held_until_ms: null, held_for_ms: null };

export interface SqliteWebhooksParts {
  readonly mutex: WriteMutex;
  readonly writer: Database;
  readonly reader: Database;
  readonly tables: Kysely<Tables>;
  readonly readTables: Kysely<Tables>;
  readonly lookup: UplinkLookup;
}

export class SqliteWebhooks implements WebhookStore {
  readonly #parts: SqliteWebhooksParts;
  readonly #deliveries: DeliveryReader;
  readonly #counts: DeliveryCounts;
  readonly #waits: DeliveryWaits;
  readonly #pendingLocks: Statement;
  readonly #hasPending: Statement;
  readonly #firstFrom: Statement;
  readonly #putDue: Statement;
  readonly #isOnItsWay: Statement;
  readonly #undelivered: Statement;
  readonly #undeliveredInGap: Statement;
  readonly #damaged: Statement;
  readonly #uplink: Statement;
  readonly #passing: PassingEvents;

  constructor(parts: SqliteWebhooksParts) {
    this.#parts = parts;
    const { reader, writer } = parts;
    this.#passing = new PassingEvents(reader);
    this.#deliveries = new DeliveryReader(reader, parts.lookup.memtable, this.#passing);
    this.#counts = new DeliveryCounts(reader);
    this.#uplink = reader.prepare(
      `SELECT ${UPLINK_COLUMNS} FROM uplink u JOIN device d ON d.id = u.device_id WHERE u.id = ?`,
    );
    this.#waits = new DeliveryWaits(reader, writer);
    this.#pendingLocks = reader
      .prepare(
        `SELECT DISTINCT device_id FROM delivery INDEXED BY delivery_by_lock WHERE url_id = ? AND state = 'pending'`,
      )
      .pluck();
    this.#hasPending = reader
      .prepare(`SELECT 1 FROM delivery WHERE url_id = ? AND device_id = ? AND state = 'pending' LIMIT 1`)
      .pluck();
    this.#firstFrom = reader.prepare('SELECT id, received_at_ms FROM uplink WHERE id >= ? ORDER BY id LIMIT 1');
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

  async find(urlId: number): Promise<WebhookUrl | null> {
    return await findUrl(this.#parts.readTables, urlId);
  }

  change(urlId: number, change: WebhookChange): Promise<WebhookUrl> {
    return this.#transaction((db) => changeUrl(db, urlId, change));
  }

  async remove(urlId: number): Promise<void> {
    // The URL's row is deleted last: rows that a crash leaves then still belong to a URL, and can be removed later.
    for (const table of ['delivery', 'attempt']) while ((await this.#removeSome(table, urlId)) > 0);
    await this.#transaction(async (db) => {
      await requireUrl(db, urlId);
      await db.deleteFrom('delivery').where('url_id', '=', urlId).execute();
      await db.deleteFrom('attempt').where('url_id', '=', urlId).execute();
      await db.deleteFrom('webhook_old_secret').where('url_id', '=', urlId).execute();
      await db.deleteFrom('webhook_gap').where('url_id', '=', urlId).execute();
      await db.deleteFrom('webhook_url').where('id', '=', urlId).execute();
    });
  }

  /** Deletes some of a URL's rows in one commit, and returns how many. */
  #removeSome(table: string, urlId: number): Promise<number> {
    const rowids = `SELECT rowid FROM ${table} WHERE url_id = ? LIMIT ${MAX_REMOVED_PER_COMMIT}`;
    return this.#write('remove deliveries', () => {
      return this.#parts.writer.prepare(`DELETE FROM ${table} WHERE rowid IN (${rowids})`).run(urlId).changes;
    });
  }

  rotateSecret(urlId: number, { secretSealed, nowMs, oldValidUntilMs }: SecretRotation): Promise<WebhookUrl> {
    return this.#transaction(async (db) => {
      const before = await requireUrl(db, urlId);
      const old = { url_id: urlId, secret_sealed: before.secretSealed, valid_until_ms: oldValidUntilMs };
      await db.insertInto('webhook_old_secret').values(old).execute();
      // A rotation may shorten the validity of older secrets, but never extends it.
      await db
        .updateTable('webhook_old_secret')
        .set({ valid_until_ms: oldValidUntilMs })
        .where('url_id', '=', urlId)
        .where('valid_until_ms', '>', oldValidUntilMs)
        .execute();
      await db
        .deleteFrom('webhook_old_secret')
        .where('url_id', '=', urlId)
        .where('valid_until_ms', '<=', nowMs)
        .execute();
      await db.updateTable('webhook_url').set({ secret_sealed: secretSealed }).where('id', '=', urlId).execute();
      return await requireUrl(db, urlId);
    });
  }

  async readOldSecrets(urlId: number, nowMs: number): Promise<OldSecret[]> {
    const rows = await this.#parts.readTables
      .selectFrom('webhook_old_secret')
      .selectAll()
      .where('url_id', '=', urlId)
      .where('valid_until_ms', '>', nowMs)
      .orderBy('id', 'desc')
      .execute();
    return rows.map((row) => ({ secretSealed: row.secret_sealed, validUntilMs: row.valid_until_ms }));
  }

  async readPendingLocks(urlId: number): Promise<number[]> {
    return this.#run('read deliveries', () => this.#pendingLocks.all(urlId) as number[]);
  }

  async readWaits(urlId: number, page: WaitsPage): Promise<DeliveryWait[]> {
    return this.#run('read deliveries', () => this.#waits.read(urlId, page));
  }

  shortenWaits(urlId: number, waits: readonly { readonly uplinkId: number; readonly atMs: number }[]): Promise<void> {
    const { mutex } = this.#parts;
    return mutex.runExclusive(() => this.#run('make deliveries due', () => this.#waits.shorten(urlId, waits)));
  }

  async findPending(urlId: number, deviceId: number): Promise<boolean> {
    return this.#run('read deliveries', () => this.#hasPending.get(urlId, deviceId) !== undefined);
  }

  async findPositionAt(receivedAtMs: number): Promise<LogPosition> {
    return positionAfter((await this.findFirstUplinkFrom(receivedAtMs)) - 1);
  }

  /** A binary search, since times of receipt grow with ids. */
  async findFirstUplinkFrom(receivedAtMs: number): Promise<number> {
    return this.#run('read the log', () => {
      let [low, high] = [0, Number.MAX_SAFE_INTEGER];
      let last = 0;
      while (low < high) {
        const middle = Math.floor(low + (high - low) / 2);
        const row = this.#firstFrom.get(middle) as { id: number; received_at_ms: number } | undefined;
        if (row === undefined || row.received_at_ms >= receivedAtMs) high = middle;
        else {
          low = row.id + 1;
          last = row.id;
        }
      }
      const first = this.#firstFrom.get(low) as { id: number } | undefined;
      return first?.id ?? last + 1;
    });
  }

  async findEvent(key: EventKey): Promise<StoredUplink | null> {
    return this.#run('look up an event', () => this.#parts.lookup.findEvent(key));
  }

  async readDeliveries(filter: DeliveryFilter): Promise<DeliveryReading[]> {
    const found: DeliveryReading[] = [];
    for (const urlId of filter.urlIds) {
      const url = await this.find(urlId);
      if (url === null) continue;
      const gaps = await this.#gaps(this.#parts.readTables, urlId);
      if (url.filter === null)
        found.push(...this.#run('read deliveries', () => this.#deliveries.read(url, gaps, filter)));
      else found.push(...(await this.#readFiltered(url, gaps, filter)));
    }
    return found.sort((a, b) => b.uplink.id - a.uplink.id || a.urlId - b.urlId).slice(0, filter.limit);
  }

  async readNewestAttempts(urlId: number, limit: number): Promise<AttemptSummary[]> {
    return this.#run('read deliveries', () => this.#deliveries.readNewestAttempts(urlId, limit));
  }

  async countAttempted(urlId: number, range: CountedRange): Promise<AttemptedCounts> {
    return this.#run('count deliveries', () => this.#counts.attempted(urlId, range));
  }

  async countPings(urlId: number, range: CountedRange): Promise<UnsentCount> {
    return this.#run('count deliveries', () => this.#counts.pings(urlId, range));
  }

  /** Reads in slices of the log, since few events may pass the filter; pings arrive between two slices. */
  async #readFiltered(url: WebhookUrl, gaps: readonly Gap[], filter: DeliveryFilter): Promise<DeliveryReading[]> {
    const found: DeliveryReading[] = [];
    const newestId = await endOfLog(this.#parts.readTables, 0);
    for (let toId = Math.min(filter.toId, newestId); toId >= filter.fromId && toId > 0; toId -= FILTERED_SLICE) {
      const fromId = Math.max(filter.fromId, toId - FILTERED_SLICE + 1);
      const slice = { ...filter, fromId, toId, limit: filter.limit - found.length };
      found.push(...this.#run('read deliveries', () => this.#deliveries.read(url, gaps, slice)));
      if (found.length === filter.limit) break;
      await new Promise<void>((resolve) => afterThisTurn(resolve));
    }
    return found;
  }

  resend(urlId: number, uplinkId: number, nowMs: number): Promise<ResendOutcome> {
    return this.#write('send an event again', () => {
      if (this.#isOnItsWay.get({ urlId, uplinkId }) !== undefined) return 'on-its-way';
      this.#putDue.run({ urlId, uplinkId, nowMs });
      return 'due';
    });
  }

  async recover(
    urlId: number,
    { limit, nowMs, ...range }: RecoveryStep,
  ): Promise<{ count: number; next: LogPosition | null }> {
    const { afterId, toId } = denseIds(range);
    const gaps = await this.#gaps(this.#parts.readTables, urlId);
    const filter = (await this.find(urlId))?.filter ?? null;
    const kindsBelow = filter === null ? FIRST_EVENT_KIND : Number.MAX_SAFE_INTEGER;
    return await this.#write('recover events', () => {
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

  #passingIds(filter: WebhookFilter, uplinkIds: readonly number[]): number[] {
    const rows = uplinkIds.map((id) => this.#uplink.get(id) as UplinkRow | undefined);
    const events = rows.filter((row) => row !== undefined).map(toUplink);
    return this.#passing.select(filter, events).map(({ id }) => id);
  }

  async selectPassing(filter: WebhookFilter, events: readonly StoredUplink[]): Promise<StoredUplink[]> {
    return this.#run('read labels', () => this.#passing.select(filter, events));
  }

  async releaseRepaired(urlId: number, { nowMs, ...range }: Omit<RecoveryStep, 'limit'>): Promise<number> {
    const { afterId: first, toId } = denseIds(range);
    let released = 0;
    for (let afterId: number | undefined = first; afterId !== undefined; ) {
      const uplinks = this.#readDamaged({ urlId, afterId, toId });
      const repaired = uplinks.filter(({ isDamaged }) => !isDamaged);
      if (repaired.length > 0)
        await this.#write('send repaired events', () => {
          for (const { id: uplinkId } of repaired) this.#putDue.run({ urlId, uplinkId, nowMs });
        });
      released += repaired.length;
      afterId = uplinks.at(-1)?.id;
    }
    return released;
  }

  #readDamaged(range: { readonly urlId: number; readonly afterId: number; readonly toId: number }): StoredUplink[] {
    return this.#run('read deliveries', () => (this.#damaged.all(range) as UplinkRow[]).map(toUplink));
  }

  async #gaps(db: Kysely<Tables>, urlId: number): Promise<Gap[]> {
    const rows = await db
      .selectFrom('webhook_gap')
      .selectAll()
      .where('url_id', '=', urlId)
      .orderBy('after_id')
      .execute();
    return rows.map((row) => ({ afterId: row.after_id, untilId: row.until_id }));
  }

  #transaction<T>(work: (db: Transaction<Tables>) => Promise<T>): Promise<T> {
    return this.#parts.mutex.runExclusive(() => this.#parts.tables.transaction().execute(work));
  }

  #write<T>(action: string, work: () => T): Promise<T> {
    const { mutex, writer } = this.#parts;
    return mutex.runExclusive(() => this.#run(action, () => writer.transaction(work).immediate()));
  }

  /** Runs `work`; `action` completes a failure's message "the store could not …". */
  #run<T>(action: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw new StoreFailure(action, error);
    }
  }
}

async function findUrl(db: Kysely<Tables>, urlId: number): Promise<WebhookUrl | null> {
  const row = await db
    .selectFrom('webhook_url')
    .innerJoin('merchant', 'merchant.id', 'webhook_url.merchant_id')
    .selectAll('webhook_url')
    .select('merchant.name as merchant_name')
    .where('webhook_url.id', '=', urlId)
    .executeTakeFirst();
  return row === undefined ? null : toWebhookUrl(row);
}

/** @throws LockgateError `no-such-webhook` */
async function requireUrl(db: Kysely<Tables>, urlId: number): Promise<WebhookUrl> {
  const url = await findUrl(db, urlId);
  if (url === null) throw noSuchWebhook(urlId);
  return url;
}

/** Changes a URL in a transaction. @throws LockgateError `no-such-webhook` */
export async function changeUrl(db: Kysely<Tables>, urlId: number, change: WebhookChange): Promise<WebhookUrl> {
  const before = await requireUrl(db, urlId);
  const { url, headersSealed, ordered, filter, disabledWhy, attemptsPerSecond, timeoutMs, ca } = change;
  const enabling = disabledWhy === null && before.state === 'disabled';
  // An enabled URL gets events from now on; those that arrived while it was disabled become a gap.
  const cursorBefore = idInSlot(before.cursor, DENSE_SLOT);
  const cursor = enabling ? await endOfLog(db, cursorBefore) : cursorBefore;
  if (cursor > cursorBefore) {
    const gap = { url_id: urlId, after_id: cursorBefore, until_id: cursor };
    await db.insertInto('webhook_gap').values(gap).execute();
  }
  const changed = {
    ...(url !== undefined && { url }),
    ...(headersSealed !== undefined && { headers: JSON.stringify(headersSealed), headers_sealed: 1 }),
    ...(ordered !== undefined && { ordered: ordered ? 1 : 0 }),
    ...(attemptsPerSecond !== undefined && { attempts_per_second: attemptsPerSecond }),
    ...(timeoutMs !== undefined && { timeout_ms: timeoutMs }),
    ...(ca !== undefined && { ca }),
    ...(filter !== undefined && (await changedFilterColumns(db, before, filter))),
    ...(typeof disabledWhy === 'string' && { state: 'disabled' as const, disabled_why: disabledWhy }),
    ...(enabling && { state: 'active' as const, disabled_why: null, cursor }),
    // Earlier failures and pauses do not apply to a new or newly enabled receiver.
    ...((enabling || url !== undefined) && NO_FAILURES),
  };
  // Enabling an active URL changes no column, and an UPDATE without columns is not valid SQL.
  if (Object.keys(changed).length > 0)
    await db.updateTable('webhook_url').set(changed).where('id', '=', urlId).execute();
  return await requireUrl(db, urlId);
}

async function changedFilterColumns(db: Kysely<Tables>, { id, ...url }: WebhookUrl, filter: WebhookFilter) {
  const cursor = idInSlot(url.cursor, DENSE_SLOT);
  const { filtered_after } = await db
    .selectFrom('webhook_url')
    .select('filtered_after')
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  return filterColumns(filter, { filtered_after }, cursor, await endOfLog(db, cursor));
}

/** Returns the id of the log's last uplink, but at least `minId`. */
async function endOfLog(db: Kysely<Tables>, minId: number): Promise<number> {
  const last = await db.selectFrom('uplink').select('id').orderBy('id', 'desc').limit(1).executeTakeFirst();
  return Math.max(last?.id ?? 0, minId);
}

/** The ids between two positions: all ids of this engine are in one slot. */
function denseIds({ after, before }: Pick<RecoveryStep, 'after' | 'before'>) {
  const toId = before === undefined ? Number.MAX_SAFE_INTEGER : idInSlot(before, DENSE_SLOT);
  return { afterId: idInSlot(after, DENSE_SLOT), toId };
}

/**
 * Operators' work on webhooks in the SQLite store: URLs and their secrets, lists and counts of deliveries, and events
 * that are sent again. Ordinary tables go through Kysely; statements on the log or on many deliveries are hand-written
 * SQL. Every write holds the write mutex.
 */
import type { Statement } from 'better-sqlite3';
import type { Transaction } from 'kysely';
import { afterThisTurn } from '../../../../../proto/clock.js';
import type { EventKey } from '../../../../webhooks/event-id.js';
import { type LogPosition, positionAfter } from '../../../contract/log/log-position.js';
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
import type { Tables } from '../../../tables/schema.js';
import { DeliveryWaits } from './delivery-waits.js';
import { FirstUplinks } from './first-uplinks.js';
import { PassingEvents } from './passing-events.js';
import { Resends } from './resends.js';
import { storeCall } from './store-call.js';
import { changeUrl, endOfLog, findUrl, readGaps, removeUrl, rotateUrlSecret } from './url-changes.js';
import type { Gap } from './webhook-rows.js';
import type { SqliteWebhooksParts } from './webhooks-parts.js';

/**
 * Maximum number of a removed URL's deliveries, and of its attempts, that one commit of the log's writer deletes, since
 * pings wait for that commit.
 */
const MAX_REMOVED_PER_COMMIT = 200;

/** The number of uplink ids whose deliveries at a URL with a filter are read at once, before other work gets a turn. */
const FILTERED_SLICE = 1_024;

export class SqliteWebhooks implements WebhookStore {
  readonly #parts: SqliteWebhooksParts;
  readonly #waits: DeliveryWaits;
  readonly #resends: Resends;
  readonly #pendingLocks: Statement;
  readonly #hasPending: Statement;
  readonly #hasRows: Statement;
  readonly #firstUplinks: FirstUplinks;
  readonly #passing: PassingEvents;

  constructor(parts: SqliteWebhooksParts) {
    this.#parts = parts;
    const { reader, writer } = parts;
    this.#passing = new PassingEvents(reader);
    this.#resends = new Resends(parts, this.#passing);
    this.#waits = new DeliveryWaits(reader, writer);
    this.#pendingLocks = reader
      .prepare(
        `SELECT DISTINCT device_id FROM delivery INDEXED BY delivery_by_lock WHERE url_id = ? AND state = 'pending'`,
      )
      .pluck();
    this.#hasPending = reader
      .prepare(`SELECT 1 FROM delivery WHERE url_id = ? AND device_id = ? AND state = 'pending' LIMIT 1`)
      .pluck();
    this.#hasRows = reader.prepare(
      `SELECT 1 WHERE EXISTS (SELECT 1 FROM delivery WHERE url_id = @urlId)
         OR EXISTS (SELECT 1 FROM attempt WHERE url_id = @urlId)`,
    );
    this.#firstUplinks = new FirstUplinks(reader);
  }

  async find(urlId: number): Promise<WebhookUrl | null> {
    return await findUrl(this.#parts.readTables, urlId);
  }

  change(urlId: number, change: WebhookChange): Promise<WebhookUrl> {
    return this.#transaction((db) => changeUrl(db, urlId, change));
  }

  async remove(urlId: number): Promise<void> {
    // The URL's row is deleted last: rows that a crash leaves then still belong to a URL, and can be removed later.
    const removal = { type: 'removal', urlId, limit: MAX_REMOVED_PER_COMMIT } as const;
    while (storeCall('read deliveries', () => this.#hasRows.get({ urlId }) !== undefined)) {
      await this.#parts.writeBatched('remove deliveries', removal);
      await new Promise<void>((resolve) => afterThisTurn(resolve));
    }
    await this.#transaction((db) => removeUrl(db, urlId));
  }

  rotateSecret(urlId: number, rotation: SecretRotation): Promise<WebhookUrl> {
    return this.#transaction((db) => rotateUrlSecret(db, urlId, rotation));
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
    return storeCall('read deliveries', () => this.#pendingLocks.all(urlId) as number[]);
  }

  async readWaits(urlId: number, page: WaitsPage): Promise<DeliveryWait[]> {
    return storeCall('read deliveries', () => this.#waits.read(urlId, page));
  }

  shortenWaits(urlId: number, waits: readonly { readonly uplinkId: number; readonly atMs: number }[]): Promise<void> {
    const { mutex } = this.#parts;
    return mutex.runExclusive(() => storeCall('make deliveries due', () => this.#waits.shorten(urlId, waits)));
  }

  async hasPending(urlId: number, deviceId: number): Promise<boolean> {
    return storeCall('read deliveries', () => this.#hasPending.get(urlId, deviceId) !== undefined);
  }

  async findPositionAt(_merchantId: number, receivedAtMs: number): Promise<LogPosition> {
    return positionAfter((await this.findFirstUplinkFrom(receivedAtMs)) - 1);
  }

  async findFirstUplinkFrom(receivedAtMs: number): Promise<number> {
    return storeCall('read the log', () => this.#firstUplinks.find(receivedAtMs));
  }

  async findEvent(key: EventKey): Promise<StoredUplink | null> {
    return storeCall('look up an event', () => this.#parts.lookup.findEvent(key));
  }

  async readDeliveries(filter: DeliveryFilter): Promise<DeliveryReading[]> {
    const found: DeliveryReading[] = [];
    for (const urlId of filter.urlIds) {
      const url = await this.find(urlId);
      if (url === null) continue;
      const gaps = await readGaps(this.#parts.readTables, urlId);
      if (url.filter === null) found.push(...(await this.#parts.scans.readDeliveries(url, gaps, filter)));
      else found.push(...(await this.#readFiltered(url, gaps, filter)));
    }
    return found.sort((a, b) => b.uplink.id - a.uplink.id || a.urlId - b.urlId).slice(0, filter.limit);
  }

  sumUpNewestAttempts(urlId: number, summed: SummedAttempts): Promise<AttemptFigures> {
    return this.#parts.scans.sumUpNewestAttempts(urlId, summed);
  }

  countAttempted(urlId: number, range: CountedRange): Promise<AttemptedCounts> {
    return this.#parts.scans.countAttempted(urlId, range);
  }

  countPings(urlId: number, range: CountedRange): Promise<PingCount> {
    return this.#parts.scans.countPings(urlId, range);
  }

  /** Reads in slices of the log, since few events may pass the filter; pings arrive between two slices. */
  async #readFiltered(url: WebhookUrl, gaps: readonly Gap[], filter: DeliveryFilter): Promise<DeliveryReading[]> {
    const found: DeliveryReading[] = [];
    const newestId = await endOfLog(this.#parts.readTables, 0);
    for (let toId = Math.min(filter.toId, newestId); toId >= filter.fromId && toId > 0; toId -= FILTERED_SLICE) {
      const fromId = Math.max(filter.fromId, toId - FILTERED_SLICE + 1);
      const slice = { ...filter, fromId, toId, limit: filter.limit - found.length };
      found.push(...(await this.#parts.scans.readDeliveries(url, gaps, slice)));
      if (found.length === filter.limit) break;
      await new Promise<void>((resolve) => afterThisTurn(resolve));
    }
    return found;
  }

  resend(urlId: number, uplinkId: number, nowMs: number): Promise<ResendOutcome> {
    return this.#resends.resend(urlId, uplinkId, nowMs);
  }

  recover(urlId: number, step: RecoveryStep): Promise<{ count: number; next: LogPosition | null }> {
    return this.#resends.recover(urlId, step);
  }

  async selectPassing(filter: WebhookFilter, events: readonly StoredUplink[]): Promise<StoredUplink[]> {
    return storeCall('read labels', () => this.#passing.select(filter, events));
  }

  releaseRepaired(urlId: number, range: Omit<RecoveryStep, 'limit'>): Promise<number> {
    return this.#resends.releaseRepaired(urlId, range);
  }

  #transaction<T>(work: (db: Transaction<Tables>) => Promise<T>): Promise<T> {
    return this.#parts.mutex.runExclusive(() => this.#parts.tables.transaction().execute(work));
  }
}

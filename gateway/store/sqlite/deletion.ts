/**
 * Deletes data in hand-written SQL: all data of one lock, or old rows chunk by chunk. Must be called inside a
 * transaction. Connections run with secure_delete, so that deleted content is overwritten and not only freed.
 *
 * The log is the table `uplink`, with all messages from locks. Its two indexes, by key and by lock, are tables too
 * (`uplink_name`, `uplink_of_device`), to which the newest uplinks are added later; until then these are in the
 * memtable (log/memtable/uplink-memtable.ts).
 */
import type { Database, Statement } from 'better-sqlite3';
import type { AgingChunk, AgingResult, Erased } from '../contract/deletion.js';
import { NEWEST_UPLINK } from '../log/uplink-row.js';
import { UPLINK_SUM } from './log/uplink-sum-function.js';

/** A row that may be deleted. `isHeld`: an undelivered event, which must stay. Booleans are 0 and 1. */
interface OldRow {
  readonly id: number;
  readonly isOld: number;
  readonly isHeld: number;
}

/**
 * A condition in SQL: an active URL still needs the uplink, since the uplink is after the URL's cursor, or waits for a
 * retry or for an earlier event of its lock. Events that a URL did not get while it was disabled may be deleted.
 */
const IS_HELD = `(u.kind > 0 AND EXISTS (
  SELECT 1 FROM webhook_url w WHERE w.merchant_id = u.merchant_id AND w.state = 'active'
    AND (w.cursor < u.id OR EXISTS (
      SELECT 1 FROM delivery y WHERE y.url_id = w.id AND y.uplink_id = u.id AND y.state = 'pending'))))`;

/** The uplinks of one lock in the index by lock; the lock's id is the statement's only parameter. */
const INDEXED_UPLINKS = 'SELECT uplink_id FROM uplink_of_device WHERE device_id = ?';
/** Erases the content of uplinks (kind -1: erased); their keys stay, so that a repeat is recognised. */
const ERASE = `UPDATE uplink SET bytes = x'', digest = x'', kind = -1`;
/** Erased rows remain, and get a new checksum. */
const UPDATE_SUM = `UPDATE uplink SET sum = ${UPLINK_SUM}`;
/** A condition that is always true, so that SQLite uses the index over (url_id, uplink_id). */
const ANY_URL = 'url_id IN (SELECT id FROM webhook_url)';

export class Deletion {
  readonly #select: Readonly<Record<AgingChunk['table'], Statement>>;
  readonly #delete: Readonly<Record<AgingChunk['table'], Statement>>;
  readonly #deleteAttempts: Statement;
  readonly #deleteDeliveries: Statement;
  readonly #deleteGaps: Statement;
  readonly #countPending: Statement;
  readonly #eraseAttempts: Statement;
  readonly #eraseDeliveries: Statement;
  readonly #eraseUplinks: Statement;
  readonly #eraseUplink: Statement;
  readonly #sumUplinks: Statement;
  readonly #sumUplink: Statement;
  readonly #eraseHints: Statement;
  readonly #countPendingOf: Statement;
  readonly #deleteKey: Statement;
  readonly #deleteOfDevice: Statement;
  readonly #eraseFindings: Statement;
  readonly #eraseQuarantine: Statement;
  readonly #eraseLockEvents: Statement;
  readonly #eraseStaged: Statement;
  readonly #eraseRefusals: Statement;
  readonly #eraseState: Statement;
  readonly #putState: Statement;

  constructor(db: Database) {
    const selectRows = (table: string, timeColumn: string, isHeld: string): Statement =>
      db.prepare(
        `SELECT u.id, u.${timeColumn} < ? AS isOld, ${isHeld} AS isHeld FROM ${table} u
         WHERE u.id > ? ORDER BY u.id LIMIT ?`,
      );
    const deleteById = (table: string): Statement => db.prepare(`DELETE FROM ${table} WHERE id = ?`);
    const deleteByDevice = (table: string): Statement => db.prepare(`DELETE FROM ${table} WHERE device_id = ?`);
    this.#select = {
      uplink: selectRows('uplink', 'received_at_ms', IS_HELD),
      lock_event: selectRows('lock_event', 'at_ms', '0'),
      finding: selectRows('finding', 'at_ms', '0'),
      quarantine: selectRows('quarantine', 'received_at_ms', '0'),
    };
    this.#delete = {
      uplink: deleteById('uplink'),
      lock_event: deleteById('lock_event'),
      finding: deleteById('finding'),
      quarantine: deleteById('quarantine'),
    };
    this.#deleteAttempts = db.prepare(`DELETE FROM attempt WHERE ${ANY_URL} AND uplink_id = ?`);
    this.#deleteDeliveries = db.prepare(`DELETE FROM delivery WHERE ${ANY_URL} AND uplink_id = ?`);
    // A gap records which events a URL did not get; it is useless once all its events are deleted.
    this.#deleteGaps = db.prepare('DELETE FROM webhook_gap WHERE until_id < (SELECT min(id) FROM uplink)');
    this.#countPending = db
      .prepare(
        `SELECT count(*) FROM delivery WHERE ${ANY_URL} AND uplink_id IN (${INDEXED_UPLINKS}) AND state = 'pending'`,
      )
      .pluck();
    this.#eraseAttempts = db.prepare(`DELETE FROM attempt WHERE ${ANY_URL} AND uplink_id IN (${INDEXED_UPLINKS})`);
    this.#eraseDeliveries = db.prepare(`DELETE FROM delivery WHERE ${ANY_URL} AND uplink_id IN (${INDEXED_UPLINKS})`);
    this.#eraseUplinks = db.prepare(`${ERASE} WHERE id IN (${INDEXED_UPLINKS}) AND kind >= 0`);
    this.#eraseUplink = db.prepare(`${ERASE} WHERE id = ? AND kind >= 0`);
    this.#sumUplinks = db.prepare(`${UPDATE_SUM} WHERE id IN (${INDEXED_UPLINKS}) AND kind = -1`);
    this.#sumUplink = db.prepare(`${UPDATE_SUM} WHERE id = ?`);
    // A hint says in the index what an uplink contains (log/uplink-hint.ts).
    this.#eraseHints = db.prepare('UPDATE uplink_of_device SET hint = NULL WHERE device_id = ? AND hint IS NOT NULL');
    this.#countPendingOf = db
      .prepare(`SELECT count(*) FROM delivery WHERE ${ANY_URL} AND uplink_id = ? AND state = 'pending'`)
      .pluck();
    // These conditions have all columns of the index's primary key, so that no row has to be searched for.
    this.#deleteKey = db.prepare(
      `DELETE FROM uplink_name WHERE uplink_id = @id AND (credential_id, boot, sequence) = (
         SELECT credential_id, boot, sequence FROM uplink WHERE id = @id)`,
    );
    this.#deleteOfDevice = db.prepare(
      `DELETE FROM uplink_of_device
       WHERE uplink_id = @id AND device_id = (SELECT device_id FROM uplink WHERE id = @id)`,
    );
    this.#eraseFindings = deleteByDevice('finding');
    this.#eraseQuarantine = deleteByDevice('quarantine');
    this.#eraseLockEvents = deleteByDevice('lock_event');
    this.#eraseStaged = deleteByDevice('staged_event');
    this.#eraseRefusals = deleteByDevice('refusal');
    this.#eraseState = deleteByDevice('device_state');
    this.#putState = db.prepare(
      `INSERT INTO device_state (device_id, state, through_uplink_id) VALUES (?, ?, ${NEWEST_UPLINK})`,
    );
  }

  /**
   * Erases a lock's data. `memtableIds`: the lock's uplinks in the memtable, which the index by lock may not have yet.
   */
  erase(deviceId: number, state: string | null, memtableIds: readonly number[]): Erased {
    let pendingDeliveries = this.#countPending.get(deviceId) as number;
    this.#eraseAttempts.run(deviceId);
    this.#eraseDeliveries.run(deviceId);
    let { changes: uplinks } = this.#eraseUplinks.run(deviceId);
    this.#sumUplinks.run(deviceId);
    this.#eraseHints.run(deviceId);
    for (const id of memtableIds) {
      pendingDeliveries += this.#countPendingOf.get(id) as number;
      this.#deleteAttempts.run(id);
      this.#deleteDeliveries.run(id);
      uplinks += this.#eraseUplink.run(id).changes;
      this.#sumUplink.run(id);
    }
    const { changes: findings } = this.#eraseFindings.run(deviceId);
    const { changes: quarantined } = this.#eraseQuarantine.run(deviceId);
    const { changes: lockEvents } = this.#eraseLockEvents.run(deviceId);
    const { changes: refusals } = this.#eraseRefusals.run(deviceId);
    this.#eraseStaged.run(deviceId);
    this.#eraseState.run(deviceId);
    if (state !== null) this.#putState.run(deviceId, state);
    return { uplinks, findings, quarantined, lockEvents, refusals, pendingDeliveries };
  }

  /**
   * Returns the last uplink in the chunk that is too old; 0 if there is none, or the table is not `uplink`. The caller
   * flushes the memtable up to it first: a deleted uplink must not get into the indexes afterwards.
   */
  findLastOld({ table, beforeMs, afterId, limit }: AgingChunk): number {
    if (table !== 'uplink') return 0;
    const rows = this.#select.uplink.all(beforeMs, afterId, limit) as OldRow[];
    return rows.findLast(({ isOld }) => isOld === 1)?.id ?? 0;
  }

  /**
   * Deletes a chunk's old rows. Ids grow with the time of arrival, so it stops at the first row that is not too old.
   */
  deleteOld({ table, beforeMs, afterId, limit }: AgingChunk): AgingResult {
    const rows = this.#select[table].all(beforeMs, afterId, limit) as OldRow[];
    const firstNewIndex = rows.findIndex(({ isOld }) => isOld === 0);
    const oldRows = firstNewIndex === -1 ? rows : rows.slice(0, firstNewIndex);
    let deleted = 0;
    for (const { id, isHeld } of oldRows) {
      if (isHeld === 1) continue;
      if (table === 'uplink') {
        this.#deleteAttempts.run(id);
        this.#deleteDeliveries.run(id);
        this.#deleteKey.run({ id });
        this.#deleteOfDevice.run({ id });
      }
      this.#delete[table].run(id);
      deleted += 1;
    }
    if (table === 'uplink' && deleted > 0) this.#deleteGaps.run();
    const isFinished = firstNewIndex !== -1 || rows.length < limit;
    return { deleted, held: oldRows.length - deleted, nextId: isFinished ? null : (oldRows.at(-1)?.id ?? null) };
  }
}

/**
 * Deletes data, in hand-written SQL: all of one lock at once, and what is too old piece by piece. To be called inside a
 * transaction. Connections run with secure_delete, so that deleted content is overwritten and not merely freed.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { AgingChunk, AgingResult, Erased } from '../contract/store.js';
import { NEWEST_UPLINK } from './log/uplink-row.js';
import { UPLINK_SUM } from './log/uplink-sum.js';

interface OldRow {
  readonly id: number;
  readonly isOld: number;
  readonly isHeld: number;
}

/**
 * An uplink that a URL still needs: it is ahead of the URL's cursor, or waits for a retry or for an earlier one of its
 * lock. A disabled URL holds nothing that is too old, nor does a URL hold what it was not sent while it was disabled.
 */
const IS_HELD = `(u.kind > 0 AND EXISTS (
  SELECT 1 FROM webhook_url w WHERE w.merchant_id = u.merchant_id AND w.state = 'active'
    AND (w.cursor < u.id OR EXISTS (
      SELECT 1 FROM delivery y WHERE y.url_id = w.id AND y.uplink_id = u.id AND y.state = 'pending'))))`;

/** The uplinks of one lock that the index by lock has; the lock's id is the statement's only parameter. */
const OF_DEVICE = 'SELECT uplink_id FROM uplink_of_device WHERE device_id = ?';
const ERASED = `UPDATE uplink SET bytes = x'', digest = x'', kind = -1`;
/** The row that remains gets a new sum. */
const SUMMED = `UPDATE uplink SET sum = ${UPLINK_SUM}`;
/** Named, so that the index over (url_id, uplink_id) serves. */
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
  readonly #isPending: Statement;
  readonly #deleteName: Statement;
  readonly #deleteOfDevice: Statement;
  readonly #eraseFindings: Statement;
  readonly #eraseQuarantine: Statement;
  readonly #eraseLockEvents: Statement;
  readonly #eraseRefusals: Statement;
  readonly #eraseState: Statement;
  readonly #putState: Statement;

  constructor(db: Database) {
    const old = (table: string, time: string, held: string): Statement =>
      db.prepare(
        `SELECT u.id, u.${time} < ? AS isOld, ${held} AS isHeld FROM ${table} u
         WHERE u.id > ? ORDER BY u.id LIMIT ?`,
      );
    const byId = (table: string): Statement => db.prepare(`DELETE FROM ${table} WHERE id = ?`);
    const byDevice = (table: string): Statement => db.prepare(`DELETE FROM ${table} WHERE device_id = ?`);
    this.#select = {
      uplink: old('uplink', 'received_at_ms', IS_HELD),
      lock_event: old('lock_event', 'at_ms', '0'),
      finding: old('finding', 'at_ms', '0'),
      quarantine: old('quarantine', 'received_at_ms', '0'),
    };
    this.#delete = {
      uplink: byId('uplink'),
      lock_event: byId('lock_event'),
      finding: byId('finding'),
      quarantine: byId('quarantine'),
    };
    this.#deleteAttempts = db.prepare(`DELETE FROM attempt WHERE ${ANY_URL} AND uplink_id = ?`);
    this.#deleteDeliveries = db.prepare(`DELETE FROM delivery WHERE ${ANY_URL} AND uplink_id = ?`);
    // A gap says which events a URL was not sent; where none of them is left, it says nothing.
    this.#deleteGaps = db.prepare('DELETE FROM webhook_gap WHERE until_id < (SELECT min(id) FROM uplink)');
    this.#countPending = db
      .prepare(`SELECT count(*) FROM delivery WHERE ${ANY_URL} AND uplink_id IN (${OF_DEVICE}) AND state = 'pending'`)
      .pluck();
    this.#eraseAttempts = db.prepare(`DELETE FROM attempt WHERE ${ANY_URL} AND uplink_id IN (${OF_DEVICE})`);
    this.#eraseDeliveries = db.prepare(`DELETE FROM delivery WHERE ${ANY_URL} AND uplink_id IN (${OF_DEVICE})`);
    this.#eraseUplinks = db.prepare(`${ERASED} WHERE id IN (${OF_DEVICE}) AND kind >= 0`);
    this.#eraseUplink = db.prepare(`${ERASED} WHERE id = ? AND kind >= 0`);
    this.#sumUplinks = db.prepare(`${SUMMED} WHERE id IN (${OF_DEVICE}) AND kind = -1`);
    this.#sumUplink = db.prepare(`${SUMMED} WHERE id = ?`);
    this.#isPending = db
      .prepare(`SELECT count(*) FROM delivery WHERE ${ANY_URL} AND uplink_id = ? AND state = 'pending'`)
      .pluck();
    this.#deleteName = db.prepare(
      `DELETE FROM uplink_name WHERE uplink_id = @id AND (credential_id, boot, sequence) = (
         SELECT credential_id, boot, sequence FROM uplink WHERE id = @id)`,
    );
    this.#deleteOfDevice = db.prepare(
      `DELETE FROM uplink_of_device
       WHERE uplink_id = @id AND device_id = (SELECT device_id FROM uplink WHERE id = @id)`,
    );
    this.#eraseFindings = byDevice('finding');
    this.#eraseQuarantine = byDevice('quarantine');
    this.#eraseLockEvents = byDevice('lock_event');
    this.#eraseRefusals = byDevice('refusal');
    this.#eraseState = byDevice('device_state');
    this.#putState = db.prepare(
      `INSERT INTO device_state (device_id, state, through_uplink_id) VALUES (?, ?, ${NEWEST_UPLINK})`,
    );
  }

  /** `tail`: uplinks of the lock that the table by lock does not have yet, or not for certain. */
  erase(deviceId: number, state: string | null, tail: readonly number[]): Erased {
    let pendingDeliveries = this.#countPending.get(deviceId) as number;
    this.#eraseAttempts.run(deviceId);
    this.#eraseDeliveries.run(deviceId);
    let { changes: uplinks } = this.#eraseUplinks.run(deviceId);
    this.#sumUplinks.run(deviceId);
    for (const id of tail) {
      pendingDeliveries += this.#isPending.get(id) as number;
      this.#deleteAttempts.run(id);
      this.#deleteDeliveries.run(id);
      uplinks += this.#eraseUplink.run(id).changes;
      this.#sumUplink.run(id);
    }
    const { changes: findings } = this.#eraseFindings.run(deviceId);
    const { changes: quarantined } = this.#eraseQuarantine.run(deviceId);
    const { changes: lockEvents } = this.#eraseLockEvents.run(deviceId);
    const { changes: refusals } = this.#eraseRefusals.run(deviceId);
    this.#eraseState.run(deviceId);
    if (state !== null) this.#putState.run(deviceId, state);
    return { uplinks, findings, quarantined, lockEvents, refusals, pendingDeliveries };
  }

  /** The last uplink that {@link deleteOld} would look at and find too old; 0 where there is none, or no uplink. */
  lastOld({ table, beforeMs, afterId, limit }: AgingChunk): number {
    if (table !== 'uplink') return 0;
    const rows = this.#select.uplink.all(beforeMs, afterId, limit) as OldRow[];
    return rows.findLast(({ isOld }) => isOld === 1)?.id ?? 0;
  }

  /** Ids grow with the time of arrival, so the first row that is not too old ends it. */
  deleteOld({ table, beforeMs, afterId, limit }: AgingChunk): AgingResult {
    const rows = this.#select[table].all(beforeMs, afterId, limit) as OldRow[];
    const young = rows.findIndex(({ isOld }) => isOld === 0);
    const old = young === -1 ? rows : rows.slice(0, young);
    let deleted = 0;
    for (const { id, isHeld } of old) {
      if (isHeld === 1) continue;
      if (table === 'uplink') {
        this.#deleteAttempts.run(id);
        this.#deleteDeliveries.run(id);
        this.#deleteName.run({ id });
        this.#deleteOfDevice.run({ id });
      }
      this.#delete[table].run(id);
      deleted += 1;
    }
    if (table === 'uplink' && deleted > 0) this.#deleteGaps.run();
    const isOver = young !== -1 || rows.length < limit;
    return { deleted, held: old.length - deleted, nextId: isOver ? null : (old.at(-1)?.id ?? null) };
  }
}

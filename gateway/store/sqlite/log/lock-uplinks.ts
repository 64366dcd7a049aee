/**
 * Reads the uplinks of one lock in the order of arrival, from the log's index by lock and from the memtable
 * (memtable/uplink-memtable.ts). The index has all uplinks up to `indexedId` and perhaps some later ones; the memtable
 * has all later ones. So the index is read only up to `indexedId`, and the memtable only after it: no uplink is
 * returned twice.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { StoredUplink } from '../../contract/log/stored-uplink.js';
import { type HintedState, hintedStateAfter, repeatsState, validHint } from '../../log/uplink-hint.js';
import { IS_UPLINK, toUplink, UPLINK_COLUMNS, type UplinkRow } from '../../log/uplink-row.js';
import type { UplinkMemtable } from './memtable/uplink-memtable.js';

/** A condition in SQL: an uplink that was sent for the lock's current merchant and is not erased. */
export const IS_SHOWN = `u.merchant_id = d.merchant_id AND ${IS_UPLINK}`;

/** The columns of a stored uplink that are its own, and not its lock's. */
const COLUMNS_WITHOUT_LOCK = `u.id, u.device_id, u.credential_id, u.boot, u.sequence, u.digest, u.bytes,
  u.received_at_ms, u.buffered, u.kind, u.sum`;

/** A row of {@link COLUMNS_WITHOUT_LOCK}. */
type ColumnsWithoutLock = [
  id: number,
  deviceId: number,
  credentialId: number,
  boot: number,
  sequence: number,
  digest: Buffer,
  bytes: Buffer,
  receivedAtMs: number,
  buffered: number,
  kind: number,
  sum: number | null,
];

/** The uplinks of single locks, read over one connection. Methods throw SQLite's errors. */
export class LockUplinks {
  readonly #memtable: Pick<UplinkMemtable, 'idsOf' | 'indexedId' | 'lastId'>;
  readonly #device: Statement;
  readonly #credentialKinds: Statement;
  readonly #ofDevice: Statement;
  readonly #shown: Statement;
  readonly #idBefore: Statement;
  readonly #hints: Statement;

  /** `db` is a reading connection; `memtable` is updated after each commit of the log's writer. */
  constructor(db: Database, memtable: Pick<UplinkMemtable, 'idsOf' | 'indexedId' | 'lastId'>) {
    this.#memtable = memtable;
    this.#device = db.prepare('SELECT mac, simulated, merchant_id FROM device WHERE id = ?');
    this.#credentialKinds = db.prepare('SELECT id, kind FROM credential WHERE device_id = ?').raw();
    this.#ofDevice = db
      .prepare(
        `SELECT ${COLUMNS_WITHOUT_LOCK} FROM uplink_of_device t JOIN uplink u ON u.id = t.uplink_id
         WHERE t.device_id = ? AND t.uplink_id > ? AND t.uplink_id <= ? AND u.merchant_id = ? AND ${IS_UPLINK}
         ORDER BY t.uplink_id LIMIT ?`,
      )
      .raw();
    this.#shown = db.prepare(
      `SELECT ${UPLINK_COLUMNS} FROM uplink u JOIN device d ON d.id = u.device_id WHERE u.id = ? AND ${IS_SHOWN}`,
    );
    this.#hints = db
      .prepare(
        `SELECT uplink_id, hint FROM uplink_of_device WHERE device_id = ? AND uplink_id > ? AND uplink_id <= ?
         ORDER BY uplink_id LIMIT ?`,
      )
      .raw();
    this.#idBefore = db
      .prepare(
        `SELECT uplink_id FROM uplink_of_device WHERE device_id = ? AND uplink_id <= ?
         ORDER BY uplink_id DESC LIMIT 1 OFFSET ?`,
      )
      .pluck();
  }

  /** The id of the newest uplink of all locks. */
  get lastId(): number {
    return this.#memtable.lastId;
  }

  /** Skips the device's newest `skipped` uplinks up to `upToId` and returns the id before them; undefined if none. */
  findIdBefore(deviceId: number, upToId: number, skipped: number): number | undefined {
    const memtableIds = this.#memtable.idsOf(deviceId, 0).filter((id) => id <= upToId);
    if (memtableIds.length > skipped) return memtableIds.at(-1 - skipped);
    const indexedTo = Math.min(upToId, this.#memtable.indexedId);
    return this.#idBefore.get(deviceId, indexedTo, skipped - memtableIds.length) as number | undefined;
  }

  /** Returns a device's uplinks after one id, in the order of arrival. */
  read(deviceId: number, afterId: number, limit: number): StoredUplink[] {
    const uplinks = this.#readIndexed(deviceId, afterId, limit);
    return uplinks.length >= limit
      ? uplinks
      : [...uplinks, ...this.#readNewer(deviceId, afterId, limit - uplinks.length)];
  }

  /** Reads those after `indexedId`. */
  #readNewer(deviceId: number, afterId: number, limit: number): StoredUplink[] {
    const uplinks: StoredUplink[] = [];
    for (const id of this.#memtable.idsOf(deviceId, afterId)) {
      if (uplinks.length >= limit) break;
      const row = this.#shown.get(id) as UplinkRow | undefined;
      if (row !== undefined) uplinks.push(toUplink(row));
    }
    return uplinks;
  }

  /**
   * Reads like {@link read}, but without the rows of uplinks that repeat the power settings and the battery of the one
   * before, as the hints in the index say: of these it returns the id alone.
   */
  readChanges(deviceId: number, afterId: number, limit: number): (StoredUplink | number)[] {
    const uplinks: (StoredUplink | number)[] = [];
    let known: HintedState | undefined;
    for (let after = afterId; uplinks.length < limit; ) {
      const count = limit - uplinks.length;
      const rows = this.#hints.all(deviceId, after, this.#memtable.indexedId, count) as [number, number | null][];
      for (const [id, stored] of rows) {
        const hint = validHint(stored, deviceId, id);
        if (hint !== undefined && repeatsState(known, hint)) {
          uplinks.push(id);
          continue;
        }
        const row = this.#shown.get(id) as UplinkRow | undefined;
        const uplink = row === undefined ? undefined : toUplink(row);
        if (uplink !== undefined) uplinks.push(uplink);
        // After a row that does not count, such as one of an earlier merchant, the next one is read too.
        const isKnown = hint !== undefined && uplink !== undefined && !uplink.isDamaged;
        known = isKnown ? hintedStateAfter(known, hint) : undefined;
      }
      if (rows.length < count) return [...uplinks, ...this.#readNewer(deviceId, afterId, limit - uplinks.length)];
      after = rows.at(-1)?.[0] ?? after;
    }
    return uplinks;
  }

  /**
   * Reads from the index by lock. What all uplinks of a lock have in common is read once, and rows come as lists, which
   * SQLite's driver makes faster than objects: explaining an event reads thousands of rows.
   */
  #readIndexed(deviceId: number, afterId: number, limit: number): StoredUplink[] {
    const device = this.#device.get(deviceId) as Pick<UplinkRow, 'mac' | 'simulated' | 'merchant_id'> | undefined;
    if (device === undefined) return [];
    const { mac, simulated, merchant_id } = device;
    const kindOfCredential = new Map(this.#credentialKinds.all(deviceId) as [number, UplinkRow['kind']][]);
    const { indexedId } = this.#memtable;
    const rows = this.#ofDevice.all(deviceId, afterId, indexedId, merchant_id, limit) as ColumnsWithoutLock[];
    return rows.map((row) => {
      return toUplink({
        id: row[0],
        device_id: row[1],
        merchant_id,
        mac,
        simulated,
        credential_id: row[2],
        kind: kindOfCredential.get(row[2]) ?? null,
        boot: row[3],
        sequence: row[4],
        digest: row[5],
        bytes: row[6],
        received_at_ms: row[7],
        buffered: row[8],
        uplink_kind: row[9],
        sum: row[10],
      });
    });
  }

  /** Returns those of a device's last `limit` entries that are uplinks and not erased, in the order of arrival. */
  readRecent(deviceId: number, limit: number): StoredUplink[] {
    return this.read(deviceId, this.findIdBefore(deviceId, this.#memtable.lastId, limit) ?? 0, limit);
  }
}

/**
 * Reads uplinks by key and by lock: from the indexes, and from the memtable for those that the indexes do not have yet.
 * The indexes may have a part of the run that is being flushed; so they are asked only up to the uplink up to which
 * they are complete, and the memtable for the rest.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { StoredUplink } from '../../contract/store.js';
import type { UplinkMemtable } from './memtable/uplink-memtable.js';
import { toUplink, UPLINK_COLUMNS, type UplinkRow } from './uplink-row.js';

/** What the lock did for the merchant that has it now, and that was not erased. */
const SHOWN = 'u.merchant_id = d.merchant_id AND u.kind >= 0';

export class UplinkLookup {
  readonly memtable: UplinkMemtable;
  readonly #idsOfKey: Statement;
  readonly #digest: Statement;
  readonly #latest: Statement;
  readonly #ofDevice: Statement;
  readonly #shown: Statement;
  readonly #event: Statement;
  readonly #notErased: Statement;
  readonly #idBefore: Statement;

  /** `db` is a connection that reads what is committed; `memtable` follows the log's writer. */
  constructor(db: Database, memtable: UplinkMemtable) {
    this.memtable = memtable;
    const from = (table: string): string =>
      `SELECT ${UPLINK_COLUMNS}
       FROM ${table} t JOIN uplink u ON u.id = t.uplink_id JOIN device d ON d.id = u.device_id`;
    this.#idsOfKey = db
      .prepare(
        `SELECT uplink_id FROM uplink_name
         WHERE credential_id = ? AND boot = ? AND sequence = ? AND uplink_id <= ? ORDER BY uplink_id`,
      )
      .pluck();
    this.#digest = db.prepare('SELECT digest FROM uplink WHERE id = ?').pluck();
    this.#latest = db.prepare(
      `${from('uplink_name')} WHERE t.credential_id = ? AND t.uplink_id <= ? AND ${SHOWN}
       ORDER BY t.boot DESC, t.sequence DESC LIMIT ?`,
    );
    this.#ofDevice = db.prepare(
      `${from('uplink_of_device')} WHERE t.device_id = ? AND t.uplink_id > ? AND t.uplink_id <= ? AND ${SHOWN}
       ORDER BY t.uplink_id LIMIT ?`,
    );
    const one = `SELECT ${UPLINK_COLUMNS} FROM uplink u JOIN device d ON d.id = u.device_id WHERE u.id = ?`;
    this.#shown = db.prepare(`${one} AND ${SHOWN}`);
    this.#event = db.prepare(`${one} AND d.mac = ? AND u.digest = ? AND u.kind > 0`);
    this.#notErased = db.prepare(`${one} AND u.kind >= 0`);
    this.#idBefore = db
      .prepare(
        `SELECT uplink_id FROM uplink_of_device WHERE device_id = ? AND uplink_id <= ?
         ORDER BY uplink_id DESC LIMIT 1 OFFSET ?`,
      )
      .pluck();
  }

  /** The digests with one key; an empty one stands for all that were erased. */
  digests(credentialId: number, boot: number, sequence: number): Buffer[] {
    const found: Buffer[] = [];
    for (const id of this.#ids(credentialId, boot, sequence)) {
      const digest = this.#digest.get(id) as Buffer | undefined;
      if (digest !== undefined && (digest.length > 0 || found.every(({ length }) => length > 0))) found.push(digest);
    }
    return found;
  }

  /** The event with this key and content; null where there is none. */
  event(name: {
    credentialId: number;
    boot: number;
    sequence: number;
    digest: Buffer;
    mac: string;
  }): StoredUplink | null {
    for (const id of this.#ids(name.credentialId, name.boot, name.sequence)) {
      const row = this.#event.get(id, name.mac, name.digest) as UplinkRow | undefined;
      if (row !== undefined) return toUplink(row);
    }
    return null;
  }

  /** The uplinks with this key that were not erased, whoever has the lock now, in the order of arrival. */
  withKey(credentialId: number, boot: number, sequence: number): StoredUplink[] {
    const rows = this.#ids(credentialId, boot, sequence).map((id) => this.#notErased.get(id) as UplinkRow | undefined);
    return rows.filter((row) => row !== undefined).map(toUplink);
  }

  /** The id of a device's uplink that `skipped` later ones follow, up to one id; undefined where there is none. */
  idBefore(deviceId: number, upToId: number, skipped: number): number | undefined {
    const newest = this.memtable.idsOf(deviceId, 0).filter((id) => id <= upToId);
    if (newest.length > skipped) return newest.at(-1 - skipped);
    const indexedTo = Math.min(upToId, this.memtable.indexedId);
    return this.#idBefore.get(deviceId, indexedTo, skipped - newest.length) as number | undefined;
  }

  #ids(credentialId: number, boot: number, sequence: number): number[] {
    const indexed = this.#idsOfKey.all(credentialId, boot, sequence, this.memtable.indexedId) as number[];
    return [...indexed, ...this.memtable.find(credentialId, boot, sequence)];
  }

  /** Newest first by the order of protocol.md §1, one credential after the other. */
  latest(credentialIds: readonly number[], limit: number): StoredUplink[] {
    const found: StoredUplink[] = [];
    for (const id of credentialIds) if (found.length < limit) found.push(...this.#latestOf(id, limit - found.length));
    return found;
  }

  #latestOf(credentialId: number, limit: number): StoredUplink[] {
    const found: StoredUplink[] = [];
    for (const id of this.memtable.newestKeysOf(credentialId)) {
      if (found.length >= limit) break;
      found.push(...this.#read(id));
    }
    const indexed = this.#latest.all(credentialId, this.memtable.indexedId, limit) as UplinkRow[];
    found.push(...indexed.map(toUplink));
    return found.sort((one, other) => other.boot - one.boot || other.sequence - one.sequence).slice(0, limit);
  }

  /** A device's uplinks after one id, in the order of arrival. */
  ofDevice(deviceId: number, afterId: number, limit: number): StoredUplink[] {
    const indexed = this.#ofDevice.all(deviceId, afterId, this.memtable.indexedId, limit) as UplinkRow[];
    const found = indexed.map(toUplink);
    if (found.length >= limit) return found;
    for (const id of this.memtable.idsOf(deviceId, afterId)) {
      if (found.length >= limit) break;
      found.push(...this.#read(id));
    }
    return found;
  }

  /** A device's last `most` uplinks, in the order of arrival. */
  recentOf(deviceId: number, most: number): StoredUplink[] {
    return this.ofDevice(deviceId, this.idBefore(deviceId, this.memtable.lastId, most) ?? 0, most);
  }

  #read(id: number): StoredUplink[] {
    const row = this.#shown.get(id) as UplinkRow | undefined;
    return row === undefined ? [] : [toUplink(row)];
  }
}

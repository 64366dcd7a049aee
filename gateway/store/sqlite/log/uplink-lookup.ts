/**
 * Reads uplinks by key (credential, boot, sequence); lock-uplinks.ts reads them by lock. The log has two indexes for
 * this, to which the newest uplinks are added later; until then these are in the memtable
 * (memtable/uplink-memtable.ts). The indexes are complete up to an id, `indexedId`. Uplinks up to that id are read from
 * the indexes. Later uplinks are read only from the memtable, since the indexes may have some of them too, and none may
 * be returned twice.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { StoredUplink } from '../../contract/log/stored-uplink.js';
import { IS_UPLINK, toUplink, UPLINK_COLUMNS, type UplinkRow } from '../../log/uplink-row.js';
import { IS_SHOWN, LockUplinks } from './lock-uplinks.js';
import type { UplinkMemtable } from './memtable/uplink-memtable.js';

export class UplinkLookup {
  readonly memtable: UplinkMemtable;
  /** The uplinks of one lock. */
  readonly ofLock: LockUplinks;
  readonly #idsOfKey: Statement;
  readonly #digest: Statement;
  readonly #latest: Statement;
  readonly #shown: Statement;
  readonly #event: Statement;
  readonly #uplink: Statement;

  /** `db` is a reading connection; `memtable` is updated after each commit of the log's writer. */
  constructor(db: Database, memtable: UplinkMemtable) {
    this.memtable = memtable;
    this.ofLock = new LockUplinks(db, memtable);
    const from = (table: string): string =>
      `SELECT ${UPLINK_COLUMNS}
       FROM ${table} t JOIN uplink u ON u.id = t.uplink_id JOIN device d ON d.id = u.device_id`;
    // `uplink_name` is the index by key.
    this.#idsOfKey = db
      .prepare(
        `SELECT uplink_id FROM uplink_name
         WHERE credential_id = ? AND boot = ? AND sequence = ? AND uplink_id <= ? ORDER BY uplink_id`,
      )
      .pluck();
    this.#digest = db.prepare('SELECT digest FROM uplink WHERE id = ?').pluck();
    this.#latest = db.prepare(
      `${from('uplink_name')} WHERE t.credential_id = ? AND t.uplink_id <= ? AND ${IS_SHOWN}
       ORDER BY t.boot DESC, t.sequence DESC LIMIT ?`,
    );
    const selectById = `SELECT ${UPLINK_COLUMNS} FROM uplink u JOIN device d ON d.id = u.device_id WHERE u.id = ?`;
    this.#shown = db.prepare(`${selectById} AND ${IS_SHOWN}`);
    // Events for merchants are pings, and rows that are no uplinks (webhooks/merchant-event.ts). Kind 0 is an
    // acknowledgement of a command, and an erased uplink has kind -1.
    this.#event = db.prepare(`${selectById} AND d.mac = ? AND u.digest = ? AND u.kind > 0`);
    this.#uplink = db.prepare(`${selectById} AND ${IS_UPLINK}`);
  }

  /** Returns the digests of the uplinks with one key; one empty digest represents all erased uplinks. */
  findDigests(credentialId: number, boot: number, sequence: number): Buffer[] {
    const digests: Buffer[] = [];
    for (const id of this.#ids(credentialId, boot, sequence)) {
      const digest = this.#digest.get(id) as Buffer | undefined;
      const isSecondEmpty = digest?.length === 0 && digests.some(({ length }) => length === 0);
      if (digest !== undefined && !isSecondEmpty) digests.push(digest);
    }
    return digests;
  }

  /** Returns the event for merchants with this key, content and MAC address; null if there is none. */
  findEvent(key: {
    credentialId: number;
    boot: number;
    sequence: number;
    digest: Buffer;
    mac: string;
  }): StoredUplink | null {
    for (const id of this.#ids(key.credentialId, key.boot, key.sequence)) {
      const row = this.#event.get(id, key.mac, key.digest) as UplinkRow | undefined;
      if (row !== undefined) return toUplink(row);
    }
    return null;
  }

  /** Returns the unerased uplinks with this key, of any merchant, in the order of arrival. */
  findAllWithKey(credentialId: number, boot: number, sequence: number): StoredUplink[] {
    const rows = this.#ids(credentialId, boot, sequence).map((id) => this.#uplink.get(id) as UplinkRow | undefined);
    return rows.filter((row) => row !== undefined).map(toUplink);
  }

  #ids(credentialId: number, boot: number, sequence: number): number[] {
    const indexed = this.#idsOfKey.all(credentialId, boot, sequence, this.memtable.indexedId) as number[];
    return [...indexed, ...this.memtable.find(credentialId, boot, sequence)];
  }

  /**
   * Returns uplinks newest first in the order of protocol.md §1: credential by credential, each from its highest key.
   */
  readLatest(credentialIds: readonly number[], limit: number): StoredUplink[] {
    const latest: StoredUplink[] = [];
    for (const id of credentialIds)
      if (latest.length < limit) latest.push(...this.#latestOf(id, limit - latest.length));
    return latest;
  }

  #latestOf(credentialId: number, limit: number): StoredUplink[] {
    const uplinks: StoredUplink[] = [];
    for (const id of this.memtable.idsByDescendingKey(credentialId)) {
      if (uplinks.length >= limit) break;
      uplinks.push(...this.#read(id));
    }
    const indexed = this.#latest.all(credentialId, this.memtable.indexedId, limit) as UplinkRow[];
    uplinks.push(...indexed.map(toUplink));
    return uplinks.sort((a, b) => b.boot - a.boot || b.sequence - a.sequence).slice(0, limit);
  }

  /** The uplink with this id as a list; empty if it is erased or of an earlier merchant of the lock. */
  #read(id: number): StoredUplink[] {
    const row = this.#shown.get(id) as UplinkRow | undefined;
    return row === undefined ? [] : [toUplink(row)];
  }
}

/**
 * The origin of uplinks, from memory where possible: the lock, and the sender by its credential (the lock itself or a
 * phone). None of it ever changes: a device keeps its MAC, and a credential its kind. SQLite drops the cached pages of
 * a connection after each commit of another connection, so a join of both tables would read their pages from the file
 * again for each event that is sent.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { Source } from '../../../../proto/wire/ping.js';
import type { UplinkRow } from '../../log/uplink-row.js';

/** Maximum number of devices, and of credentials, in memory; beyond it, all are forgotten. */
const MAX_CACHED = 200_000;

/** The columns of an uplink `u` that need no other table, in SQL. */
export const OWN_COLUMNS = `u.id, u.device_id, u.merchant_id, u.credential_id, u.boot, u.sequence, u.digest, u.bytes,
  u.received_at_ms, u.buffered, u.kind AS uplink_kind, u.sum`;

type Device = Pick<UplinkRow, 'mac' | 'simulated'>;
/** A row of {@link OWN_COLUMNS}. */
export type OwnRow = Omit<UplinkRow, keyof Device | 'kind'>;

export class UplinkOrigins {
  readonly #device: Statement;
  readonly #kind: Statement;
  readonly #devices = new Map<number, Device>();
  readonly #kinds = new Map<number, Source>();

  constructor(db: Database) {
    this.#device = db.prepare('SELECT mac, simulated FROM device WHERE id = ?');
    this.#kind = db.prepare('SELECT kind FROM credential WHERE id = ?').pluck();
  }

  /**
   * The row with its lock and its credential's kind, null for a deleted one; undefined if the lock has no row. `sum` is
   * null for a row that did not come from the disk.
   */
  complete(row: OwnRow): UplinkRow | undefined {
    const device = this.#deviceOf(row.device_id);
    if (device === undefined) return undefined;
    // V8 takes some 1.5 µs for each member that follows a spread (`...`), and every event comes through here.
    return {
      id: row.id,
      device_id: row.device_id,
      merchant_id: row.merchant_id,
      mac: device.mac,
      simulated: device.simulated,
      credential_id: row.credential_id,
      kind: this.#kindOf(row.credential_id),
      boot: row.boot,
      sequence: row.sequence,
      digest: row.digest,
      bytes: row.bytes,
      received_at_ms: row.received_at_ms,
      buffered: row.buffered,
      uplink_kind: row.uplink_kind,
      sum: row.sum,
    };
  }

  #deviceOf(id: number): Device | undefined {
    const known = this.#devices.get(id);
    if (known !== undefined) return known;
    const device = this.#device.get(id) as Device | undefined;
    if (device === undefined) return undefined;
    if (this.#devices.size >= MAX_CACHED) this.#devices.clear();
    this.#devices.set(id, device);
    return device;
  }

  #kindOf(credentialId: number): Source | null {
    const known = this.#kinds.get(credentialId);
    if (known !== undefined) return known;
    const kind = (this.#kind.get(credentialId) as Source | undefined) ?? null;
    if (this.#kinds.size >= MAX_CACHED) this.#kinds.clear();
    if (kind !== null) this.#kinds.set(credentialId, kind);
    return kind;
  }
}

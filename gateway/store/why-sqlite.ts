/** What `why` asks of the SQLite store, in SQL by hand: each by an index, and none of it on a hot path. */
import type { Database, Statement } from 'better-sqlite3';
import type { Mac } from '../../proto/mac.js';
import type { UplinkName } from '../../proto/power-judge-event.js';
import { LogMerge } from './log-merge.js';
import { type FindingRow, type LogReader, toFinding } from './sqlite-log.js';
import {
  type LogEntry,
  type QuarantinedMessage,
  type StoredFinding,
  type StoredUplink,
  StoreFailure,
} from './store.js';
import { toUplink, UPLINK_COLUMNS, type UplinkRow } from './uplink-row.js';
import type { FindingOfLock, LogStart, WhyStore } from './why-store.js';

interface QuarantineRow {
  readonly id: number;
  readonly device_id: number;
  readonly mac: string;
  readonly received_at_ms: number;
  readonly code: string;
  readonly message: string;
  readonly bytes: Buffer;
}

export class SqliteWhy implements WhyStore {
  readonly #log: LogReader;
  readonly #uplinks: Statement;
  readonly #finding: Statement;
  readonly #findingsOf: Statement;
  readonly #quarantined: Statement;
  readonly #gap: Statement;
  readonly #uplinkBefore: Statement;
  readonly #eventBefore: Statement;
  readonly #eventUpTo: Statement;

  constructor(reader: Database, log: LogReader) {
    this.#log = log;
    this.#uplinks = reader.prepare(
      `SELECT ${UPLINK_COLUMNS} FROM uplink u JOIN device d ON d.id = u.device_id
       WHERE u.credential_id IN (SELECT id FROM credential WHERE device_id = ?) AND u.boot = ? AND u.sequence = ?
         AND u.kind >= 0 ORDER BY u.id LIMIT 100`,
    );
    const finding = 'SELECT f.*, d.mac FROM finding f JOIN device d ON d.id = f.device_id';
    this.#finding = reader.prepare(`${finding} WHERE f.id = ?`);
    this.#findingsOf = reader.prepare(
      `${finding} WHERE f.device_id = ? AND f.credential_id = ? AND f.boot = ? AND f.sequence = ?
       ORDER BY f.id LIMIT 100`,
    );
    this.#quarantined = reader.prepare(
      'SELECT q.*, d.mac FROM quarantine q JOIN device d ON d.id = q.device_id WHERE q.id = ?',
    );
    this.#gap = reader.prepare('SELECT 1 FROM webhook_gap WHERE url_id = ? AND after_id < ? AND until_id >= ?');
    this.#uplinkBefore = reader
      .prepare('SELECT id FROM uplink WHERE device_id = ? AND id <= ? ORDER BY id DESC LIMIT 1 OFFSET ?')
      .pluck();
    this.#eventBefore = reader
      .prepare('SELECT id FROM lock_event WHERE device_id = ? AND at_ms <= ? ORDER BY id DESC LIMIT 1 OFFSET ?')
      .pluck();
    this.#eventUpTo = reader
      .prepare('SELECT id FROM lock_event WHERE device_id = ? AND after_uplink_id < ? ORDER BY id DESC LIMIT 1')
      .pluck();
  }

  async findUplinks(deviceId: number, boot: number, sequence: number): Promise<StoredUplink[]> {
    return this.#read(() => (this.#uplinks.all(deviceId, boot, sequence) as UplinkRow[]).map(toUplink));
  }

  async findFinding(id: number): Promise<FindingOfLock | null> {
    return this.#read(() => {
      const row = this.#finding.get(id) as (FindingRow & { device_id: number }) | undefined;
      return row === undefined ? null : { ...toFinding(row), deviceId: row.device_id, mac: row.mac as Mac };
    });
  }

  async findFindingsOf(deviceId: number, { credential, boot, sequence }: UplinkName): Promise<StoredFinding[]> {
    return this.#read(() =>
      (this.#findingsOf.all(deviceId, credential, boot, sequence) as FindingRow[]).map(toFinding),
    );
  }

  async findQuarantined(id: number): Promise<(QuarantinedMessage & { readonly deviceId: number }) | null> {
    return this.#read(() => {
      const row = this.#quarantined.get(id) as QuarantineRow | undefined;
      if (row === undefined) return null;
      const { device_id: deviceId, received_at_ms: receivedAtMs, code, message, bytes } = row;
      return { id, deviceId, mac: row.mac as Mac, receivedAtMs, code, message, bytes };
    });
  }

  async findGap(urlId: number, uplinkId: number): Promise<boolean> {
    return this.#read(() => this.#gap.get(urlId, uplinkId, uplinkId) !== undefined);
  }

  async findLogStart(deviceId: number, toUplinkId: number, toMs: number, most: number): Promise<LogStart> {
    return this.#read(() => {
      const uplink = (this.#uplinkBefore.get(deviceId, toUplinkId, most) as number | undefined) ?? 0;
      const event = (this.#eventBefore.get(deviceId, toMs, most) as number | undefined) ?? 0;
      // Events that came before the first uplink that is read say nothing that is still believed.
      const old = uplink === 0 ? 0 : ((this.#eventUpTo.get(deviceId, uplink) as number | undefined) ?? 0);
      return { afterUplinkId: uplink, afterEventId: Math.max(event, old), isCut: uplink > 0 || event > 0 };
    });
  }

  async *readLogFrom(deviceId: number, start: LogStart, limit: number): AsyncGenerator<LogEntry[]> {
    const merge = new LogMerge(this.#log, deviceId, limit, start);
    for (let piece = merge.next(); piece.length > 0; piece = merge.next()) yield piece;
  }

  #read<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw new StoreFailure('look something up', error);
    }
  }
}

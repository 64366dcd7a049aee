/**
 * What `lockgate why`, which explains what a lock did and what followed, looks up in the SQLite store. Each lookup uses
 * an index; none is on a hot path.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { UplinkKey } from '../../../../proto/power/judge/event.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import { StoreFailure } from '../../contract/errors.js';
import type { LogEntry, StoredFinding } from '../../contract/log/log-entry.js';
import type { StoredUplink } from '../../contract/log/stored-uplink.js';
import type {
  FindingOfLock,
  FindingOfMerchant,
  LogStart,
  QuarantinedOfLock,
  StateChanges,
  WhyStore,
} from '../../contract/why-store.js';
import { type FindingRow, toFinding } from '../log/log-reader.js';
import type { UplinkLookup } from '../log/uplink-lookup.js';
import type { LogPlace } from '../scan/log-scanner.js';
import type { Scans } from '../scan/scans.js';

interface QuarantineRow {
  readonly id: number;
  readonly device_id: number;
  readonly merchant_id: number | null;
  readonly mac: string;
  readonly received_at_ms: number;
  readonly code: string;
  readonly message: string;
  readonly bytes: Buffer;
}

type LockFindingRow = FindingRow & {
  readonly device_id: number;
  readonly merchant_id: number | null;
  readonly mac: string;
};

type MerchantFindingRow = FindingRow & { readonly is_theirs: number };

/** Maximum number of uplinks or findings that a lookup by key returns. */
const MAX_RESULTS = 100;
/** How many entries of a lock's log one scan reads. */
const ENTRIES_PER_SCAN = 500;

export class SqliteWhy implements WhyStore {
  readonly #scans: Scans;
  readonly #lookup: UplinkLookup;
  readonly #credentials: Statement;
  readonly #finding: Statement;
  readonly #newestFindings: Statement;
  readonly #findingsOfMerchant: Statement;
  readonly #findingsOf: Statement;
  readonly #quarantined: Statement;
  readonly #gap: Statement;
  readonly #eventBefore: Statement;
  readonly #eventUpTo: Statement;

  constructor(reader: Database, scans: Scans, lookup: UplinkLookup) {
    this.#scans = scans;
    this.#lookup = lookup;
    this.#credentials = reader.prepare('SELECT id FROM credential WHERE device_id = ? ORDER BY id').pluck();
    const finding = 'SELECT f.*, d.mac FROM finding f JOIN device d ON d.id = f.device_id';
    this.#finding = reader.prepare(`${finding} WHERE f.id = ?`);
    this.#newestFindings = reader.prepare(`${finding} WHERE f.id < ? ORDER BY f.id DESC LIMIT ?`);
    this.#findingsOfMerchant = reader.prepare(
      `SELECT f.*, d.mac, d.merchant_id = f.merchant_id AND d.removed_at_ms IS NULL AS is_theirs
       FROM finding f JOIN device d ON d.id = f.device_id
       WHERE f.merchant_id = ? AND f.id < ? ORDER BY f.id DESC LIMIT ?`,
    );
    this.#findingsOf = reader.prepare(
      `${finding} WHERE f.device_id = ? AND f.credential_id = ? AND f.boot = ? AND f.sequence = ?
       ORDER BY f.id LIMIT ${MAX_RESULTS}`,
    );
    this.#quarantined = reader.prepare(
      'SELECT q.*, d.mac FROM quarantine q JOIN device d ON d.id = q.device_id WHERE q.id = ?',
    );
    this.#gap = reader.prepare('SELECT 1 FROM webhook_gap WHERE url_id = ? AND after_id < ? AND until_id >= ?');
    this.#eventBefore = reader
      .prepare('SELECT id FROM lock_event WHERE device_id = ? AND at_ms <= ? ORDER BY id DESC LIMIT 1 OFFSET ?')
      .pluck();
    this.#eventUpTo = reader
      .prepare('SELECT id FROM lock_event WHERE device_id = ? AND after_uplink_id < ? ORDER BY id DESC LIMIT 1')
      .pluck();
  }

  async findUplinks(deviceId: number, boot: number, sequence: number): Promise<StoredUplink[]> {
    return this.#read(() => {
      const found: StoredUplink[] = [];
      for (const credentialId of this.#credentials.all(deviceId) as number[])
        if (found.length < MAX_RESULTS) found.push(...this.#lookup.findAllWithKey(credentialId, boot, sequence));
      return found.sort((a, b) => a.id - b.id).slice(0, MAX_RESULTS);
    });
  }

  async findFinding(id: number): Promise<FindingOfLock | null> {
    return this.#read(() => {
      const row = this.#finding.get(id) as LockFindingRow | undefined;
      return row === undefined ? null : toFindingOfLock(row);
    });
  }

  async readNewestFindings(limit: number, beforeId = Number.MAX_SAFE_INTEGER): Promise<FindingOfLock[]> {
    return this.#read(() => (this.#newestFindings.all(beforeId, limit) as LockFindingRow[]).map(toFindingOfLock));
  }

  async readFindingsOfMerchant(
    merchantId: number,
    limit: number,
    beforeId = Number.MAX_SAFE_INTEGER,
  ): Promise<FindingOfMerchant[]> {
    return this.#read(() => {
      const rows = this.#findingsOfMerchant.all(merchantId, beforeId, limit) as MerchantFindingRow[];
      return rows.map((row) => ({ ...toFinding(row), isLockTheirs: row.is_theirs === 1 }));
    });
  }

  async findFindingsAbout(deviceId: number, { credential, boot, sequence }: UplinkKey): Promise<StoredFinding[]> {
    return this.#read(() =>
      (this.#findingsOf.all(deviceId, credential, boot, sequence) as FindingRow[]).map(toFinding),
    );
  }

  async findQuarantined(id: number): Promise<QuarantinedOfLock | null> {
    return this.#read(() => {
      const row = this.#quarantined.get(id) as QuarantineRow | undefined;
      if (row === undefined) return null;
      const { device_id: deviceId, merchant_id: merchantId, received_at_ms: receivedAtMs, code, message, bytes } = row;
      return { id, deviceId, merchantId, mac: row.mac as Mac, receivedAtMs, code, message, bytes };
    });
  }

  async isInGap(urlId: number, uplinkId: number): Promise<boolean> {
    return this.#read(() => this.#gap.get(urlId, uplinkId, uplinkId) !== undefined);
  }

  async findLogStart(deviceId: number, toUplinkId: number, toMs: number, limit: number): Promise<LogStart> {
    return this.#read(() => {
      const afterUplinkId = this.#lookup.ofLock.findIdBefore(deviceId, toUplinkId, limit) ?? 0;
      // The last event that the limit leaves out.
      const lastCutEventId = (this.#eventBefore.get(deviceId, toMs, limit) as number | undefined) ?? 0;
      // Connection events from before the uplink `afterUplinkId` are left out too: once the next uplink is read, the
      // lock's state no longer depends on them.
      const lastOldEventId =
        afterUplinkId === 0 ? 0 : ((this.#eventUpTo.get(deviceId, afterUplinkId) as number | undefined) ?? 0);
      const isCut = afterUplinkId > 0 || lastCutEventId > 0;
      return { afterUplinkId, afterEventId: Math.max(lastCutEventId, lastOldEventId), isCut };
    });
  }

  async *readLogFrom(
    deviceId: number,
    start: LogStart,
    limit: number,
    throughUplinkId?: number,
  ): AsyncGenerator<LogEntry[]> {
    const terms = { limit: ENTRIES_PER_SCAN, throughUplinkId, changesOnly: false };
    for (let place: LogPlace = start; ; ) {
      const { entries, end } = await this.#scans.readLog(deviceId, place, terms);
      for (let from = 0; from < entries.length; from += limit) yield entries.slice(from, from + limit);
      if (entries.length < ENTRIES_PER_SCAN) return;
      place = end;
    }
  }

  async *readStateChangesFrom(
    deviceId: number,
    start: LogStart,
    throughUplinkId?: number,
  ): AsyncGenerator<StateChanges> {
    const terms = { limit: ENTRIES_PER_SCAN, throughUplinkId, changesOnly: true };
    for (let place: LogPlace = start; ; ) {
      const { entries, examined, end } = await this.#scans.readLog(deviceId, place, terms);
      if (examined > 0) yield { entries, examined };
      if (examined < ENTRIES_PER_SCAN) return;
      place = end;
    }
  }

  #read<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw new StoreFailure('look something up', error);
    }
  }
}

function toFindingOfLock(row: LockFindingRow): FindingOfLock {
  return { ...toFinding(row), deviceId: row.device_id, merchantId: row.merchant_id, mac: row.mac as Mac };
}

/**
 * What `lockgate why`, which explains what a lock did and what followed, looks up in PostgreSQL. Each lookup uses an
 * index; none is on a hot path.
 */
import type { UplinkKey } from '../../../../proto/power/judge/event.js';
import type { Mac } from '../../../../proto/wire/mac.js';
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
import { stateChanges } from '../../log/state-changes.js';
import { LogMerge } from '../log/log-merge.js';
import { type FindingRow, type LogReads, toFinding } from '../log/log-reads.js';
import { slotOfId } from '../position.js';
import type { Sql } from '../sql.js';

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

type LockFindingRow = FindingRow & { readonly device_id: number; readonly merchant_id: number | null };
type MerchantFindingRow = FindingRow & { readonly is_theirs: boolean };

function toFindingOfLock(row: LockFindingRow): FindingOfLock {
  return { ...toFinding(row), deviceId: row.device_id, merchantId: row.merchant_id, mac: row.mac as Mac };
}

/** Maximum number of uplinks or findings that a lookup by key returns. */
const MAX_RESULTS = 100;
/** How many entries of a lock's log one statement reads for state changes: decoding them takes a few ms. */
const ENTRIES_PER_READ = 250;
const FINDINGS = 'SELECT f.*, d.mac FROM finding f JOIN device d ON d.id = f.device_id';

export class Why implements WhyStore {
  readonly #sql: Sql;
  readonly #log: LogReads;

  constructor(sql: Sql, log: LogReads) {
    this.#sql = sql;
    this.#log = log;
  }

  async findUplinks(deviceId: number, boot: number, sequence: number): Promise<StoredUplink[]> {
    const credentials = await this.#sql.all<{ id: number }>('SELECT id FROM credential WHERE device_id = @deviceId', {
      deviceId,
    });
    const found: StoredUplink[] = [];
    for (const { id } of credentials) found.push(...(await this.#log.findAllWithKey(id, boot, sequence)));
    return found.sort((a, b) => a.id - b.id).slice(0, MAX_RESULTS);
  }

  async findFinding(id: number): Promise<FindingOfLock | null> {
    const row = await this.#sql.get<LockFindingRow>(`${FINDINGS} WHERE f.id = @id`, { id });
    return row === undefined ? null : toFindingOfLock(row);
  }

  async readNewestFindings(limit: number, beforeId = Number.MAX_SAFE_INTEGER): Promise<FindingOfLock[]> {
    const rows = await this.#sql.all<LockFindingRow>(
      `${FINDINGS} WHERE f.id < @beforeId ORDER BY f.id DESC LIMIT @limit`,
      { beforeId, limit },
    );
    return rows.map(toFindingOfLock);
  }

  async readFindingsOfMerchant(
    merchantId: number,
    limit: number,
    beforeId = Number.MAX_SAFE_INTEGER,
  ): Promise<FindingOfMerchant[]> {
    const rows = await this.#sql.all<MerchantFindingRow>(
      `SELECT f.*, d.mac, d.merchant_id = f.merchant_id AND d.removed_at_ms IS NULL AS is_theirs
       FROM finding f JOIN device d ON d.id = f.device_id
       WHERE f.merchant_id = @merchantId AND f.id < @beforeId ORDER BY f.id DESC LIMIT @limit`,
      { merchantId, limit, beforeId },
    );
    return rows.map((row) => ({ ...toFinding(row), isLockTheirs: row.is_theirs }));
  }

  async findFindingsAbout(deviceId: number, { credential, boot, sequence }: UplinkKey): Promise<StoredFinding[]> {
    const rows = await this.#sql.all<FindingRow>(
      `${FINDINGS} WHERE f.device_id = @deviceId AND f.credential_id = @credential AND f.boot = @boot
         AND f.sequence = @sequence ORDER BY f.id LIMIT ${MAX_RESULTS}`,
      { deviceId, credential, boot, sequence },
    );
    return rows.map(toFinding);
  }

  async findQuarantined(id: number): Promise<QuarantinedOfLock | null> {
    const row = await this.#sql.get<QuarantineRow>(
      'SELECT q.*, d.mac FROM quarantine q JOIN device d ON d.id = q.device_id WHERE q.id = @id',
      { id },
    );
    if (row === undefined) return null;
    const { device_id: deviceId, merchant_id: merchantId, received_at_ms: receivedAtMs, code, message, bytes } = row;
    return { id, deviceId, merchantId, mac: row.mac as Mac, receivedAtMs, code, message, bytes };
  }

  async isInGap(urlId: number, uplinkId: number): Promise<boolean> {
    // An uplink is compared only with gaps in its slot, the part of the log that one gateway writes (log-position.ts).
    const gap = await this.#sql.get(
      `SELECT 1 AS one FROM webhook_gap WHERE url_id = @urlId AND slot = ${slotOfId('@uplinkId::bigint')}
         AND after_id < @uplinkId AND until_id >= @uplinkId`,
      { urlId, uplinkId },
    );
    return gap !== undefined;
  }

  async findLogStart(deviceId: number, toUplinkId: number, toMs: number, limit: number): Promise<LogStart> {
    const afterUplinkId = (await this.#log.findIdBefore(deviceId, toUplinkId, limit)) ?? 0;
    const before = await this.#sql.get<{ id: number }>(
      `SELECT id FROM lock_event WHERE device_id = @deviceId AND at_ms <= @toMs ORDER BY id DESC LIMIT 1 OFFSET @limit`,
      { deviceId, toMs, limit },
    );
    const lastCutEventId = before?.id ?? 0;
    // Connection events from before the uplink `afterUplinkId` are left out too: once the next uplink is read, the
    // lock's state no longer depends on them.
    const old = await this.#sql.get<{ id: number }>(
      `SELECT id FROM lock_event WHERE device_id = @deviceId AND after_uplink_id < @afterUplinkId
       ORDER BY id DESC LIMIT 1`,
      { deviceId, afterUplinkId },
    );
    const lastOldEventId = afterUplinkId === 0 ? 0 : (old?.id ?? 0);
    const isCut = afterUplinkId > 0 || lastCutEventId > 0;
    return { afterUplinkId, afterEventId: Math.max(lastCutEventId, lastOldEventId), isCut };
  }

  async *readLogFrom(deviceId: number, start: LogStart, limit: number): AsyncGenerator<LogEntry[]> {
    const merge = new LogMerge(this.#log, deviceId, limit, start);
    for (let chunk = await merge.next(); chunk.length > 0; chunk = await merge.next()) yield chunk;
  }

  async *readStateChangesFrom(deviceId: number, start: LogStart): AsyncGenerator<StateChanges> {
    for await (const entries of this.readLogFrom(deviceId, start, ENTRIES_PER_READ))
      yield { entries: stateChanges(entries), examined: entries.length };
  }
}

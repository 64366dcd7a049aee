/** Reads the log, and locks' states. */
import type { RuleName } from '../../../../proto/power/rules.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import type { StoredState } from '../../contract/devices/device.js';
import type { StoredFinding } from '../../contract/log/log-entry.js';
import type { LogPosition } from '../../contract/log/log-position.js';
import type { StoredUplink } from '../../contract/log/stored-uplink.js';
import { IS_PING, IS_UPLINK, toUplink, UPLINK_COLUMNS, type UplinkRow } from '../../log/uplink-row.js';
import { idIn, lowestIdIn, positionJson, slotOfId } from '../position.js';
import { plannedOnce, roundUpLimit, type Sql } from '../sql.js';

const FROM_UPLINKS = `SELECT ${UPLINK_COLUMNS} FROM uplink u JOIN device d ON d.id = u.device_id`;
/** An uplink that was sent for the lock's current merchant and is not erased. */
const IS_SHOWN = `u.merchant_id = d.merchant_id AND ${IS_UPLINK}`;

/** A row of `finding`, with the MAC of its lock. */
export interface FindingRow {
  readonly id: number;
  readonly mac: string;
  readonly at_ms: number;
  readonly rule: string;
  readonly severity: 'violation' | 'warning';
  readonly message: string;
  readonly credential_id: number | null;
  readonly boot: number | null;
  readonly sequence: number | null;
}

/** Converts a row of `finding`. */
export function toFinding(row: FindingRow): StoredFinding {
  const { credential_id: credential, boot, sequence } = row;
  const about = credential === null || boot === null || sequence === null ? null : { credential, boot, sequence };
  const { severity, message, at_ms: atMs } = row;
  const finding = { rule: row.rule as RuleName, severity, message, mac: formatMac(row.mac as Mac), about, atMs };
  return { id: row.id, finding };
}

/** A row of `lock_event`. */
export interface LogEventRow {
  readonly id: number;
  readonly at_ms: number;
  readonly event: string;
  readonly after_uplink_id: number;
}

export class LogReads {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  async readLastReceivedAtMs(): Promise<number | null> {
    const row = await this.#sql.get<{ at: number }>('SELECT received_at_ms AS at FROM uplink ORDER BY id DESC LIMIT 1');
    return row?.at ?? null;
  }

  async readState(deviceId: number): Promise<string | null> {
    const row = await this.#sql.get<{ state: string }>('SELECT state FROM device_state WHERE device_id = @deviceId', {
      deviceId,
    });
    return row?.state ?? null;
  }

  async readStates(deviceIds?: readonly number[]): Promise<StoredState[]> {
    const of = deviceIds === undefined ? '' : 'AND s.device_id = ANY(@deviceIds::bigint[])';
    return await this.#sql.all<StoredState>(
      `SELECT s.device_id AS "deviceId", d.mac, s.state FROM device_state s JOIN device d ON d.id = s.device_id
       WHERE d.removed_at_ms IS NULL ${of}`,
      { deviceIds },
    );
  }

  /**
   * Returns the id after which the search for uplinks that some stored state lacks starts: that of the oldest state, or
   * the id before the newest `maxUplinks` uplinks if that is later. Of some locks it is that of the oldest state: how
   * many uplinks other gateways have stored since does not matter then, and the index by lock finds those of these.
   */
  async findIdBeforeStates(maxUplinks: number, deviceIds?: readonly number[]): Promise<number> {
    if (deviceIds !== undefined) {
      const state = await this.#sql.get<{ oldest: number | null }>(
        'SELECT min(through_uplink_id) AS oldest FROM device_state WHERE device_id = ANY(@deviceIds::bigint[])',
        { deviceIds },
      );
      return state?.oldest ?? 0;
    }
    const row = await this.#sql.get<{ oldest: number; first: number | null }>(
      `WITH o AS (SELECT coalesce(min(through_uplink_id), 0) AS id FROM device_state)
       SELECT o.id AS oldest, (SELECT min(n.id) FROM (
         SELECT id FROM uplink WHERE id > o.id ORDER BY id DESC LIMIT @maxUplinks) n) AS first FROM o`,
      { maxUplinks },
    );
    const first = row?.first ?? null;
    return first === null ? (row?.oldest ?? 0) : first - 1;
  }

  async readUplinksAfterStates(afterId: number, limit: number, deviceIds?: readonly number[]): Promise<StoredUplink[]> {
    const of = deviceIds === undefined ? '' : 'AND u.device_id = ANY(@deviceIds::bigint[])';
    const rows = await this.#sql.all<UplinkRow>(
      `${FROM_UPLINKS} JOIN device_state s ON s.device_id = u.device_id
       WHERE u.id > @afterId ${of} AND u.id > s.through_uplink_id AND ${IS_SHOWN} ORDER BY u.id LIMIT @limit`,
      { afterId, limit, deviceIds },
    );
    return rows.map(toUplink);
  }

  async readFindings(deviceId: number, limit: number, beforeId = Number.MAX_SAFE_INTEGER): Promise<StoredFinding[]> {
    const rows = await this.#sql.all<FindingRow>(
      `SELECT f.*, d.mac FROM finding f JOIN device d ON d.id = f.device_id
       WHERE f.device_id = @deviceId AND f.id < @beforeId AND f.merchant_id = d.merchant_id
       ORDER BY f.id DESC LIMIT @limit`,
      { deviceId, limit, beforeId },
    );
    return rows.map(toFinding);
  }

  /** Returns a lock's connection events after `afterId`. */
  async readConnectionEvents(deviceId: number, afterId: number, limit: number): Promise<LogEventRow[]> {
    return await this.#sql.all<LogEventRow>(
      `SELECT e.id, e.at_ms, e.event, e.after_uplink_id FROM lock_event e JOIN device d ON d.id = e.device_id
       WHERE e.device_id = @deviceId AND e.id > @afterId AND e.merchant_id = d.merchant_id ORDER BY e.id LIMIT @limit`,
      { deviceId, afterId, limit },
    );
  }

  /**
   * Reads the oldest events of each slot (a part of the log that one gateway writes) after the position, and returns
   * the lowest ids of these: so no slot has an older event that is left out.
   */
  async readEvents(
    merchantId: number,
    after: LogPosition,
    limit: number,
    kinds: 'pings' | 'all',
  ): Promise<StoredUplink[]> {
    const roundedLimit = roundUpLimit(limit);
    const statement = plannedOnce(
      `SELECT ${UPLINK_COLUMNS} FROM node s CROSS JOIN LATERAL (
         SELECT * FROM uplink u WHERE u.merchant_id = @merchantId AND u.slot = s.slot
           AND u.id > ${idIn('@after::jsonb', 's.slot')} AND ${kinds === 'pings' ? IS_PING : 'u.kind > 0'}
         ORDER BY u.id LIMIT ${roundedLimit}) u
       JOIN device d ON d.id = u.device_id ORDER BY u.id LIMIT ${roundedLimit}`,
    );
    const rows = await this.#sql.all<UplinkRow>(statement, { merchantId, after: positionJson(after) });
    return rows.slice(0, limit).map(toUplink);
  }

  async readOutcomesAfter(urlId: number, after: LogPosition): Promise<number[]> {
    // The first condition is for the index; the second one compares each id with the position's id in its slot.
    const isAfter = `uplink_id > ${lowestIdIn('@after::jsonb')}
      AND uplink_id > ${idIn('@after::jsonb', slotOfId('uplink_id'))}`;
    const rows = await this.#sql.all<{ id: number }>(
      `SELECT uplink_id AS id FROM delivery WHERE url_id = @urlId AND ${isAfter} UNION
       SELECT uplink_id FROM attempt WHERE url_id = @urlId AND error IS NULL AND ${isAfter}`,
      { urlId, after: positionJson(after) },
    );
    return rows.map(({ id }) => id);
  }

  async findDigests(credentialId: number, boot: number, sequence: number): Promise<Buffer[]> {
    const rows = await this.#sql.all<{ digest: Buffer }>(
      `SELECT digest FROM uplink WHERE credential_id = @credentialId AND boot = @boot AND sequence = @sequence
       ORDER BY id`,
      { credentialId, boot, sequence },
    );
    // One empty digest represents all erased uplinks.
    const digests = rows.map(({ digest }) => digest);
    const firstEmpty = digests.findIndex(({ length }) => length === 0);
    return digests.filter(({ length }, index) => length > 0 || index === firstEmpty);
  }

  async findEvent(key: {
    readonly credentialId: number;
    readonly boot: number;
    readonly sequence: number;
    readonly digest: Buffer;
    readonly mac: string;
  }): Promise<StoredUplink | null> {
    const row = await this.#sql.get<UplinkRow>(
      `${FROM_UPLINKS} WHERE u.credential_id = @credentialId AND u.boot = @boot AND u.sequence = @sequence
         AND d.mac = @mac AND u.digest = @digest AND u.kind > 0 ORDER BY u.id LIMIT 1`,
      { ...key },
    );
    return row === undefined ? null : toUplink(row);
  }

  /** Returns the unerased uplinks with this key, of any merchant, in the order of arrival. */
  async findAllWithKey(credentialId: number, boot: number, sequence: number): Promise<StoredUplink[]> {
    const rows = await this.#sql.all<UplinkRow>(
      `${FROM_UPLINKS} WHERE u.credential_id = @credentialId AND u.boot = @boot AND u.sequence = @sequence
         AND ${IS_UPLINK} ORDER BY u.id`,
      { credentialId, boot, sequence },
    );
    return rows.map(toUplink);
  }

  /**
   * Skips the device's newest `skipped` uplinks up to `upToId` and returns the id before them; undefined if none.
   * Events that are not uplinks have the credential 0.
   */
  async findIdBefore(deviceId: number, upToId: number, skipped: number): Promise<number | undefined> {
    const row = await this.#sql.get<{ id: number }>(
      `SELECT id FROM uplink WHERE device_id = @deviceId AND credential_id > 0 AND id <= @upToId
       ORDER BY id DESC LIMIT 1 OFFSET @skipped`,
      { deviceId, upToId, skipped },
    );
    return row?.id;
  }

  /** Returns uplinks newest first: credential by credential, each from its highest key. */
  async readLatest(credentialIds: readonly number[], limit: number): Promise<StoredUplink[]> {
    const latest: StoredUplink[] = [];
    for (const credentialId of credentialIds) {
      if (latest.length >= limit) break;
      const rows = await this.#sql.all<UplinkRow>(
        `${FROM_UPLINKS} WHERE u.credential_id = @credentialId AND ${IS_SHOWN}
         ORDER BY u.boot DESC, u.sequence DESC LIMIT @limit`,
        { credentialId, limit: limit - latest.length },
      );
      latest.push(...rows.map(toUplink));
    }
    return latest;
  }

  /** Returns a device's uplinks after one id, in the order of arrival. */
  async readOfDevice(deviceId: number, afterId: number, limit: number): Promise<StoredUplink[]> {
    const rows = await this.#sql.all<UplinkRow>(
      `${FROM_UPLINKS} WHERE u.device_id = @deviceId AND u.id > @afterId AND ${IS_SHOWN} ORDER BY u.id LIMIT @limit`,
      { deviceId, afterId, limit },
    );
    return rows.map(toUplink);
  }

  /** Returns a device's last `limit` uplinks, in the order of arrival. */
  async readRecentOf(deviceId: number, limit: number): Promise<StoredUplink[]> {
    const afterId = (await this.findIdBefore(deviceId, Number.MAX_SAFE_INTEGER, limit)) ?? 0;
    return await this.readOfDevice(deviceId, afterId, limit);
  }
}

/**
 * Reads the log (the table of all uplinks, in the order of arrival), locks with their credentials and their states
 * (what the judge has concluded from their uplinks), and the events for deliveries, in hand-written SQL. Reads only
 * committed data. Reading uplinks by key or by lock is in uplink-lookup.ts.
 *
 * In SQL, `kind > 0` selects events for merchants: pings (`IS_PING`) and others. An erased uplink has a negative kind.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { RuleName } from '../../../../proto/power/rules.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import type { Source } from '../../../../proto/wire/ping.js';
import {
  type LockAccount,
  MAX_CREDENTIALS_READ,
  type StoredCredential,
  type StoredState,
} from '../../contract/devices/device.js';
import type { StoredFinding } from '../../contract/log/log-entry.js';
import type { StoredUplink } from '../../contract/log/stored-uplink.js';
import { FIRST_EVENT_KIND } from '../../contract/webhooks/merchant-event.js';
import {
  IS_PING,
  IS_UPLINK,
  toUndamagedUplink,
  toUplink,
  UPLINK_COLUMNS,
  type UplinkRow,
} from '../../log/uplink-row.js';
import { stateSum } from '../row-checksum.js';
import type { RecentUplinks } from './recent-uplinks.js';
import { OWN_COLUMNS, type OwnRow, UplinkOrigins } from './uplink-origins.js';

/** The kinds that {@link IS_PING} selects, and those of all events. */
const PING_KINDS = { minKind: 1, maxKind: FIRST_EVENT_KIND - 1 };
const EVENT_KINDS = { minKind: 1, maxKind: Number.POSITIVE_INFINITY };

/** A row of `finding`, with the MAC of its lock. */
export interface FindingRow {
  id: number;
  mac: string;
  at_ms: number;
  rule: string;
  severity: 'violation' | 'warning';
  message: string;
  credential_id: number | null;
  boot: number | null;
  sequence: number | null;
}

/** Converts a row of `finding`. */
export function toFinding(row: FindingRow): StoredFinding {
  const { credential_id: credential, boot, sequence } = row;
  const about = credential === null || boot === null || sequence === null ? null : { credential, boot, sequence };
  const { severity, message, at_ms: atMs } = row;
  const finding = { rule: row.rule as RuleName, severity, message, mac: formatMac(row.mac as Mac), about, atMs };
  return { id: row.id, finding };
}

interface CredentialRow {
  readonly id: number;
  readonly secret_hash: Buffer;
  readonly expires_at_ms: number | null;
  readonly revoked_at_ms: number | null;
}

function toCredential(row: CredentialRow): StoredCredential {
  const { id, secret_hash: secretHash, expires_at_ms: expiresAtMs } = row;
  return { id, secretHash, expiresAtMs, isRevoked: row.revoked_at_ms !== null };
}

/** A row of `lock_event`. */
export interface LogEventRow {
  readonly id: number;
  readonly at_ms: number;
  readonly event: string;
  readonly after_uplink_id: number;
}

/** A lock in service. `closed_at_ms`: when its merchant was closed, or null. */
interface LockRow {
  readonly id: number;
  readonly merchant_id: number;
  readonly simulated: number;
  readonly closed_at_ms: number | null;
}

/** The reading statements of one connection. */
export class LogReader {
  readonly #state: Statement;
  readonly #lock: Statement;
  readonly #credentials: Statement;
  readonly #origins: UplinkOrigins;
  readonly #events: Statement;
  readonly #pings: Statement;
  readonly #outcomes: Statement;
  readonly #lastReceived: Statement;
  readonly #states: Statement;
  readonly #findings: Statement;
  readonly #logEvents: Statement;
  readonly #statesOf: Statement;
  readonly #oldestState: Statement;
  readonly #oldestStateOf: Statement;
  readonly #firstOfNewest: Statement;
  readonly #afterStates: Statement;
  readonly #afterStatesOf: Statement;
  readonly #recent: RecentUplinks | undefined;

  /** `recent`, if given, has the newest uplinks, which are then not read from the file. */
  constructor(db: Database, recent?: RecentUplinks) {
    this.#recent = recent;
    this.#state = db.prepare('SELECT state FROM device_state WHERE device_id = ?').pluck();
    this.#lock = db.prepare(
      `SELECT d.id, d.merchant_id, d.simulated, m.closed_at_ms FROM device d JOIN merchant m ON m.id = d.merchant_id
       WHERE d.mac = ? AND d.removed_at_ms IS NULL`,
    );
    this.#credentials = db.prepare(
      `SELECT id, secret_hash, expires_at_ms, revoked_at_ms FROM credential
       WHERE device_id = ? AND kind = ? ORDER BY revoked_at_ms IS NOT NULL, id DESC LIMIT ${MAX_CREDENTIALS_READ}`,
    );
    this.#origins = new UplinkOrigins(db);
    const events = (condition: string): Statement =>
      db.prepare(
        `SELECT ${OWN_COLUMNS} FROM uplink u
         WHERE u.merchant_id = ? AND u.id > ? AND ${condition} ORDER BY u.id LIMIT ?`,
      );
    this.#events = events('u.kind > 0');
    this.#pings = events(IS_PING);
    this.#outcomes = db
      .prepare(
        `SELECT uplink_id FROM delivery WHERE url_id = @urlId AND uplink_id > @afterId UNION
         SELECT uplink_id FROM attempt WHERE url_id = @urlId AND uplink_id > @afterId AND error IS NULL`,
      )
      .pluck();
    const states = `SELECT s.device_id AS deviceId, d.mac, s.state, s.through_uplink_id AS through, s.sum
       FROM device_state s JOIN device d ON d.id = s.device_id
       WHERE d.removed_at_ms IS NULL`;
    this.#states = db.prepare(states);
    this.#statesOf = db.prepare(`${states} AND s.device_id IN (SELECT value FROM json_each(?))`);
    this.#findings = db.prepare(
      `SELECT f.*, d.mac FROM finding f JOIN device d ON d.id = f.device_id
       WHERE f.device_id = ? AND f.id < ? AND f.merchant_id = d.merchant_id ORDER BY f.id DESC LIMIT ?`,
    );
    this.#logEvents = db.prepare(
      `SELECT e.id, e.at_ms, e.event, e.after_uplink_id FROM lock_event e JOIN device d ON d.id = e.device_id
       WHERE e.device_id = ? AND e.id > ? AND e.after_uplink_id <= ? AND e.merchant_id = d.merchant_id
       ORDER BY e.id LIMIT ?`,
    );
    const oldestState = 'SELECT coalesce(min(through_uplink_id), 0) FROM device_state';
    this.#oldestState = db.prepare(oldestState).pluck();
    this.#oldestStateOf = db.prepare(`${oldestState} WHERE device_id IN (SELECT value FROM json_each(?))`).pluck();
    this.#firstOfNewest = db
      .prepare('SELECT min(id) FROM (SELECT id FROM uplink WHERE id > ? ORDER BY id DESC LIMIT ?)')
      .pluck();
    // CROSS JOIN fixes the join order, so that SQLite reads the end of the log once.
    const afterStates = (condition: string): Statement =>
      db.prepare(
        `SELECT ${UPLINK_COLUMNS} FROM uplink u CROSS JOIN device_state s ON s.device_id = u.device_id
           CROSS JOIN device d ON d.id = u.device_id
         WHERE u.id > @afterId ${condition} AND u.id > s.through_uplink_id AND u.merchant_id = d.merchant_id
           AND ${IS_UPLINK}
         ORDER BY u.id LIMIT @limit`,
      );
    this.#afterStates = afterStates('');
    this.#afterStatesOf = afterStates('AND u.device_id IN (SELECT value FROM json_each(@of))');
    this.#lastReceived = db.prepare('SELECT received_at_ms FROM uplink ORDER BY id DESC LIMIT 1').pluck();
  }

  readLastReceivedAtMs(): number | null {
    return (this.#lastReceived.get() as number | undefined) ?? null;
  }

  /** Returns the stored states of all devices, or of these. */
  readStates(deviceIds?: readonly number[]): StoredState[] {
    const rows = deviceIds === undefined ? this.#states.all() : this.#statesOf.all(JSON.stringify(deviceIds));
    return (rows as (StoredState & { through: number; sum: number | null })[]).map(
      ({ deviceId, mac, state, through, sum }) => {
        const isUndamaged = sum === stateSum(deviceId, state, through);
        return isUndamaged ? { deviceId, mac, state } : { deviceId, mac, state, isDamaged: true };
      },
    );
  }

  /**
   * Returns the id after which the search for uplinks that some stored state lacks starts: the id before the first of
   * the newest `maxUplinks` uplinks after the oldest state.
   */
  findIdBeforeStates(maxUplinks: number, deviceIds?: readonly number[]): number {
    // After a clean stop every state includes all uplinks, and the log is not searched.
    const oldestState = (
      deviceIds === undefined ? this.#oldestState.get() : this.#oldestStateOf.get(JSON.stringify(deviceIds))
    ) as number;
    const firstId = this.#firstOfNewest.get(oldestState, maxUplinks) as number | null;
    return firstId === null ? oldestState : firstId - 1;
  }

  readUplinksAfterStates(afterId: number, limit: number, deviceIds?: readonly number[]): StoredUplink[] {
    const rows =
      deviceIds === undefined
        ? this.#afterStates.all({ afterId, limit })
        : this.#afterStatesOf.all({ afterId, limit, of: JSON.stringify(deviceIds) });
    return (rows as UplinkRow[]).map(toUplink);
  }

  readFindings(deviceId: number, limit: number, beforeId = Number.MAX_SAFE_INTEGER): StoredFinding[] {
    return (this.#findings.all(deviceId, beforeId, limit) as FindingRow[]).map(toFinding);
  }

  /** Returns a lock's connection events after the event `afterId` that arrived before any uplink after `uplinkId`. */
  readConnectionEvents(deviceId: number, afterId: number, uplinkId: number, limit: number): LogEventRow[] {
    return this.#logEvents.all(deviceId, afterId, uplinkId, limit) as LogEventRow[];
  }

  readState(deviceId: number): string | null {
    return (this.#state.get(deviceId) as string | undefined) ?? null;
  }

  findLock(mac: Mac, kind: Source): LockAccount | null {
    const row = this.#lock.get(mac) as LockRow | undefined;
    // Also queried for an unknown MAC, so that the response time does not show whether a MAC exists.
    const credentials = (this.#credentials.all(row?.id ?? 0, kind) as CredentialRow[]).map(toCredential);
    if (row === undefined) return null;
    const { id: deviceId, merchant_id: merchantId, simulated, closed_at_ms: closedAtMs } = row;
    const isMerchantClosed = closedAtMs !== null;
    return { deviceId, merchantId, mac, simulated: simulated === 1, isMerchantClosed, credentials };
  }

  readEvents(merchantId: number, afterId: number, limit: number, kinds: 'pings' | 'all'): StoredUplink[] {
    const recent = this.#recent?.select(merchantId, afterId, limit, kinds === 'pings' ? PING_KINDS : EVENT_KINDS);
    if (recent !== undefined) {
      return recent.flatMap((row) => {
        const complete = this.#origins.complete(row);
        return complete === undefined ? [] : [toUndamagedUplink(complete)];
      });
    }
    const statement = kinds === 'pings' ? this.#pings : this.#events;
    const rows = statement.all(merchantId, afterId, limit) as OwnRow[];
    const events = rows.flatMap((row) => {
      const complete = this.#origins.complete(row);
      return complete === undefined ? [] : [toUplink(complete)];
    });
    // A row whose lock is missing, in a damaged store, is left out; a later event takes its place.
    const missing = rows.length === limit ? limit - events.length : 0;
    if (missing === 0) return events;
    return [...events, ...this.readEvents(merchantId, rows.at(-1)?.id ?? afterId, missing, kinds)];
  }

  readOutcomesAfter(urlId: number, afterId: number): number[] {
    return this.#outcomes.all({ urlId, afterId }) as number[];
  }
}

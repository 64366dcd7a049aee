/**
 * The hot paths of the SQLite store, in SQL by hand: appending uplinks, following the log, remembering deliveries.
 * Each function runs to its end at once; the store decides when, and in which transaction.
 */

import type { Database, Statement } from 'better-sqlite3';
import type { RuleName } from '../../../../proto/power/rules.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import type { Source } from '../../../../proto/wire/ping.js';
import type { MerchantOutcome } from '../../contract/merchant-write.js';
import {
  type AgedPiece,
  type AgingPiece,
  type AttemptRecord,
  CREDENTIALS_READ,
  type DeliveryProgress,
  type IncomingLockEvent,
  type IncomingQuarantine,
  type Judged,
  LOCK_EVENTS_PER_LOCK,
  type LockAccount,
  QUARANTINE_PER_LOCK,
  type StoredCredential,
  type StoredFinding,
  type StoredState,
  type StoredUplink,
} from '../../contract/store.js';
import type { RunSize } from '../../contract/store-options.js';
import { inTransaction } from '../durable-file.js';
import { Forgetting } from '../forgetting.js';
import { rowSum } from '../row-sum.js';
import { CommandChanges } from '../tables/command-changes.js';
import { MerchantWriter } from '../tables/people/merchant-writer.js';
import { PlainWriter } from './batched-write.js';
import type { LogWrite } from './log-thread-message.js';
import type { PackedCommit, PackedExtras } from './packed-commit.js';
import type { UplinkMemtable } from './uplink-memtable.js';
import { toUplink, UPLINK_COLUMNS, type UplinkRow } from './uplink-row.js';
import { UplinkWriter } from './uplink-writer.js';

/** At every so many-th event of connections the lock's oldest are looked for: to look at each would cost more. */
const TRIM_LOCK_EVENTS_EVERY = 1024;
/** Uplinks that one transaction puts into the tables by name and by lock where nothing else is to do. */
const SETTLED_AT_ONCE = 10_000;

/** A finding as its row has it, with its lock. */
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

/** The finding of a row. */
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

/** A lock event as its row has it. */
export interface LogEventRow {
  readonly id: number;
  readonly at_ms: number;
  readonly event: string;
  readonly after_uplink_id: number;
}

/** The sum of a row of `device_state`; null where it holds what no such row can hold. */
function stateSum(deviceId: number, state: string, through: number): number | null {
  const isRow = Number.isSafeInteger(through) && typeof state === 'string';
  return isRow ? rowSum(['device_state', BigInt(deviceId), state, BigInt(through)]) : null;
}

/** An attempt that was under way while its event (@uplinkId) was erased leaves nothing behind. */
const NOT_ERASED = 'u.id = @uplinkId AND u.kind >= 0';

/** Whose lock it is at this moment: the device stands in the statement's last parameter. */
const OWNER = '(SELECT merchant_id FROM device WHERE id = ?)';

/** Writes to the log and to the deliveries. No other connection may append to the log. */
export class LogWriter {
  readonly #db: Database;
  readonly #uplinks: UplinkWriter;
  readonly #putState: Statement;
  readonly #insertLockEvent: Statement;
  readonly #trimLockEvents: Statement;
  readonly #insertFinding: Statement;
  readonly #withdrawFinding: Statement;
  readonly #insertQuarantine: Statement;
  readonly #trimQuarantine: Statement;
  readonly #insertAttempt: Statement;
  readonly #putDelivery: Statement;
  readonly #finishDelivery: Statement;
  readonly #moveCursor: Statement;
  readonly #disableUrl: Statement;
  readonly #park: Statement;
  readonly #setDamaged: Statement;
  readonly #failing: Statement;
  readonly #hold: Statement;
  readonly #commands: CommandChanges;
  readonly #plain: PlainWriter;
  readonly #merchants: MerchantWriter;
  readonly #forgetting: Forgetting;

  constructor(db: Database, runSize?: RunSize) {
    this.#commands = new CommandChanges(db);
    this.#plain = new PlainWriter(db);
    this.#merchants = new MerchantWriter(db);
    this.#forgetting = new Forgetting(db);
    this.#db = db;
    this.#uplinks = new UplinkWriter(db, runSize);
    this.#putState = db.prepare(
      `INSERT INTO device_state (device_id, state, through_uplink_id, sum) VALUES (?, ?, ?, ?)
       ON CONFLICT (device_id) DO UPDATE SET
         state = excluded.state, through_uplink_id = excluded.through_uplink_id, sum = excluded.sum`,
    );
    this.#insertLockEvent = db.prepare(
      `INSERT INTO lock_event (device_id, at_ms, event, after_uplink_id, merchant_id)
       VALUES (?, ?, ?, ?, ${OWNER})`,
    );
    this.#trimLockEvents = db.prepare(
      `DELETE FROM lock_event WHERE device_id = ? AND id <= (
         SELECT id FROM lock_event WHERE device_id = ? ORDER BY id DESC LIMIT 1 OFFSET ${LOCK_EVENTS_PER_LOCK})`,
    );
    this.#insertFinding = db.prepare(
      `INSERT INTO finding (device_id, at_ms, rule, severity, message, credential_id, boot, sequence, merchant_id)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ${OWNER})`,
    );
    this.#withdrawFinding = db.prepare(
      `DELETE FROM finding WHERE device_id = ? AND rule = ? AND credential_id = ? AND boot = ? AND sequence = ?`,
    );
    this.#insertQuarantine = db.prepare(
      `INSERT INTO quarantine (device_id, credential_id, received_at_ms, code, message, bytes, merchant_id)
       VALUES (?, ?, ?, ?, ?, ?, ${OWNER})`,
    );
    this.#trimQuarantine = db.prepare(
      `DELETE FROM quarantine WHERE device_id = ? AND id <= (
         SELECT id FROM quarantine WHERE device_id = ? ORDER BY id DESC LIMIT 1 OFFSET ${QUARANTINE_PER_LOCK})`,
    );
    this.#insertAttempt = db.prepare(
      `INSERT INTO attempt (url_id, uplink_id, number, at_ms, duration_ms, status, error, answer)
       SELECT @urlId, u.id, @number, @atMs, @durationMs, @status, @error, @answer FROM uplink u WHERE ${NOT_ERASED}`,
    );
    this.#putDelivery = db.prepare(
      `INSERT INTO delivery (url_id, uplink_id, state, attempts, next_attempt_at_ms, device_id)
       SELECT @urlId, u.id, @state, @number, @next, u.device_id FROM uplink u WHERE ${NOT_ERASED}
       ON CONFLICT (url_id, uplink_id) DO UPDATE SET
         state = excluded.state, attempts = excluded.attempts, next_attempt_at_ms = excluded.next_attempt_at_ms`,
    );
    this.#finishDelivery = db.prepare(
      `UPDATE delivery SET state = 'delivered', attempts = ?, next_attempt_at_ms = NULL
       WHERE url_id = ? AND uplink_id = ?`,
    );
    this.#moveCursor = db.prepare('UPDATE webhook_url SET cursor = ? WHERE id = ? AND cursor < ?');
    this.#disableUrl = db.prepare(`UPDATE webhook_url SET state = 'disabled', disabled_why = ? WHERE id = ?`);
    this.#park = db.prepare(
      `INSERT INTO delivery (url_id, uplink_id, state, attempts, next_attempt_at_ms, device_id)
       SELECT @urlId, u.id, 'pending', 0, @atMs, u.device_id FROM uplink u WHERE ${NOT_ERASED} ON CONFLICT DO NOTHING`,
    );
    this.#setDamaged = db.prepare(
      `INSERT INTO delivery (url_id, uplink_id, state, attempts, next_attempt_at_ms, device_id)
       SELECT @urlId, u.id, 'damaged', 0, NULL, u.device_id FROM uplink u WHERE ${NOT_ERASED}
       ON CONFLICT (url_id, uplink_id) DO UPDATE SET state = excluded.state, next_attempt_at_ms = NULL`,
    );
    this.#failing = db.prepare('UPDATE webhook_url SET failing_since_ms = ?, failing_for_ms = ? WHERE id = ?');
    this.#hold = db.prepare('UPDATE webhook_url SET held_until_ms = ?, held_for_ms = ? WHERE id = ?');
  }

  /** The uplinks that the tables by name and by lock do not have yet. */
  get tail(): UplinkMemtable {
    return this.#uplinks.memtable;
  }

  /**
   * One durable transaction for all of them, in order. Answers what came of those of merchants, in their order.
   *
   * @throws what SQLite throws; nothing of it is kept
   */
  write(writes: readonly LogWrite[]): MerchantOutcome[] {
    const outcomes: MerchantOutcome[] = [];
    this.#during(() => {
      for (const write of writes) {
        if (write.type === 'append') this.#append(write.commit);
        else if (write.type === 'merchant') outcomes.push(this.#merchants.write(write.operation));
        else if (write.type === 'progress') for (const each of write.progress) this.#recordProgress(each);
        else this.#plain.write(write);
      }
    });
    return outcomes;
  }

  #append(commit: PackedCommit): void {
    this.#appendIncoming(commit);
    for (const judged of commit.judged) this.#appendJudged(judged);
    for (const [deviceId, state] of commit.states) this.#storeState(deviceId, state);
    for (const change of commit.commands) this.#commands.apply(change);
    this.#uplinks.settleBeside(commit.count);
  }

  /** The state as of the newest uplink. Its sum is set here: a trigger would do the same at several times the price. */
  #storeState(deviceId: number, state: string): void {
    const through = this.#uplinks.lastId;
    this.#putState.run(deviceId, state, through, stateSum(deviceId, state, through));
  }

  /** Puts all uplinks into the tables by name and by lock, in steps. */
  settle(): void {
    while (this.tail.count > 0) {
      if (this.tail.settling === undefined) this.#uplinks.endRun();
      this.#during(() => this.#uplinks.settle(SETTLED_AT_ONCE));
    }
  }

  /** One durable transaction too. */
  deleteOld(piece: AgingPiece): AgedPiece {
    // What is deleted must not be put into the tables by name and by lock afterwards.
    if (this.#forgetting.lastOld(piece) > this.tail.settledId) this.settle();
    return inTransaction(this.#db, () => this.#forgetting.deleteOld(piece));
  }

  #during(work: () => void): void {
    this.#uplinks.during(() => inTransaction(this.#db, work));
  }

  #appendIncoming({ count, uplinks, beside }: PackedCommit): void {
    const doubles = new Float64Array(uplinks);
    let [at, besides] = [0, 0];
    for (let index = 0; index <= count; index++) {
      while (beside[besides]?.after === index) this.#appendBeside((beside[besides++] as PackedExtras).item);
      if (index < count) at = this.#uplinks.append(doubles, at);
    }
  }

  #appendBeside(item: PackedExtras['item']): void {
    if (item.type === 'quarantine') this.#quarantine(item);
    else this.#appendLockEvent(item);
  }

  /** Whoever fills the table is, by that very fact, met by the trimming. */
  #appendLockEvent({ deviceId, atMs, event }: IncomingLockEvent): void {
    const { lastInsertRowid } = this.#insertLockEvent.run(
      deviceId,
      atMs,
      JSON.stringify(event),
      this.#uplinks.lastId,
      deviceId,
    );
    if (Number(lastInsertRowid) % TRIM_LOCK_EVENTS_EVERY === 0) this.#trimLockEvents.run(deviceId, deviceId);
  }

  #quarantine({ deviceId, credentialId, receivedAtMs, code, message, bytes }: IncomingQuarantine): void {
    this.#insertQuarantine.run(deviceId, credentialId, receivedAtMs, code, message, bytes, deviceId);
    this.#trimQuarantine.run(deviceId, deviceId);
  }

  #appendJudged({ deviceId, withdrawn, findings }: Judged): void {
    for (const { rule, about } of withdrawn)
      this.#withdrawFinding.run(deviceId, rule, about.credential, about.boot, about.sequence);
    for (const { rule, severity, message, about, atMs } of findings) {
      const name = [about?.credential ?? null, about?.boot ?? null, about?.sequence ?? null];
      this.#insertFinding.run(deviceId, atMs, rule, severity, message, ...name, deviceId);
    }
  }

  #recordProgress(progress: DeliveryProgress): void {
    for (const attempt of progress.attempts) this.#recordAttempt(attempt);
    for (const { uplinkId, atMs } of progress.parked ?? []) this.#park.run({ urlId: progress.urlId, atMs, uplinkId });
    for (const uplinkId of progress.damaged ?? []) this.#setDamaged.run({ urlId: progress.urlId, uplinkId });
    const { failing, hold } = progress;
    if (failing !== undefined) this.#failing.run(failing?.sinceMs ?? null, failing?.forMs ?? 0, progress.urlId);
    if (hold !== undefined) this.#hold.run(hold.untilMs, hold.spanMs, progress.urlId);
    if (progress.cursor !== undefined) this.#moveCursor.run(progress.cursor, progress.urlId, progress.cursor);
    if (progress.disabledWhy !== undefined) this.#disableUrl.run(progress.disabledWhy, progress.urlId);
  }

  #recordAttempt(attempt: AttemptRecord): void {
    const { urlId, uplinkId, number, atMs, durationMs, status, error, answer, outcome } = attempt;
    this.#insertAttempt.run({ urlId, uplinkId, number, atMs, durationMs, status, error, answer });
    if (outcome.state === 'delivered') {
      // What goes well at once never had a row.
      if (number > 1 || attempt.hasRow) this.#finishDelivery.run(number, urlId, uplinkId);
      return;
    }
    const next = outcome.state === 'pending' ? outcome.nextAttemptAtMs : null;
    this.#putDelivery.run({ urlId, uplinkId, state: outcome.state, number, next });
  }
}

/** Reads the log and the deliveries: only what is committed. */
export class LogReader {
  readonly #state: Statement;
  readonly #lock: Statement;
  readonly #credentials: Statement;
  readonly #events: Statement;
  readonly #outcomes: Statement;
  readonly #lastReceived: Statement;
  readonly #states: Statement;
  readonly #findings: Statement;
  readonly #logEvents: Statement;
  readonly #statesOf: Statement;
  readonly #settledTo: Statement;
  readonly #settledToOf: Statement;
  readonly #tailBegin: Statement;
  readonly #unsettled: Statement;
  readonly #unsettledOf: Statement;

  constructor(db: Database) {
    this.#state = db.prepare('SELECT state FROM device_state WHERE device_id = ?').pluck();
    this.#lock = db.prepare('SELECT id, merchant_id, simulated FROM device WHERE mac = ? AND removed_at_ms IS NULL');
    this.#credentials = db.prepare(
      `SELECT id, secret_hash, expires_at_ms, revoked_at_ms FROM credential
       WHERE device_id = ? AND kind = ? ORDER BY revoked_at_ms IS NOT NULL, id DESC LIMIT ${CREDENTIALS_READ}`,
    );
    this.#events = db.prepare(
      `SELECT ${UPLINK_COLUMNS} FROM uplink u JOIN device d ON d.id = u.device_id
       WHERE u.merchant_id = ? AND u.id > ? AND u.kind > 0 ORDER BY u.id LIMIT ?`,
    );
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
       WHERE f.device_id = ? AND f.merchant_id = d.merchant_id ORDER BY f.id DESC LIMIT ?`,
    );
    this.#logEvents = db.prepare(
      `SELECT e.id, e.at_ms, e.event, e.after_uplink_id FROM lock_event e JOIN device d ON d.id = e.device_id
       WHERE e.device_id = ? AND e.id > ? AND e.after_uplink_id <= ? AND e.merchant_id = d.merchant_id
       ORDER BY e.id LIMIT ?`,
    );
    const settledTo = 'SELECT coalesce(min(through_uplink_id), 0) FROM device_state';
    this.#settledTo = db.prepare(settledTo).pluck();
    this.#settledToOf = db.prepare(`${settledTo} WHERE device_id IN (SELECT value FROM json_each(?))`).pluck();
    this.#tailBegin = db
      .prepare('SELECT min(id) FROM (SELECT id FROM uplink WHERE id > ? ORDER BY id DESC LIMIT ?)')
      .pluck();
    // The order of the joins is that of the log: a piece of its end is walked once.
    const unsettled = (which: string): Statement =>
      db.prepare(
        `SELECT ${UPLINK_COLUMNS} FROM uplink u CROSS JOIN device_state s ON s.device_id = u.device_id
           CROSS JOIN device d ON d.id = u.device_id
         WHERE u.id > @afterId ${which} AND u.id > s.through_uplink_id AND u.merchant_id = d.merchant_id AND u.kind >= 0
         ORDER BY u.id LIMIT @limit`,
      );
    this.#unsettled = unsettled('');
    this.#unsettledOf = unsettled('AND u.device_id IN (SELECT value FROM json_each(@of))');
    this.#lastReceived = db.prepare('SELECT received_at_ms FROM uplink ORDER BY id DESC LIMIT 1').pluck();
  }

  lastReceivedAtMs(): number | null {
    return (this.#lastReceived.get() as number | undefined) ?? null;
  }

  /** Of all devices, or of these. */
  deviceStates(deviceIds?: readonly number[]): StoredState[] {
    const found = deviceIds === undefined ? this.#states.all() : this.#statesOf.all(JSON.stringify(deviceIds));
    const rows = found as (StoredState & { through: number; sum: number | null })[];
    return rows.map(({ deviceId, mac, state, through, sum }) => {
      const isWhole = sum === stateSum(deviceId, state, through);
      return isWhole ? { deviceId, mac, state } : { deviceId, mac, state, isDamaged: true };
    });
  }

  /** The id before the uplinks that some state may lack, where that are the newest `most` at the most. */
  tailBegin(most: number, deviceIds?: readonly number[]): number {
    // After a stop in order no state lacks any, and nothing of the log is walked.
    const settledTo = (
      deviceIds === undefined ? this.#settledTo.get() : this.#settledToOf.get(JSON.stringify(deviceIds))
    ) as number;
    const firstId = this.#tailBegin.get(settledTo, most) as number | null;
    return firstId === null ? settledTo : firstId - 1;
  }

  unsettled(afterId: number, limit: number, deviceIds?: readonly number[]): StoredUplink[] {
    const rows =
      deviceIds === undefined
        ? this.#unsettled.all({ afterId, limit })
        : this.#unsettledOf.all({ afterId, limit, of: JSON.stringify(deviceIds) });
    return (rows as UplinkRow[]).map(toUplink);
  }

  findings(deviceId: number, limit: number): StoredFinding[] {
    return (this.#findings.all(deviceId, limit) as FindingRow[]).map(toFinding);
  }

  /** Those that came no later than after this uplink. */
  logEvents(deviceId: number, afterId: number, uplinkId: number, limit: number): LogEventRow[] {
    return this.#logEvents.all(deviceId, afterId, uplinkId, limit) as LogEventRow[];
  }

  deviceState(deviceId: number): string | null {
    return (this.#state.get(deviceId) as string | undefined) ?? null;
  }

  lock(mac: Mac, kind: Source): LockAccount | null {
    const row = this.#lock.get(mac) as { id: number; merchant_id: number; simulated: number } | undefined;
    // A MAC that nobody has is looked up as far as one that somebody has.
    const credentials = (this.#credentials.all(row?.id ?? 0, kind) as CredentialRow[]).map(toCredential);
    if (row === undefined) return null;
    return { deviceId: row.id, merchantId: row.merchant_id, mac, simulated: row.simulated === 1, credentials };
  }

  events(merchantId: number, afterId: number, limit: number): StoredUplink[] {
    return (this.#events.all(merchantId, afterId, limit) as UplinkRow[]).map(toUplink);
  }

  outcomesAfter(urlId: number, afterId: number): number[] {
    return this.#outcomes.all({ urlId, afterId }) as number[];
  }
}

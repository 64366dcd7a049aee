/**
 * Writes a transaction of the log in hand-written SQL: uplinks, the judge's findings (broken rules of the protocol),
 * states of locks, outcomes of deliveries, and batched writes (batched-write.ts). Every method is synchronous; the
 * caller decides in which thread it runs.
 */

import type { Database, Statement } from 'better-sqlite3';
import type { CommandChange } from '../../contract/command-record.js';
import type { AgingChunk, AgingResult } from '../../contract/deletion.js';
import {
  type IncomingLockEvent,
  type IncomingQuarantine,
  type Judged,
  MAX_LOCK_EVENTS_PER_LOCK,
  MAX_QUARANTINED_PER_LOCK,
} from '../../contract/log/commit.js';
import type { MerchantOutcome } from '../../contract/merchants/merchant-write.js';
import type { RunSize } from '../../contract/store-options.js';
import type { AttemptRecord } from '../../contract/webhooks/delivery.js';
import type { PackedCommit, PackedExtra } from '../../log/packed-commit.js';
import { Deletion } from '../deletion.js';
import { inTransaction } from '../durable-file.js';
import { stateSum } from '../row-checksum.js';
import { CommandChanges } from '../tables/command-changes.js';
import { MerchantWriter } from '../tables/people/merchant-writer.js';
import { type DenseProgress, StandaloneWriter } from './batched-write.js';
import type { LogWrite } from './log-thread-message.js';
import type { UplinkMemtable } from './memtable/uplink-memtable.js';
import { joinPacked, MerchantEventWriter } from './merchant-event-writer.js';
import { isRefusedSending, repeatedUplinkIndexes } from './refused-parts.js';
import { UplinkWriter } from './uplink-writer.js';

/**
 * A lock's surplus events are deleted only when an event gets a row id that is a multiple of this: deleting them at
 * each event would cost more.
 */
const LOCK_EVENT_TRIM_INTERVAL = 1024;
/** Maximum number of uplinks that a transaction flushes into the indexes if it does nothing else. */
const MAX_UPLINKS_PER_FLUSH = 10_000;

/**
 * A condition in SQL: the uplink @uplinkId is not erased, which gives it a negative kind. Nothing is stored about a
 * delivery whose event was erased while it was sent.
 */
const NOT_ERASED = 'u.id = @uplinkId AND u.kind >= 0';

/** The lock's current merchant, in SQL; the statement's last parameter is the device id. */
const CURRENT_MERCHANT = '(SELECT merchant_id FROM device WHERE id = ?)';

const NO_INDEXES: readonly number[] = [];

/** Writes the log and the deliveries. No other connection may append to the log. */
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
  readonly #insertBlocked: Statement;
  readonly #setDamaged: Statement;
  readonly #setFailing: Statement;
  readonly #setHold: Statement;
  readonly #commands: CommandChanges;
  readonly #events: MerchantEventWriter;
  /** Writes that only share the transaction with uplinks (batched-write.ts). */
  readonly #standalone: StandaloneWriter;
  readonly #merchants: MerchantWriter;
  readonly #deletion: Deletion;

  constructor(db: Database, runSize?: RunSize) {
    this.#commands = new CommandChanges(db);
    this.#standalone = new StandaloneWriter(db);
    this.#merchants = new MerchantWriter(db);
    this.#deletion = new Deletion(db);
    this.#db = db;
    this.#uplinks = new UplinkWriter(db, runSize);
    this.#events = new MerchantEventWriter(db, this.#uplinks);
    this.#putState = db.prepare(
      `INSERT INTO device_state (device_id, state, through_uplink_id, sum) VALUES (?, ?, ?, ?)
       ON CONFLICT (device_id) DO UPDATE SET
         state = excluded.state, through_uplink_id = excluded.through_uplink_id, sum = excluded.sum`,
    );
    this.#insertLockEvent = db.prepare(
      `INSERT INTO lock_event (device_id, at_ms, event, after_uplink_id, merchant_id)
       VALUES (?, ?, ?, ?, ${CURRENT_MERCHANT})`,
    );
    this.#trimLockEvents = db.prepare(
      `DELETE FROM lock_event WHERE device_id = ? AND id <= (
         SELECT id FROM lock_event WHERE device_id = ? ORDER BY id DESC LIMIT 1 OFFSET ${MAX_LOCK_EVENTS_PER_LOCK})`,
    );
    this.#insertFinding = db.prepare(
      `INSERT INTO finding (device_id, at_ms, rule, severity, message, credential_id, boot, sequence, merchant_id)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ${CURRENT_MERCHANT})`,
    );
    this.#withdrawFinding = db.prepare(
      `DELETE FROM finding WHERE device_id = ? AND rule = ? AND credential_id = ? AND boot = ? AND sequence = ?`,
    );
    this.#insertQuarantine = db.prepare(
      `INSERT INTO quarantine (device_id, credential_id, received_at_ms, code, message, bytes, merchant_id)
       VALUES (?, ?, ?, ?, ?, ?, ${CURRENT_MERCHANT})`,
    );
    this.#trimQuarantine = db.prepare(
      `DELETE FROM quarantine WHERE device_id = ? AND id <= (
         SELECT id FROM quarantine WHERE device_id = ? ORDER BY id DESC LIMIT 1 OFFSET ${MAX_QUARANTINED_PER_LOCK})`,
    );
    this.#insertAttempt = db.prepare(
      `INSERT INTO attempt (url_id, uplink_id, number, at_ms, duration_ms, status, error, answer)
       SELECT @urlId, u.id, @number, @atMs, @durationMs, @status, @error, @answer FROM uplink u WHERE ${NOT_ERASED}`,
    );
    this.#putDelivery = db.prepare(
      `INSERT INTO delivery (url_id, uplink_id, state, attempts, next_attempt_at_ms, device_id)
       SELECT @urlId, u.id, @state, @number, @nextAttemptAtMs, u.device_id FROM uplink u WHERE ${NOT_ERASED}
       ON CONFLICT (url_id, uplink_id) DO UPDATE SET
         state = excluded.state, attempts = excluded.attempts, next_attempt_at_ms = excluded.next_attempt_at_ms`,
    );
    this.#finishDelivery = db.prepare(
      `UPDATE delivery SET state = 'delivered', attempts = ?, next_attempt_at_ms = NULL
       WHERE url_id = ? AND uplink_id = ?`,
    );
    this.#moveCursor = db.prepare('UPDATE webhook_url SET cursor = ? WHERE id = ? AND cursor < ?');
    this.#disableUrl = db.prepare(`UPDATE webhook_url SET state = 'disabled', disabled_why = ? WHERE id = ?`);
    this.#insertBlocked = db.prepare(
      `INSERT INTO delivery (url_id, uplink_id, state, attempts, next_attempt_at_ms, device_id)
       SELECT @urlId, u.id, 'pending', 0, @atMs, u.device_id FROM uplink u WHERE ${NOT_ERASED} ON CONFLICT DO NOTHING`,
    );
    this.#setDamaged = db.prepare(
      `INSERT INTO delivery (url_id, uplink_id, state, attempts, next_attempt_at_ms, device_id)
       SELECT @urlId, u.id, 'damaged', 0, NULL, u.device_id FROM uplink u WHERE ${NOT_ERASED}
       ON CONFLICT (url_id, uplink_id) DO UPDATE SET state = excluded.state, next_attempt_at_ms = NULL`,
    );
    this.#setFailing = db.prepare('UPDATE webhook_url SET failing_since_ms = ?, failing_for_ms = ? WHERE id = ?');
    this.#setHold = db.prepare('UPDATE webhook_url SET held_until_ms = ?, held_for_ms = ? WHERE id = ?');
  }

  /** The uplinks that are not in the indexes yet. */
  get memtable(): UplinkMemtable {
    return this.#uplinks.memtable;
  }

  /**
   * Makes all writes, in order, in one durable transaction. Returns the outcomes of the merchants' writes, in order.
   *
   * @throws SQLite's error, after a rollback
   */
  write(writes: readonly LogWrite[]): MerchantOutcome[] {
    const outcomes: MerchantOutcome[] = [];
    this.#transaction(() => {
      for (const write of writes) {
        if (write.type === 'append') this.#append(write.commit);
        else if (write.type === 'merchant') outcomes.push(this.#merchants.write(write.operation));
        else if (write.type === 'progress') for (const progress of write.progress) this.#recordProgress(progress);
        else this.#standalone.write(write);
      }
    });
    return outcomes;
  }

  #append(commit: PackedCommit): void {
    const { merchantEvents } = commit;
    // Staged events are older than what the commit brings. That a late lock is back comes before what it sent.
    const before = this.#events.appendStaged();
    before.push(...this.#events.append(merchantEvents.filter(({ type }) => type === 'presence')));
    const refusedCommands = this.#changeCommands(commit);
    const repeatedUplinks = this.#appendIncoming(commit, refusedCommands);
    const isAllStored = refusedCommands.length + repeatedUplinks.length === 0;
    commit.result = isAllStored ? undefined : { refusedCommands, repeatedUplinks };
    for (const judged of commit.judged) this.#appendJudged(judged);
    for (const [deviceId, state] of commit.states) this.#storeState(deviceId, state);
    const after = this.#events.append(merchantEvents.filter(({ type }) => type !== 'presence'));
    if (commit.commands.length > 0) after.push(...this.#events.appendStaged());
    if (before.length + after.length > 0)
      commit.appended = joinPacked([...before, new Float64Array(commit.uplinks), ...after]);
    this.#uplinks.flushWithCommit(before.length + commit.count + after.length);
  }

  /** Changes the commit's commands, in order. Returns the indexes of those whose state did not allow the change. */
  #changeCommands({ commands }: PackedCommit): readonly number[] {
    if (commands.length === 0) return NO_INDEXES;
    return [...commands.keys()].filter((index) => !this.#commands.apply(commands[index] as CommandChange));
  }

  /** Stores a state that includes all uplinks so far, and its checksum; a trigger would compute it much more slowly. */
  #storeState(deviceId: number, state: string): void {
    const throughId = this.#uplinks.lastId;
    this.#putState.run(deviceId, state, throughId, stateSum(deviceId, state, throughId));
  }

  /** Flushes the whole memtable into the indexes, in several transactions. */
  flushIndexes(): void {
    while (this.memtable.count > 0) {
      if (this.memtable.flushing === undefined) this.#uplinks.startFlush();
      this.#transaction(() => this.#uplinks.flush(MAX_UPLINKS_PER_FLUSH));
    }
  }

  /** See {@link UplinkWriter.distrustHints}. */
  distrustHints(deviceId: number): void {
    this.#uplinks.distrustHints(deviceId);
  }

  /** Deletes the old rows of a chunk, in one durable transaction. */
  deleteOld(chunk: AgingChunk): AgingResult {
    // A deleted uplink must not be flushed into the indexes afterwards.
    if (this.#deletion.findLastOld(chunk) > this.memtable.indexedId) this.flushIndexes();
    return inTransaction(this.#db, () => this.#deletion.deleteOld(chunk));
  }

  /** Runs `work` in one durable transaction; after a rollback the memtable is as before it, too. */
  #transaction(work: () => void): void {
    this.#uplinks.transaction(() => inTransaction(this.#db, work));
  }

  /**
   * Appends uplinks and other items in the order of arrival: each other item has the number of uplinks before it.
   * Leaves out the lock events about the sending of refused commands. Returns the indexes of repeated uplinks among all
   * items.
   */
  #appendIncoming(commit: PackedCommit, refusedCommands: readonly number[]): readonly number[] {
    const { count, uplinks, extras } = commit;
    const doubles = new Float64Array(uplinks);
    const idBefore = this.#uplinks.lastId;
    let [offset, nextExtra] = [0, 0];
    for (let index = 0; index <= count; index++) {
      for (; extras[nextExtra]?.after === index; nextExtra++) {
        const { item } = extras[nextExtra] as PackedExtra;
        if (refusedCommands.length === 0 || !isRefusedSending(commit, refusedCommands, item)) this.#appendExtra(item);
      }
      if (index < count) offset = this.#uplinks.append(doubles, offset);
    }
    return this.#uplinks.lastId - idBefore === count ? NO_INDEXES : repeatedUplinkIndexes(commit);
  }

  #appendExtra(item: PackedExtra['item']): void {
    if (item.type === 'quarantine') this.#quarantine(item);
    else this.#appendLockEvent(item);
  }

  /**
   * Appends a connection event. Deletes the lock's surplus events at some row ids; an event of a lock with many of
   * them soon gets such an id.
   */
  #appendLockEvent({ deviceId, atMs, event }: IncomingLockEvent): void {
    const { lastInsertRowid } = this.#insertLockEvent.run(
      deviceId,
      atMs,
      JSON.stringify(event),
      this.#uplinks.lastId,
      deviceId,
    );
    if (Number(lastInsertRowid) % LOCK_EVENT_TRIM_INTERVAL === 0) this.#trimLockEvents.run(deviceId, deviceId);
  }

  #quarantine({ deviceId, credentialId, receivedAtMs, code, message, bytes }: IncomingQuarantine): void {
    this.#insertQuarantine.run(deviceId, credentialId, receivedAtMs, code, message, bytes, deviceId);
    this.#trimQuarantine.run(deviceId, deviceId);
  }

  #appendJudged({ deviceId, withdrawn, findings }: Judged): void {
    for (const { rule, about } of withdrawn)
      this.#withdrawFinding.run(deviceId, rule, about.credential, about.boot, about.sequence);
    for (const { rule, severity, message, about, atMs } of findings) {
      const key = [about?.credential ?? null, about?.boot ?? null, about?.sequence ?? null];
      this.#insertFinding.run(deviceId, atMs, rule, severity, message, ...key, deviceId);
    }
  }

  #recordProgress(progress: DenseProgress): void {
    for (const attempt of progress.attempts) this.#recordAttempt(attempt);
    const { urlId, failing, hold } = progress;
    for (const { uplinkId, atMs } of progress.blocked ?? []) this.#insertBlocked.run({ urlId, atMs, uplinkId });
    for (const uplinkId of progress.damaged ?? []) this.#setDamaged.run({ urlId, uplinkId });
    if (failing !== undefined) this.#setFailing.run(failing?.sinceMs ?? null, failing?.forMs ?? 0, urlId);
    if (hold !== undefined) this.#setHold.run(hold.untilMs, hold.spanMs, urlId);
    if (progress.cursor !== undefined) this.#moveCursor.run(progress.cursor, urlId, progress.cursor);
    if (progress.disabledWhy !== undefined) this.#disableUrl.run(progress.disabledWhy, urlId);
  }

  #recordAttempt(attempt: AttemptRecord): void {
    const { urlId, uplinkId, number, atMs, durationMs, status, error, answer, outcome } = attempt;
    this.#insertAttempt.run({ urlId, uplinkId, number, atMs, durationMs, status, error, answer });
    if (outcome.state === 'delivered') {
      // A delivery that succeeds at its first attempt has no row.
      if (number > 1 || attempt.hasRow) this.#finishDelivery.run(number, urlId, uplinkId);
      return;
    }
    const nextAttemptAtMs = outcome.state === 'pending' ? outcome.nextAttemptAtMs : null;
    this.#putDelivery.run({ urlId, uplinkId, state: outcome.state, number, nextAttemptAtMs });
  }
}

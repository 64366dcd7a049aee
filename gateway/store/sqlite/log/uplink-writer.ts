/**
 * Appends uplinks to the log, in hand-written SQL. Later flushes them from the memtable (memtable/uplink-memtable.ts)
 * into the log's two indexes, by key and by lock, which are tables too (`uplink_name`, `uplink_of_device`). Each commit
 * flushes a slice of a sorted run of uplinks, so no commit is delayed much, and a page of an index is written once for
 * many uplinks. The progress is part of the commit (`uplink_settled`).
 *
 * An uplink that is already in the log is skipped. No unique index detects it: an uplink with a higher key than all
 * others of its credential is new, and any other is looked up in the index and in the memtable. Only one thread may use
 * this class.
 */

import type { Database, Statement } from 'better-sqlite3';
import { uplinkDigest } from '../../../webhooks/event-id.js';
import type { RunSize } from '../../contract/store-options.js';
import { HEADER_WORDS, UPLINK_WORD, WORD_BYTES, wordsOf } from '../../log/packed-commit.js';
import { uplinkHint } from '../../log/uplink-hint.js';
import { packedSum } from '../../log/uplink-sum.js';
import { IndexFlush } from './memtable/index-flush.js';
import { DEFAULT_RUN_SIZE, UplinkMemtable } from './memtable/uplink-memtable.js';

/** Uplinks flushed per uplink appended: more than one, so that a run is flushed before the next run is full. */
const FLUSHED_PER_UPLINK = 1.25;
/** A commit flushes at least this many uplinks; few, since it delays the commit. */
const MIN_FLUSHED_PER_COMMIT = 8;

/** The highest key among a credential's uplinks, and whether it is a lock's credential and no phone's. */
interface HighestKey {
  readonly isOfLock: boolean;
  boot: number;
  sequence: number;
}

/** The columns of an uplink that the memtable needs. */
interface MemtableRow {
  readonly id: number;
  readonly device_id: number;
  readonly credential_id: number;
  readonly boot: number;
  readonly sequence: number;
}

/** Returns the highest id that was ever assigned to an uplink, even a deleted one: no id is reused. */
function highestAssignedId(db: Database): number {
  const assigned = db.prepare(`SELECT seq FROM sqlite_sequence WHERE name = 'uplink'`).pluck().get();
  return (assigned as number | undefined) ?? 0;
}

/** Loads the uplinks that are not in the indexes yet. */
export function loadMemtable(db: Database): UplinkMemtable {
  const indexedId = db.prepare('SELECT settled_id FROM uplink_settled').pluck().get() as number;
  const memtable = new UplinkMemtable(indexedId, highestAssignedId(db));
  const rows = db.prepare('SELECT id, device_id, credential_id, boot, sequence FROM uplink WHERE id > ? ORDER BY id');
  for (const row of rows.iterate(indexedId) as IterableIterator<MemtableRow>)
    memtable.growing.add(row.device_id, row.credential_id, row.boot, row.sequence, row.id);
  return memtable;
}

export class UplinkWriter {
  readonly memtable: UplinkMemtable;
  readonly #insert: Statement;
  readonly #highestIndexedKey: Statement;
  readonly #idsOfKey: Statement;
  readonly #digest: Statement;
  readonly #putKey: Statement;
  readonly #putOfDevice: Statement;
  readonly #hinted: Statement;
  readonly #moveIndexed: Statement;
  /**
   * The highest key of each credential that sent since the growing run started, by credential id. After a rollback it
   * may be too high, which costs a lookup but changes no result.
   */
  readonly #highestKeys = new Map<number, HighestKey>();
  /** The locks that were erased since the start: their hints are made of their stored rows. */
  readonly #erasedDevices = new Set<number>();
  readonly #size: RunSize;
  /** The flush that is under way. */
  #flush: IndexFlush | undefined;
  #lastId: number;

  constructor(db: Database, size: RunSize = DEFAULT_RUN_SIZE) {
    this.#size = size;
    this.memtable = loadMemtable(db);
    this.#insert = db.prepare(
      `INSERT INTO uplink (id, device_id, merchant_id, credential_id, boot, sequence, digest, kind, bytes,
         received_at_ms, buffered, sum)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#highestIndexedKey = db.prepare(
      `SELECT (SELECT kind = 'lock' FROM credential WHERE id = @credentialId) AS isOfLock,
         coalesce(boot, -1) AS boot, coalesce(sequence, -1) AS sequence
       FROM (SELECT 1) LEFT JOIN (
         SELECT boot, sequence FROM uplink_name WHERE credential_id = @credentialId
         ORDER BY boot DESC, sequence DESC LIMIT 1)`,
    );
    this.#idsOfKey = db
      .prepare('SELECT uplink_id FROM uplink_name WHERE credential_id = ? AND boot = ? AND sequence = ?')
      .pluck();
    this.#digest = db.prepare('SELECT digest FROM uplink WHERE id = ?').pluck();
    this.#putKey = db.prepare(
      'INSERT OR IGNORE INTO uplink_name (credential_id, boot, sequence, uplink_id) VALUES (?, ?, ?, ?)',
    );
    this.#putOfDevice = db.prepare(
      'INSERT OR IGNORE INTO uplink_of_device (device_id, uplink_id, hint) VALUES (?, ?, ?)',
    );
    this.#hinted = db
      .prepare(
        `SELECT kind, bytes, received_at_ms, buffered,
           (SELECT c.kind FROM credential c WHERE c.id = u.credential_id) = 'lock' FROM uplink u WHERE u.id = ?`,
      )
      .raw();
    this.#moveIndexed = db.prepare('UPDATE uplink_settled SET settled_id = ?');
    this.#lastId = highestAssignedId(db);
  }

  /** The id of the newest uplink. */
  get lastId(): number {
    return this.#lastId;
  }

  /** Runs `work`, which must run one transaction. If it fails, the state in memory is rolled back too. */
  transaction(work: () => void): void {
    const lastId = this.#lastId;
    const position = this.#flush?.position;
    try {
      work();
    } catch (error) {
      if (this.#lastId > lastId) this.memtable.growing.dropFrom(lastId + 1);
      this.#lastId = lastId;
      if (position !== undefined) this.#flush?.rewind(position);
      throw error;
    }
    if (this.#flush?.isDone) {
      this.#flush = undefined;
      this.memtable.finishFlush();
    }
    if (this.memtable.flushing === undefined && this.memtable.growing.isFull(this.#size)) this.startFlush();
  }

  /** Starts to flush the growing run. Must not be called while another run is flushed. */
  startFlush(): void {
    this.#flush = new IndexFlush(this.memtable.startFlush());
    this.#highestKeys.clear();
  }

  /**
   * Must be called before a lock's uplinks are erased: a hint that was noted when an uplink was appended must not be
   * written after it.
   */
  distrustHints(deviceId: number): void {
    this.#erasedDevices.add(deviceId);
  }

  /**
   * Appends the uplink that is packed from the word `start` on (packed-commit.ts), and sets its id there, which stays 0
   * for a repeat. Returns the word at which the next uplink starts.
   */
  append(doubles: Float64Array, start: number): number {
    const { buffer } = doubles;
    const length = doubles[start + UPLINK_WORD.length] as number;
    const deviceId = doubles[start + UPLINK_WORD.deviceId] as number;
    const credentialId = doubles[start + UPLINK_WORD.credentialId] as number;
    const boot = doubles[start + UPLINK_WORD.boot] as number;
    const sequence = doubles[start + UPLINK_WORD.sequence] as number;
    const bytes = Buffer.from(buffer, (start + HEADER_WORDS) * WORD_BYTES, length);
    // A view of the packed uplink, so the digest is stored there too, for the checksum.
    const digest = Buffer.from(buffer, (start + UPLINK_WORD.digest) * WORD_BYTES, WORD_BYTES);
    digest.set(uplinkDigest(bytes));
    if (!this.#isNew(credentialId, boot, sequence, digest)) return start + wordsOf(length);
    const id = this.#lastId + 1;
    doubles[start + UPLINK_WORD.id] = id;
    const kindAndBuffered = doubles[start + UPLINK_WORD.kindAndBuffered] as number;
    this.#insert.run(
      id,
      deviceId,
      doubles[start + UPLINK_WORD.merchantId],
      credentialId,
      boot,
      sequence,
      digest,
      // Twice the kind, plus 1 if it was buffered (packed-commit.ts).
      kindAndBuffered >> 1,
      bytes,
      doubles[start + UPLINK_WORD.receivedAtMs],
      kindAndBuffered & 1,
      packedSum(doubles, start),
    );
    this.#lastId = id;
    const { growing } = this.memtable;
    growing.add(deviceId, credentialId, boot, sequence, id);
    const row = {
      id,
      device_id: deviceId,
      kind: kindAndBuffered >> 1,
      bytes,
      received_at_ms: doubles[start + UPLINK_WORD.receivedAtMs] as number,
      buffered: kindAndBuffered & 1,
    };
    growing.hints.set(id, this.#highestKeyOf(credentialId).isOfLock ? uplinkHint(row) : null);
    return start + wordsOf(length);
  }

  /** Whether the log does not have the uplink yet: no other has its key and content. */
  #isNew(credentialId: number, boot: number, sequence: number, digest: Buffer): boolean {
    const highest = this.#highestKeyOf(credentialId);
    if (boot > highest.boot || (boot === highest.boot && sequence > highest.sequence)) {
      highest.boot = boot;
      highest.sequence = sequence;
      return true;
    }
    const indexed = this.#idsOfKey.all(credentialId, boot, sequence) as number[];
    const ids = [...indexed, ...this.memtable.find(credentialId, boot, sequence)];
    return !ids.some((id) => (this.#digest.get(id) as Buffer | undefined)?.equals(digest));
  }

  #highestKeyOf(credentialId: number): HighestKey {
    const known = this.#highestKeys.get(credentialId);
    if (known !== undefined) return known;
    const indexed = this.#highestIndexedKey.get({ credentialId }) as {
      readonly isOfLock: number | null;
      readonly boot: number;
      readonly sequence: number;
    };
    const isOfLock = indexed.isOfLock === 1;
    let highest: HighestKey = { isOfLock, boot: indexed.boot, sequence: indexed.sequence };
    for (const run of [this.memtable.flushing, this.memtable.growing]) {
      const last = run?.keys.get(credentialId)?.last;
      if (last !== undefined && (last.boot - highest.boot || last.sequence - highest.sequence) > 0)
        highest = { isOfLock, ...last };
    }
    this.#highestKeys.set(credentialId, highest);
    return highest;
  }

  /** Flushes the slice that belongs to a commit of this many uplinks. */
  flushWithCommit(uplinkCount: number): void {
    this.flush(Math.max(Math.ceil(uplinkCount * FLUSHED_PER_UPLINK), MIN_FLUSHED_PER_COMMIT));
  }

  /** Flushes the next `count` uplinks of the run. */
  flush(count: number): void {
    const flush = this.#flush;
    if (flush === undefined) return;
    flush.takeKeys(count, (credentialId, boot, sequence, id) => {
      this.#putKey.run(credentialId, boot, sequence, id);
    });
    flush.takeDevices(count, (deviceId, id) => {
      const noted = this.#erasedDevices.has(deviceId) ? undefined : flush.notedHint(id);
      this.#putOfDevice.run(deviceId, id, noted === undefined ? this.#hintOf(deviceId, id) : noted);
    });
    if (flush.isDone) this.#moveIndexed.run(flush.lastId);
  }

  /** The hint, made of the stored row: of an uplink of an earlier run, or of a lock that was erased since. */
  #hintOf(deviceId: number, id: number): number | null {
    const row = this.#hinted.get(id) as [number, Buffer, number, number, number | null] | undefined;
    if (row === undefined || row[4] !== 1) return null;
    return uplinkHint({
      id,
      device_id: deviceId,
      kind: row[0],
      bytes: row[1],
      received_at_ms: row[2],
      buffered: row[3],
    });
  }
}

/**
 * Appends uplinks to the log, in SQL by hand, and flushes them into the two indexes, the tables by key and by lock, a
 * run at a time (memtable/uplink-memtable.ts): with each commit a slice of the run, in the order of the index. So no
 * commit is held up, and a page of an index is written once for many uplinks. The progress is part of the commit.
 *
 * An uplink that is in the log already is skipped. No unique index finds it: one with a higher key than all others of
 * its credential is new, and any other is looked up in the index and in the memtable.
 */

import type { Database, Statement } from 'better-sqlite3';
import { digestOf } from '../../../webhooks/event-id.js';
import type { RunSize } from '../../contract/store-options.js';
import { IndexFlush } from './memtable/index-flush.js';
import { RUN_SIZE, UplinkMemtable } from './memtable/uplink-memtable.js';
import { UPLINK_WORD, UPLINK_WORDS, WORD, wordsOf } from './packed-commit.js';
import { packedSum } from './uplink-sum.js';

/** A commit flushes more uplinks than it appends, so that a run is flushed before the next one is full. */
const FLUSHED_PER_UPLINK = 1.25;
/** A commit flushes at least so many. */
const FLUSHED_LEAST = 64;

/** The highest key of a credential. */
interface Top {
  boot: number;
  sequence: number;
}

interface LoadedRow {
  readonly id: number;
  readonly device_id: number;
  readonly credential_id: number;
  readonly boot: number;
  readonly sequence: number;
}

/** The highest id that an uplink was ever given, deleted ones included: no id is given twice. */
function highestIdGiven(db: Database): number {
  const given = db.prepare(`SELECT seq FROM sqlite_sequence WHERE name = 'uplink'`).pluck().get();
  return (given as number | undefined) ?? 0;
}

/** The uplinks that the indexes do not have yet, as a connection sees them. */
export function loadMemtable(db: Database): UplinkMemtable {
  const indexedId = db.prepare('SELECT settled_id FROM uplink_settled').pluck().get() as number;
  const memtable = new UplinkMemtable(indexedId, highestIdGiven(db));
  const rows = db.prepare('SELECT id, device_id, credential_id, boot, sequence FROM uplink WHERE id > ? ORDER BY id');
  for (const row of rows.iterate(indexedId) as IterableIterator<LoadedRow>)
    memtable.growing.add(row.device_id, row.credential_id, row.boot, row.sequence, row.id);
  return memtable;
}

export class UplinkWriter {
  readonly memtable: UplinkMemtable;
  readonly #insert: Statement;
  readonly #top: Statement;
  readonly #idsOfKey: Statement;
  readonly #digest: Statement;
  readonly #putKey: Statement;
  readonly #putOfDevice: Statement;
  readonly #moveIndexed: Statement;
  /** Of credentials that sent since the growing run started. After a rollback one may be too high: a lookup tells. */
  readonly #tops = new Map<number, Top>();
  readonly #size: RunSize;
  #flush: IndexFlush | undefined;
  #lastId: number;

  constructor(db: Database, size: RunSize = RUN_SIZE) {
    this.#size = size;
    this.memtable = loadMemtable(db);
    this.#insert = db.prepare(
      `INSERT INTO uplink (id, device_id, merchant_id, credential_id, boot, sequence, digest, kind, bytes,
         received_at_ms, buffered, sum)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#top = db.prepare(
      'SELECT boot, sequence FROM uplink_name WHERE credential_id = ? ORDER BY boot DESC, sequence DESC LIMIT 1',
    );
    this.#idsOfKey = db
      .prepare('SELECT uplink_id FROM uplink_name WHERE credential_id = ? AND boot = ? AND sequence = ?')
      .pluck();
    this.#digest = db.prepare('SELECT digest FROM uplink WHERE id = ?').pluck();
    this.#putKey = db.prepare(
      'INSERT OR IGNORE INTO uplink_name (credential_id, boot, sequence, uplink_id) VALUES (?, ?, ?, ?)',
    );
    this.#putOfDevice = db.prepare('INSERT OR IGNORE INTO uplink_of_device (device_id, uplink_id) VALUES (?, ?)');
    this.#moveIndexed = db.prepare('UPDATE uplink_settled SET settled_id = ?');
    this.#lastId = highestIdGiven(db);
  }

  /** The id of the newest uplink. */
  get lastId(): number {
    return this.#lastId;
  }

  /** Runs `work`, which is a transaction. Where it fails, the state in memory is rolled back too. */
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

  /** Starts to flush the growing run. Not to be called while another one is flushed. */
  startFlush(): void {
    this.#flush = new IndexFlush(this.memtable.startFlush());
    this.#tops.clear();
  }

  /**
   * Appends the uplink that is packed from the double `at` on, and sets its id there; it stays 0 for a repeat. Returns
   * where the next uplink starts.
   */
  append(doubles: Float64Array, at: number): number {
    const { buffer } = doubles;
    const length = doubles[at + UPLINK_WORD.length] as number;
    const deviceId = doubles[at + UPLINK_WORD.deviceId] as number;
    const credentialId = doubles[at + UPLINK_WORD.credentialId] as number;
    const boot = doubles[at + UPLINK_WORD.boot] as number;
    const sequence = doubles[at + UPLINK_WORD.sequence] as number;
    const bytes = Buffer.from(buffer, (at + UPLINK_WORDS) * WORD, length);
    const digest = Buffer.from(buffer, (at + UPLINK_WORD.digest) * WORD, WORD);
    digest.set(digestOf(bytes));
    if (!this.#isNew(credentialId, boot, sequence, digest)) return at + wordsOf(length);
    const id = this.#lastId + 1;
    doubles[at + UPLINK_WORD.id] = id;
    const kindAndBuffered = doubles[at + UPLINK_WORD.kindAndBuffered] as number;
    this.#insert.run(
      id,
      deviceId,
      doubles[at + UPLINK_WORD.merchantId],
      credentialId,
      boot,
      sequence,
      digest,
      kindAndBuffered >> 1,
      bytes,
      doubles[at + UPLINK_WORD.receivedAtMs],
      kindAndBuffered & 1,
      packedSum(doubles, at),
    );
    this.#lastId = id;
    this.memtable.growing.add(deviceId, credentialId, boot, sequence, id);
    return at + wordsOf(length);
  }

  #isNew(credentialId: number, boot: number, sequence: number, digest: Buffer): boolean {
    const top = this.#topOf(credentialId);
    if (boot > top.boot || (boot === top.boot && sequence > top.sequence)) {
      top.boot = boot;
      top.sequence = sequence;
      return true;
    }
    const indexed = this.#idsOfKey.all(credentialId, boot, sequence) as number[];
    const ids = [...indexed, ...this.memtable.find(credentialId, boot, sequence)];
    return !ids.some((id) => (this.#digest.get(id) as Buffer | undefined)?.equals(digest));
  }

  #topOf(credentialId: number): Top {
    const known = this.#tops.get(credentialId);
    if (known !== undefined) return known;
    let top: Top = (this.#top.get(credentialId) as Top | undefined) ?? { boot: -1, sequence: -1 };
    for (const run of [this.memtable.flushing, this.memtable.growing]) {
      const last = run?.keys.get(credentialId)?.last;
      if (last !== undefined && (last.boot - top.boot || last.sequence - top.sequence) > 0) top = last;
    }
    this.#tops.set(credentialId, top);
    return top;
  }

  /** Flushes the slice that goes with a commit of so many uplinks. */
  flushWithCommit(uplinks: number): void {
    this.flush(Math.max(Math.ceil(uplinks * FLUSHED_PER_UPLINK), FLUSHED_LEAST));
  }

  /** Flushes so many uplinks of the run. */
  flush(count: number): void {
    const flush = this.#flush;
    if (flush === undefined) return;
    flush.takeKeys(count, (credentialId, boot, sequence, id) => {
      this.#putKey.run(credentialId, boot, sequence, id);
    });
    flush.takeDevices(count, (deviceId, id) => {
      this.#putOfDevice.run(deviceId, id);
    });
    if (flush.isDone) this.#moveIndexed.run(flush.lastId);
  }
}

/**
 * Reads parts of one lock's log, and its findings, over one connection, in the thread of scan-thread.ts or in the
 * caller's. A lock's uplinks are scattered over the whole log, so a part of an old log means hundreds of reads from the
 * disk, for which pings should not wait.
 */
import type { Database } from 'better-sqlite3';
import type { LogEntry, StoredFinding } from '../../contract/log/log-entry.js';
import { stateChanges } from '../../log/state-changes.js';
import { LockUplinks } from '../log/lock-uplinks.js';
import { LogMerge } from '../log/log-merge.js';
import { LogReader } from '../log/log-reader.js';
import { type NewestUplinks, RequestedMemtable } from './requested-memtable.js';

/** The uplink and the event after which a part of a lock's log starts. */
export interface LogPlace {
  readonly afterUplinkId: number;
  readonly afterEventId: number;
}

/** A part of a lock's log to read, with what only the store's own memory knows. */
export interface LogPartRequest extends NewestUplinks {
  readonly type: 'log';
  readonly deviceId: number;
  readonly start: LogPlace;
  /** Maximum number of entries that are read. */
  readonly limit: number;
  /** Whether uplinks that repeat the one before are left out (log/state-changes.ts). */
  readonly changesOnly: boolean;
}

/** A lock's findings to read: the newest before the id `beforeId`, or the newest of all if that is undefined. */
export interface FindingRequest {
  readonly type: 'findings';
  readonly deviceId: number;
  readonly limit: number;
  readonly beforeId: number | undefined;
}

export interface LogPart {
  readonly entries: readonly LogEntry[];
  /** How many entries were read. */
  readonly examined: number;
  /** Where the next part starts. */
  readonly end: LogPlace;
}

export class LogScanner {
  readonly #memtable = new RequestedMemtable();
  readonly #log: LogReader;
  readonly #lockUplinks: LockUplinks;

  /** `db` is a reading connection. */
  constructor(db: Database) {
    this.#log = new LogReader(db);
    this.#lockUplinks = new LockUplinks(db, this.#memtable);
  }

  read(request: LogPartRequest): LogPart {
    const { deviceId, start, limit, changesOnly } = request;
    this.#memtable.take(request);
    const merge = new LogMerge(this.#log, this.#lockUplinks, deviceId, limit, start);
    if (changesOnly) {
      const { entries, examined } = merge.nextChanges();
      return { entries: stateChanges(entries), examined, end: merge.place };
    }
    const entries = merge.next();
    return { entries, examined: entries.length, end: merge.place };
  }

  /** Returns the lock's newest findings before an id. */
  readFindings({ deviceId, limit, beforeId }: FindingRequest): StoredFinding[] {
    return this.#log.readFindings(deviceId, limit, beforeId);
  }
}

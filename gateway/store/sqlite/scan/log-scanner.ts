/**
 * Reads parts of one lock's log over one connection, in the thread of scan-thread.ts or in the caller's. A lock's
 * uplinks are scattered over the whole log, so a part of an old log means hundreds of reads from the disk, for which
 * pings should not wait.
 */
import type { Database } from 'better-sqlite3';
import type { LogEntry } from '../../contract/log/log-entry.js';
import { stateChanges } from '../../log/state-changes.js';
import { LockUplinks } from '../log/lock-uplinks.js';
import { LogMerge } from '../log/log-merge.js';
import { LogReader } from '../log/log-reader.js';

/** The uplink and the event after which a part of a lock's log starts. */
export interface LogPlace {
  readonly afterUplinkId: number;
  readonly afterEventId: number;
}

/** A part of a lock's log to read, with what only the store's own memory knows. */
export interface LogPartRequest {
  readonly type: 'log';
  readonly deviceId: number;
  readonly start: LogPlace;
  /** The index of the log by lock is complete up to this id. */
  readonly indexedId: number;
  /** The id of the newest uplink that is committed. */
  readonly lastId: number;
  /** The lock's uplinks after `indexedId`, ascending. */
  readonly newerIds: readonly number[];
  /** Maximum number of entries that are read. */
  readonly limit: number;
  /** Whether uplinks that repeat the one before are left out (log/state-changes.ts). */
  readonly changesOnly: boolean;
}

export interface LogPart {
  readonly entries: readonly LogEntry[];
  /** How many entries were read. */
  readonly examined: number;
  /** Where the next part starts. */
  readonly end: LogPlace;
}

/** What the store's memory knows of one lock's newest uplinks, as of one request. */
class RequestedMemtable {
  indexedId = 0;
  lastId = 0;
  newerIds: readonly number[] = [];

  idsOf(_deviceId: number, afterId: number): number[] {
    return this.newerIds.filter((id) => id > afterId);
  }
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

  read({ deviceId, start, indexedId, lastId, newerIds, limit, changesOnly }: LogPartRequest): LogPart {
    Object.assign(this.#memtable, { indexedId, lastId, newerIds });
    const merge = new LogMerge(this.#log, this.#lockUplinks, deviceId, limit, start);
    if (changesOnly) {
      const { entries, examined } = merge.nextChanges();
      return { entries: stateChanges(entries), examined, end: merge.place };
    }
    const entries = merge.next();
    return { entries, examined: entries.length, end: merge.place };
  }
}

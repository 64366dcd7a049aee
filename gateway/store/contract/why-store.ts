/**
 * What `lockgate why`, which explains what a lock did and what followed, reads from the store (interfaces.md §4):
 * single rows by their public names, and a part of one lock's log. No method writes.
 */

import type { UplinkKey } from '../../../proto/power/judge/event.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { LogEntry, QuarantinedMessage, StoredFinding } from './log/log-entry.js';
import type { StoredUplink } from './log/stored-uplink.js';

/** A finding with its lock. */
export interface FindingOfLock extends StoredFinding {
  readonly deviceId: number;
  /** The lock's merchant at that time; null if an older version did not store it. */
  readonly merchantId: number | null;
  readonly mac: Mac;
}

/** A finding that a merchant may ask about, unless the lock has left the merchant since. */
export interface FindingOfMerchant extends StoredFinding {
  /** Whether the lock is in service and still the merchant's. */
  readonly isLockTheirs: boolean;
}

/** A quarantined message with its lock. */
export interface QuarantinedOfLock extends QuarantinedMessage {
  readonly deviceId: number;
  /** The lock's merchant at that time; null if an older version did not store it. */
  readonly merchantId: number | null;
}

/** Where to start reading a lock's log: after this uplink and this connection event. */
export interface LogStart {
  readonly afterUplinkId: number;
  readonly afterEventId: number;
  /** Whether older entries are left out. */
  readonly isCut: boolean;
}

/** A part of a lock's log without repetitions. */
export interface StateChanges {
  readonly entries: readonly LogEntry[];
  /** How many entries of the log were read for it. */
  readonly examined: number;
}

export interface WhyStore {
  /**
   * Returns the lock's uplinks with this boot and sequence (counters in each uplink), in the order of arrival; more
   * than one if contents differ.
   */
  findUplinks(deviceId: number, boot: number, sequence: number): Promise<StoredUplink[]>;
  findFinding(id: number): Promise<FindingOfLock | null>;
  /** Returns the newest findings of all locks, newest first; only those before `beforeId` if it is given. */
  readNewestFindings(limit: number, beforeId?: number): Promise<FindingOfLock[]>;
  /**
   * Returns the newest findings about locks that were the merchant's at that time, newest first; only those before
   * `beforeId` if it is given.
   */
  readFindingsOfMerchant(merchantId: number, limit: number, beforeId?: number): Promise<FindingOfMerchant[]>;
  /** Returns the findings about one uplink, in the order in which they were found. */
  findFindingsAbout(deviceId: number, key: UplinkKey): Promise<StoredFinding[]>;
  findQuarantined(id: number): Promise<QuarantinedOfLock | null>;
  /** Whether the URL's cursor passed the uplink unsent, while the URL was disabled. */
  isInGap(urlId: number, uplinkId: number): Promise<boolean>;
  /**
   * Finds where to start so that at most `limit` uplinks and `limit` connection events are read, up to `toUplinkId` and
   * `toMs`.
   */
  findLogStart(deviceId: number, toUplinkId: number, toMs: number, limit: number): Promise<LogStart>;
  /**
   * Reads the lock's log as Store.readLog does, from `start` on.
   *
   * @param limit the maximum number of entries in each chunk
   * @param throughUplinkId the last uplink that the caller needs: what comes after it may be left out, which saves
   *   reads of the disk. By default everything is needed.
   */
  readLogFrom(deviceId: number, start: LogStart, limit: number, throughUplinkId?: number): AsyncIterable<LogEntry[]>;
  /**
   * Reads the lock's log like {@link readLogFrom}, but may leave out uplinks of the lock that repeat the power settings
   * and the battery of the one before, and damaged ones.
   */
  readStateChangesFrom(deviceId: number, start: LogStart, throughUplinkId?: number): AsyncIterable<StateChanges>;
}

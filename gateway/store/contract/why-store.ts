/**
 * What `why` reads from the store (interfaces.md §4): single rows by the names that people use, and a part of one
 * lock's log. Nothing is written here.
 */

import type { UplinkKey } from '../../../proto/power/judge/event.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { LogEntry, QuarantinedMessage, StoredFinding } from './log-entry.js';
import type { StoredUplink } from './stored-uplink.js';

/** A finding with its lock. */
export interface FindingOfLock extends StoredFinding {
  readonly deviceId: number;
  readonly mac: Mac;
}

/** Where to start reading a lock's log: after one uplink and one event. */
export interface LogStart {
  readonly afterUplinkId: number;
  readonly afterEventId: number;
  /** Whether something older is left out. */
  readonly isCut: boolean;
}

export interface WhyStore {
  /** The lock's uplinks of this boot and sequence, in the order of arrival; more than one where contents differ. */
  findUplinks(deviceId: number, boot: number, sequence: number): Promise<StoredUplink[]>;
  findFinding(id: number): Promise<FindingOfLock | null>;
  /** The findings about one uplink, in the order in which they were found. */
  findFindingsOf(deviceId: number, name: UplinkKey): Promise<StoredFinding[]>;
  findQuarantined(id: number): Promise<(QuarantinedMessage & { readonly deviceId: number }) | null>;
  /** Whether the URL's cursor passed the uplink unsent, while the URL was disabled. */
  findGap(urlId: number, uplinkId: number): Promise<boolean>;
  /**
   * Where to start so that at most `most` uplinks and as many connection events are read, up to an uplink and a time.
   */
  findLogStart(deviceId: number, toUplinkId: number, toMs: number, most: number): Promise<LogStart>;
  /** As Store.readLog, from there on. */
  readLogFrom(deviceId: number, start: LogStart, limit: number): AsyncIterable<LogEntry[]>;
}

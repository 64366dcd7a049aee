/**
 * What `why` asks of the store (interfaces.md §4): single rows by what people call them, and a stretch of one lock's
 * log. Nothing is written here, and so every name begins with read or find (health/store.ts goes by that).
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

/** Where the reading of a lock's log begins: behind one uplink and one event. */
export interface LogStart {
  readonly afterUplinkId: number;
  readonly afterEventId: number;
  /** Whether something older is left out. */
  readonly isCut: boolean;
}

export interface WhyStore {
  /** The lock's uplinks of this boot and sequence, in the order of arrival: two contents of one name are two. */
  findUplinks(deviceId: number, boot: number, sequence: number): Promise<StoredUplink[]>;
  findFinding(id: number): Promise<FindingOfLock | null>;
  /** What stands against one uplink, in the order in which it was found. */
  findFindingsOf(deviceId: number, name: UplinkKey): Promise<StoredFinding[]>;
  findQuarantined(id: number): Promise<(QuarantinedMessage & { readonly deviceId: number }) | null>;
  /** Whether the URL's cursor passed the uplink unsent, while the URL was disabled. */
  findGap(urlId: number, uplinkId: number): Promise<boolean>;
  /**
   * Where to begin so that, up to an uplink and a time, at most `most` uplinks and as many events of connections are
   * read.
   */
  findLogStart(deviceId: number, toUplinkId: number, toMs: number, most: number): Promise<LogStart>;
  /** As Store.readLog, from there on. */
  readLogFrom(deviceId: number, start: LogStart, limit: number): AsyncIterable<LogEntry[]>;
}

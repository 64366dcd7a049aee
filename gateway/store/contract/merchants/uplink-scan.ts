/**
 * Scans: reads of many uplinks of which few may be wanted, such as a lock's thefts of a month. An engine runs them
 * apart from the event loop where it can, so that they do not delay pings.
 */
import type { LogPosition } from '../log/log-position.js';
import type { StoredUplink } from '../log/stored-uplink.js';

/** Which pings a scan returns; a member that is undefined allows all. */
export interface PingFilter {
  /** `cellular`, `gps`, `close_connection`. */
  readonly types?: readonly string[] | undefined;
  readonly reasons?: readonly string[] | undefined;
  /** When the lock made the ping, by its clock, ms since the epoch: from included, to excluded. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
}

interface ScanTerms {
  /** Whom the scan serves: merchants' scans take turns. */
  readonly merchantId: number;
  readonly filter: PingFilter;
  /** Maximum number of pings to return. */
  readonly limit: number;
  /** Maximum number of uplinks to examine. */
  readonly maxExamined: number;
  /** If it is aborted before the scan starts, the scan rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** A scan of the pings of a lock's current merchant, newest first in the order of arrival. */
export interface PingScan extends ScanTerms {
  readonly deviceId: number;
  /** Only uplinks before this id; all if undefined. */
  readonly beforeId: number | undefined;
}

/**
 * A scan of a merchant's events. A slot is the part of the log that one gateway writes; the events of each slot, and
 * those of each lock, come oldest first.
 */
export interface EventScan extends ScanTerms {
  /** Only uplinks after this position. */
  readonly after: LogPosition;
}

/** What a scan found. */
export interface ScannedUplinks {
  readonly pings: readonly StoredUplink[];
  /** How many uplinks were examined. */
  readonly examined: number;
  /** The uplink that was examined last, from which another scan goes on; null if none was examined. */
  readonly lastId: number | null;
  /** When that uplink was received, ms since the epoch; 0 if none was examined. */
  readonly lastReceivedAtMs: number;
  /** The latest time at which an examined uplink was received, ms since the epoch; 0 if none was examined. */
  readonly receivedToMs: number;
  /** Whether no uplink is left that could be returned. */
  readonly isAtEnd: boolean;
}

/** What a scan of events found. */
export interface ScannedEvents extends Omit<ScannedUplinks, 'lastId' | 'lastReceivedAtMs'> {
  /** The position after all examined uplinks, from which another scan goes on. */
  readonly end: LogPosition;
}

/** Scans, with the promises of store.ts. */
export interface ScanStore {
  pings(scan: PingScan): Promise<ScannedUplinks>;
  events(scan: EventScan): Promise<ScannedEvents>;
}

/**
 * All scans over one connection: of pings and events (uplink-scanner.ts), of one lock's log and findings
 * (log-scanner.ts), of deliveries (delivery-scanner.ts).
 */
import type { Database } from 'better-sqlite3';
import type { StoredFinding } from '../../contract/log/log-entry.js';
import type { ScannedUplinks } from '../../contract/merchants/uplink-scan.js';
import type { AttemptedCounts, DeliveryReading, PingCount } from '../../contract/webhook-store.js';
import type { AttemptFigures } from '../../contract/webhooks/attempt-figures.js';
import {
  type AttemptFiguresRequest,
  type CountRequest,
  type DeliveryRequest,
  DeliveryScanner,
} from './delivery-scanner.js';
import { type FindingRequest, type LogPart, type LogPartRequest, LogScanner } from './log-scanner.js';
import { type EventScanRequest, type PingScanRequest, UplinkScanner } from './uplink-scanner.js';

export type ScanRequest =
  | PingScanRequest
  | EventScanRequest
  | LogPartRequest
  | FindingRequest
  | DeliveryRequest
  | AttemptFiguresRequest
  | CountRequest;

/** What a scan returns, by the type of its request. */
export interface ScanResults {
  readonly pings: ScannedUplinks;
  readonly events: ScannedUplinks;
  readonly log: LogPart;
  readonly findings: StoredFinding[];
  readonly deliveries: DeliveryReading[];
  readonly 'attempt-figures': AttemptFigures;
  readonly 'count-attempted': AttemptedCounts;
  readonly 'count-pings': PingCount;
}

export type ScanResult<R extends ScanRequest = ScanRequest> = ScanResults[R['type']];

export class Scanner {
  readonly #uplinks: UplinkScanner;
  readonly #logs: LogScanner;
  readonly #deliveries: DeliveryScanner;

  /** `db` is a reading connection. */
  constructor(db: Database) {
    this.#uplinks = new UplinkScanner(db);
    this.#logs = new LogScanner(db);
    this.#deliveries = new DeliveryScanner(db);
  }

  scan<R extends ScanRequest>(request: R): ScanResult<R>;
  scan(request: ScanRequest): ScanResult {
    switch (request.type) {
      case 'pings':
      case 'events':
        return this.#uplinks.scan(request);
      case 'log':
        return this.#logs.read(request);
      case 'findings':
        return this.#logs.readFindings(request);
      case 'deliveries':
        return this.#deliveries.read(request);
      case 'attempt-figures':
        return this.#deliveries.sumUpNewestAttempts(request);
      case 'count-attempted':
        return this.#deliveries.countAttempted(request);
      case 'count-pings':
        return this.#deliveries.countPings(request);
    }
  }
}

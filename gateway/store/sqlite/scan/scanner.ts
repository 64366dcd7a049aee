/** All scans over one connection: of pings and events (uplink-scanner.ts), and of one lock's log (log-scanner.ts). */
import type { Database } from 'better-sqlite3';
import type { ScannedUplinks } from '../../contract/merchants/uplink-scan.js';
import { type LogPart, type LogPartRequest, LogScanner } from './log-scanner.js';
import { type EventScanRequest, type PingScanRequest, UplinkScanner } from './uplink-scanner.js';

export type ScanRequest = PingScanRequest | EventScanRequest | LogPartRequest;

/** What a scan returns. */
export type ScanResult<R extends ScanRequest = ScanRequest> = R extends LogPartRequest ? LogPart : ScannedUplinks;

export class Scanner {
  readonly #uplinks: UplinkScanner;
  readonly #logs: LogScanner;

  /** `db` is a reading connection. */
  constructor(db: Database) {
    this.#uplinks = new UplinkScanner(db);
    this.#logs = new LogScanner(db);
  }

  scan<R extends ScanRequest>(request: R): ScanResult<R>;
  scan(request: ScanRequest): ScanResult {
    return request.type === 'log' ? this.#logs.read(request) : this.#uplinks.scan(request);
  }
}

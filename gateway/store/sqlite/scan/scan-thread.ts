/** The main module of a thread that scans, on a separate read-only connection. One answer to each request. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import SqliteDatabase from 'better-sqlite3';
import { lowerPriority } from '../low-priority.js';
import { buffersOf, packLog } from './packed-log.js';
import type { ScanAnswer, ScanMessage } from './scan-worker.js';
import { Scanner } from './scanner.js';

/** The size of the connection's page cache. */
const CACHE_KIB = 16_000;

const port = parentPort as MessagePort;
const db = new SqliteDatabase(workerData as string, { readonly: true });
// A lock's uplinks are scattered over the log, so the upper pages of its indexes should stay in memory.
db.pragma(`cache_size = -${CACHE_KIB}`);
const scanner = new Scanner(db);

function answer({ number, request }: Exclude<ScanMessage, 'close'>): ScanAnswer {
  try {
    if (request.type !== 'log') return { number, scanned: scanner.scan(request) };
    const { entries, examined, end } = scanner.scan(request);
    return { number, packed: packLog(entries), examined, end };
  } catch (error) {
    const { code } = error as { readonly code?: string };
    return { number, error: error instanceof Error ? error.message : String(error), code };
  }
}

lowerPriority();
port.on('message', (sent: ScanMessage) => {
  if (sent !== 'close') {
    const answered = answer(sent);
    port.postMessage(answered, 'packed' in answered ? buffersOf(answered.packed) : []);
    return;
  }
  db.close();
  port.close();
});

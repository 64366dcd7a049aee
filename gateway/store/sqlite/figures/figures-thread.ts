/**
 * The main module of the thread that reads the store's figures, on a separate read-only connection. Sends one answer to
 * each request.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import SqliteDatabase from 'better-sqlite3';
import type { StoreFigures } from '../../contract/store-figures.js';
import { type FiguresAnswer, OPENED } from './figures-in-thread.js';
import { UrlBacklogs } from './url-backlogs.js';

const port = parentPort as MessagePort;
const db = new SqliteDatabase(workerData as string, { readonly: true });
const backlogs = new UrlBacklogs(db);
const locksInService = db.prepare('SELECT count(*) FROM device WHERE removed_at_ms IS NULL').pluck();
/** One transaction, so that all figures are as of one moment. */
const readAll = db.transaction(
  (): StoreFigures => ({ backlogs: backlogs.read(), locksInService: locksInService.get() as number }),
);

// Preparing the statements has read the schema, so the WAL and its index are open too.
port.postMessage(OPENED);

function answer(): FiguresAnswer {
  try {
    return { figures: readAll() };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

port.on('message', (request: 'read' | 'close') => {
  if (request === 'read') {
    port.postMessage(answer());
    return;
  }
  db.close();
  port.close();
});

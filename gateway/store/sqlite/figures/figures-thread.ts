/**
 * A thread that reads the store's figures, over a connection of its own that only reads. One answer to each question.
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

// Preparing has read the schema, so the WAL and its index are open too.
port.postMessage(OPENED);

function answer(): FiguresAnswer {
  try {
    return { figures: readAll() };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

port.on('message', (asked: 'read' | 'close') => {
  if (asked === 'read') {
    port.postMessage(answer());
    return;
  }
  db.close();
  port.close();
});

/**
 * The main module of the thread that counts locks and what waits for each webhook URL, on a separate read-only
 * connection. It answers each `read`; `close` ends the thread.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import SqliteDatabase from 'better-sqlite3';
import { lowerPriority } from '../low-priority.js';
import { prepareFigures } from './figures-count.js';
import { type FiguresAnswer, OPENED } from './figures-in-thread.js';

const port = parentPort as MessagePort;
lowerPriority();
const db = new SqliteDatabase(workerData as string, { readonly: true });
const readAll = prepareFigures(db);

// Preparing the statements has read the schema, for which SQLite opened the WAL and its index. From here on the thread
// opens no file, so it can count even when the process has no free file descriptor.
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

/**
 * The thread that writes the log, over a connection of its own: while it waits for the disk, the event loop takes and
 * judges what comes next. It does one request after the other, each in a transaction, and answers when that is on the
 * disk.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { openDurable } from './durable-file.js';
import { inTransaction } from './log-keeper.js';
import type { LogAnswer, LogError, LogRequest, LogThreadData } from './log-thread-message.js';
import { LogWriter } from './sqlite-log.js';

const port = parentPort as MessagePort;

function answer(error?: unknown): void {
  port.postMessage({ error: error === undefined ? undefined : sendable(error) } satisfies LogAnswer);
}

function sendable(error: unknown): LogError {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return { code: typeof code === 'string' ? code : undefined, message: String(message ?? error) };
}

function serve(): void {
  const db = openDurable((workerData as LogThreadData).file);
  const writer = new LogWriter(db);
  const carryOut = (request: LogRequest): void => {
    if (request.type === 'append') inTransaction(db, () => writer.append(request.commit));
    else if (request.type === 'progress') inTransaction(db, () => writer.recordProgress(request.progress));
    else {
      db.close();
      // With nobody to listen to, the thread ends.
      port.unref();
    }
  };
  port.on('message', (request: LogRequest) => {
    try {
      carryOut(request);
      answer();
    } catch (error) {
      answer(error);
    }
  });
}

try {
  serve();
  answer();
} catch (error) {
  answer(error);
}

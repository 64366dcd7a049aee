/**
 * The thread that writes the log, over a connection of its own: while it waits for the disk, the event loop takes and
 * judges what comes next. It does one request after the other, each in a transaction, and answers when that is on the
 * disk.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { openDurable } from './durable-file.js';
import type { LogAnswer, LogError, LogRequest, LogThreadData } from './log-thread-message.js';
import { LogWriter } from './sqlite-log.js';
import { WalEmptier } from './wal-emptier.js';

const port = parentPort as MessagePort;

function answer(given: LogAnswer, uplinks?: ArrayBuffer): void {
  port.postMessage(given, uplinks === undefined ? [] : [uplinks]);
}

function sendable(error: unknown): LogError {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return { code: typeof code === 'string' ? code : undefined, message: String(message ?? error) };
}

function serve(): void {
  const { file, runSize } = workerData as LogThreadData;
  const db = openDurable(file);
  const writer = new LogWriter(db, runSize);
  const emptier = new WalEmptier(db);
  const carryOut = (request: LogRequest): void => {
    if (request.type === 'append') writer.append(request.commit);
    else if (request.type === 'progress') writer.recordProgress(request.progress);
    else if (request.type === 'settle') writer.settle();
    else if (request.type === 'close') {
      db.close();
      // With nobody to listen to, the thread ends.
      port.unref();
    }
  };
  port.on('message', (request: LogRequest) => {
    try {
      emptier.check();
      carryOut(request);
    } catch (error) {
      answer({ error: sendable(error) });
      return;
    }
    const uplinks = request.type === 'append' ? request.commit.uplinks : undefined;
    answer({ uplinks, mark: writer.tail.mark }, uplinks);
    // Who asked for rest does something that SQLite refuses beside a copy.
    if (db.open && request.type !== 'rest') emptier.copyWhereLong();
  });
  answer({ mark: writer.tail.mark });
}

try {
  serve();
} catch (error) {
  answer({ error: sendable(error) });
}

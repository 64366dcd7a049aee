/**
 * The main module of the thread that checkpoints the write-ahead log (WAL): it copies pages from the WAL into the
 * store's file, without delaying commits, and writes nothing else. Its connection is durable too: the file is on the
 * disk before SQLite overwrites that part of the WAL.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { openDurable } from '../durable-file.js';
import { lowerPriority } from '../low-priority.js';
import type { LogError } from './log-thread-message.js';
import type { CheckpointAnswer, CheckpointRequest, WalThreadData } from './wal-thread-message.js';

const port = parentPort as MessagePort;
const { file, checkpointing } = workerData as WalThreadData;
let db: Database | undefined;

function checkpoint(): CheckpointAnswer {
  try {
    db ??= openDurable(file);
    db.pragma('wal_checkpoint(PASSIVE)');
    return {};
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    const failure: LogError = { code, message };
    return { error: failure };
  }
}

lowerPriority();
port.on('message', (request: CheckpointRequest) => {
  if (request === 'close') {
    db?.close();
    port.close();
    return;
  }
  const answer = checkpoint();
  Atomics.store(checkpointing, 0, 0);
  Atomics.notify(checkpointing, 0);
  port.postMessage(answer);
});

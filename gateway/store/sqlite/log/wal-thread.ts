/**
 * The thread that checkpoints the WAL: it copies as much into the file as no reader needs, and no commit waits for it.
 * Its connection writes nothing else. It is durable like all that write: the file is on the disk before SQLite
 * overwrites that part of the WAL.
 */
import { setPriority } from 'node:os';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import type { Database } from 'better-sqlite3';
import { openDurable } from '../durable-file.js';
import type { LogError } from './log-thread-message.js';
import type { CheckpointAnswer, CheckpointRequest, WalThreadData } from './wal-thread-message.js';

const port = parentPort as MessagePort;
const { file, checkpointing } = workerData as WalThreadData;
let db: Database | undefined;

/** Linux has a priority for each thread: with few processors, those that answer pings go first. */
const NICE = 10;

function copied(): CheckpointAnswer {
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

try {
  if (process.platform === 'linux') setPriority(NICE);
} catch {
  // Where a system forbids that, checkpoints run all the same.
}
port.on('message', (request: CheckpointRequest) => {
  if (request === 'close') {
    db?.close();
    port.close();
    return;
  }
  const answer = copied();
  Atomics.store(checkpointing, 0, 0);
  Atomics.notify(checkpointing, 0);
  port.postMessage(answer);
});

/**
 * The main module of a thread that checks or copies a store. Either task reads the whole file, while the caller's
 * thread receives pings or shows progress.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { LockgateError } from '../../../../proto/errors.js';
import { copyDatabase } from '../backup/copy.js';
import { checkDatabase } from '../check/check.js';
import type { UpkeepAnswer, UpkeepTask } from './upkeep-message.js';

const port = parentPort as MessagePort;

function send(answer: UpkeepAnswer): void {
  port.postMessage(answer);
}

async function runTask(task: UpkeepTask): Promise<UpkeepAnswer> {
  if (task.type === 'check') {
    const report = (check: string, done: number): void => send({ type: 'progress', task: check, done, total: null });
    return { type: 'checked', report: await checkDatabase(task.file, report) };
  }
  const report = (done: number, total: number): void => send({ type: 'progress', task: 'pages', done, total });
  return { type: 'copied', ...(await copyDatabase(task.from, task.to, report)) };
}

async function main(): Promise<void> {
  try {
    send(await runTask(workerData as UpkeepTask));
  } catch (error) {
    const code = error instanceof LockgateError ? error.code : null;
    send({ type: 'failed', code, message: error instanceof Error ? error.message : String(error) });
  }
}

// Without a top-level await: tests run this code from a bundle, a CommonJS file, which can’t have one.
void main();

/** Checks or copies a store in a separate thread (upkeep-thread.ts). */
import { Worker } from 'node:worker_threads';
import { LockgateError } from '../../../../proto/errors.js';
import type { CheckReport } from '../../contract/check-report.js';
import type { BlockSums } from '../../file-sums.js';
import type { UpkeepAnswer, UpkeepTask } from './upkeep-message.js';

/** Reports progress: the check's name or "pages", how many rows or pages are done, and their total, null if unknown. */
export type ReportUpkeep = (task: string, done: number, total: number | null) => void;

/** Checks a store's file, as `checkDatabase` does. */
export async function checkInThread(file: string, report: ReportUpkeep): Promise<CheckReport> {
  const answer = await runInThread({ type: 'check', file }, report);
  if (answer.type !== 'checked') throw new Error(`the thread answered ${answer.type}`);
  return answer.report;
}

/** Copies a store, as `copyDatabase` does. An abort stops the thread at once and leaves a partial copy. */
export async function copyInThread(
  from: string,
  to: string,
  report: ReportUpkeep = () => undefined,
  signal?: AbortSignal,
): Promise<BlockSums> {
  const answer = await runInThread({ type: 'copy', from, to }, report, signal);
  if (answer.type !== 'copied') throw new Error(`the thread answered ${answer.type}`);
  return answer;
}

function runInThread(task: UpkeepTask, report: ReportUpkeep, signal?: AbortSignal): Promise<UpkeepAnswer> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL('./upkeep-thread.js', import.meta.url), { workerData: task });
    const abort = (): void => void thread.terminate();
    if (signal?.aborted === true) abort();
    signal?.addEventListener('abort', abort, { once: true });
    thread.on('message', (answer: UpkeepAnswer) => {
      if (answer.type === 'progress') report(answer.task, answer.done, answer.total);
      else if (answer.type !== 'failed') resolve(answer);
      else reject(answer.code === null ? new Error(answer.message) : new LockgateError(answer.code, answer.message));
    });
    thread.on('error', reject);
    thread.on('exit', () => {
      signal?.removeEventListener('abort', abort);
      // Has no effect if the promise is already settled by an answer.
      reject(new LockgateError('stopping', 'it was stopped before it was done'));
    });
  });
}

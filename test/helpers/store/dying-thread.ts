/**
 * Preloaded into a process, makes each of its worker threads die of an error once the file named in
 * LOCKGATE_DYING_THREAD exists. Simulates a bug or a lack of memory in the log thread, in which the gateway stores
 * uplinks.
 */
import { existsSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const SWITCH = 'LOCKGATE_DYING_THREAD';
const CHECK_INTERVAL_MS = 20;

/** Returns the environment for a process whose threads die once `file` exists. */
export function dyingThread(file: string): NodeJS.ProcessEnv {
  return { [SWITCH]: file, NODE_OPTIONS: `--import ${import.meta.url}` };
}

const file = process.env[SWITCH];
if (file !== undefined && !isMainThread)
  setInterval(() => {
    if (existsSync(file)) throw new Error('the test makes this thread die');
  }, CHECK_INTERVAL_MS).unref();

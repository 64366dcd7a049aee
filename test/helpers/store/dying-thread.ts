/**
 * Preloaded into a process, it lets each thread of it beside the main one die of an error as soon as the file named in
 * LOCKGATE_DYING_THREAD is there: what a fault of ours or no memory does to the thread that writes the log.
 */
import { existsSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

const SWITCH = 'LOCKGATE_DYING_THREAD';
const LOOKED_EVERY_MS = 20;

/** With what a process is to be started whose threads die when this file is there. */
export function dyingThread(file: string): NodeJS.ProcessEnv {
  return { [SWITCH]: file, NODE_OPTIONS: `--import ${import.meta.url}` };
}

const file = process.env[SWITCH];
if (file !== undefined && !isMainThread)
  setInterval(() => {
    if (existsSync(file)) throw new Error('the thread was told to die');
  }, LOOKED_EVERY_MS).unref();

// A folder in memory for the temporary files of a run of tests. Each commit of a store to a disk costs 0.1 ms of the
// system's CPU time and some ms of waiting. No test of such a run depends on a disk: a killed process loses nothing in
// memory either, and power loss is simulated (helpers/durability/power-loss.ts). The long tests have a disk.
import { chmodSync, existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';

/** Linux's file system in memory. */
const MEMORY = '/dev/shm';
/** The free bytes that it must have, many times what tests have at a time. A container's often has 64 MiB in all. */
const MIN_FREE = 4 * 1024 ** 3;

/**
 * Makes the folder, deletes it when this process exits, and makes it the place of temporary files for processes that
 * this one starts. Does nothing if TMPDIR names a place already, or if there is too little memory.
 */
export function keepTemporaryFilesInMemory() {
  if (process.env.TMPDIR !== undefined || !hasMemory()) return;
  const folder = mkdtempSync(`${MEMORY}/lockgate-tests-`);
  // As /tmp: PostgreSQL, and what tests start as other users, make their files there.
  chmodSync(folder, 0o1777);
  process.env.TMPDIR = folder;
  // Retries: after Ctrl-C a PostgreSQL server may still be ending.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
}

function hasMemory() {
  if (!existsSync(MEMORY)) return false;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= MIN_FREE;
}

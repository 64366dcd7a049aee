/** Temporary folders for tests, and the type of what ends them: a test. */
import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Something that calls registered functions at its end, such as a tap test. */
export interface Teardown {
  teardown(undo: () => void | Promise<void>): void;
}

/** Linux's file system in memory. */
const MEMORY = '/dev/shm';
/** The free bytes that it must have; a container's often has 64 MiB in all. */
const MIN_FREE_IN_MEMORY = 1024 ** 3;

/** A new empty folder, which is deleted after the test. */
export function tempFolder(test: Teardown): string {
  return newFolder(test, tmpdir());
}

/**
 * A new empty folder for data that need not be on a disk, since the test ends no process and cuts no power: in memory
 * where that is possible, because each commit to a disk costs 0.1 ms of CPU time and some ms of waiting. It is deleted
 * after the test.
 */
export function memoryFolder(test: Teardown): string {
  return newFolder(test, hasMemory() ? MEMORY : tmpdir());
}

function hasMemory(): boolean {
  if (!existsSync(MEMORY)) return false;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= MIN_FREE_IN_MEMORY;
}

function newFolder(test: Teardown, parent: string): string {
  const folder = mkdtempSync(path.join(parent, 'lockgate-test-'));
  test.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

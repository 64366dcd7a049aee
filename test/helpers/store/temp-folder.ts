/** Temporary folders for tests, and the type of what ends them: a test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Something that calls registered functions at its end, such as a tap test. */
export interface Teardown {
  teardown(undo: () => void | Promise<void>): void;
}

/** A new empty folder, which is deleted after the test. */
export function tempFolder(test: Teardown): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'lockgate-test-'));
  test.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

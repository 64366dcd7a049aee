/**
 * Makes folders for temporary files. Where the system wants such files (`os.tmpdir()`, which the variable TMPDIR sets),
 * a user may have no right to write, or the disk may be full, which is no bug of the program.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { LockgateError } from '../proto/errors.js';

/**
 * Makes an empty folder that only this user can read. The caller removes it.
 *
 * @param purpose the end of the folder's name but for some random characters, such as `check`
 * @throws LockgateError `input-tmpdir` if the system's folder for temporary files can't be written to
 */
export function makeTemporaryFolder(purpose: string): string {
  try {
    return mkdtempSync(path.join(tmpdir(), `lockgate-${purpose}-`));
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
    throw new LockgateError(
      'input-tmpdir',
      `can't write temporary files to ${tmpdir()} (${why}): expected a folder with room that this user may write to; ` +
        'the variable TMPDIR names another',
      { cause: error },
    );
  }
}

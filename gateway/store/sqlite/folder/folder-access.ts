/**
 * Creates the data folder, checks that this process can write to it, and makes its files readable only by their owner
 * (quality.md §2, "files of the data folder").
 */
import { accessSync, chmodSync, constants, existsSync, lstatSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { systemClock } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';

/** The name of the store's file. */
export const STORE_NAME = 'lockgate.sqlite';

/** Errors of creating a folder that mean a wrong path, not a failing disk. */
const BAD_PATH_CODES = new Set(['EEXIST', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS', 'ENOENT', 'ENAMETOOLONG', 'ELOOP']);

/** Sentences for errors of a folder or a file that this user may not use. */
const ACCESS_ERRORS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'it is on a disk that is read-only',
};

/** The permission bits of the group and of others. */
const GROUP_AND_OTHERS_BITS = 0o077;

/**
 * Secret files (`key.next` is there while the key is changed): if other users can read them, they are refused
 * (secret-file.ts); their modes are not corrected.
 */
const SECRETS = new Set(['key', 'key.next', 'operator-token']);

/** Other files of lockgate in the data folder, by name or by the start of the name. */
const OTHER_FILES = new Set(['gateway.lock', 'gateway.lock-journal', 'operator-address', 'demo']);
const NAME_PREFIXES = [STORE_NAME, 'backup.part'];

/**
 * Creates the folder if it doesn't exist (mode 700), and checks that the folder and its files can be read and written.
 *
 * @throws LockgateError `input-data` if the folder can't be created, `data-unwritable` if this user may not write to it
 */
export function openFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    const { code = (error as Error).message } = error as NodeJS.ErrnoException;
    // A full or failing disk is not a wrong setting.
    if (!BAD_PATH_CODES.has(code)) throw error;
    throw new LockgateError('input-data', `the data folder ${folder} can't be created: ${code}`);
  }
  const { R_OK, W_OK, X_OK } = constants;
  requireAccess(folder, `the data folder ${folder}`, R_OK | W_OK | X_OK);
  for (const name of lockgateFiles(folder))
    requireAccess(path.join(folder, name), path.join(folder, name), R_OK | W_OK);
}

/** @param shownName how the error names the file @throws LockgateError `data-unwritable` */
function requireAccess(file: string, shownName: string, access: number): void {
  try {
    accessSync(file, access);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    // The file was removed since it was listed.
    if (code === 'ENOENT') return;
    const why = ACCESS_ERRORS[code];
    if (why === undefined) throw error;
    throw new LockgateError('data-unwritable', `${shownName} can't be used: ${why}`, { cause: error });
  }
}

/**
 * Removes the rights of the group and of others from lockgate's files. Windows has no such modes.
 *
 * @returns a sentence that names the corrected files; null if there were none
 * @throws LockgateError `data-open` if a file belongs to another user, so that its mode can't be changed
 */
export function correctModes(folder: string): string | null {
  if (process.platform === 'win32') return null;
  const corrected: string[] = [];
  for (const name of lockgateFiles(folder)) {
    const file = path.join(folder, name);
    const stat = lstatSync(file, { throwIfNoEntry: false });
    if (stat === undefined || !(stat.isFile() || stat.isDirectory()) || (stat.mode & GROUP_AND_OTHERS_BITS) === 0)
      continue;
    try {
      chmodSync(file, stat.isDirectory() ? 0o700 : 0o600);
    } catch (error) {
      const sentence = `${file} can be read by others (mode ${(stat.mode & 0o777).toString(8)}), and has another owner`;
      throw new LockgateError('data-open', `${sentence}: have its owner chmod 600 it`, { cause: error });
    }
    corrected.push(name);
  }
  if (corrected.length === 0) return null;
  const files = corrected.length === 1 ? '1 file' : `${corrected.length} files`;
  return `${files} of ${folder} could be read by others and can't be any more (now mode 600): ${corrected.join(', ')}`;
}

/** The names of lockgate's files in the folder, except for secrets. */
function lockgateFiles(folder: string): string[] {
  return readdirSync(folder).filter((name) => {
    return !SECRETS.has(name) && (OTHER_FILES.has(name) || NAME_PREFIXES.some((prefix) => name.startsWith(prefix)));
  });
}

/** Returns a name that no file has yet, for a file that is evidence of damage: `FILE.failed.TIME`, in UTC. */
export function evidenceName(file: string): string {
  // Such as 2026-11-20T06-00-00Z.
  const time = new Date(systemClock.now()).toISOString().replaceAll(':', '-').replace(/\.\d+/, '');
  const name = `${file}.failed.${time}`;
  let freeName = name;
  for (let number = 2; existsSync(freeName); number += 1) freeName = `${name}-${number}`;
  return freeName;
}

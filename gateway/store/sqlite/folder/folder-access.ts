/**
 * Access to the data folder: it can be created and written to, and only its owner can read its files (quality.md §2,
 * "files of the data folder").
 */
import { accessSync, chmodSync, constants, existsSync, lstatSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { systemClock } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';

/** The name of the store's file. */
export const STORE_NAME = 'lockgate.sqlite';

/** Errors of a path where no folder can be created. */
const NO_FOLDER = new Set(['EEXIST', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS', 'ENOENT', 'ENAMETOOLONG', 'ELOOP']);

/** Errors of a folder or a file that this user may not use, as sentences. */
const REFUSALS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write there',
  EPERM: 'this user may not write there',
  EROFS: 'it is on a disk that is read-only',
};

/** The permission bits of the group and of others. */
const FOR_OTHERS = 0o077;

/** Files that are secrets: where others can read them, they are refused (secret-file.ts) instead of closed. */
const SECRETS = new Set(['key', 'key.next', 'operator-token']);

/** Other files of lockgate in its folder, apart from those whose names begin with the store's. */
const OTHER_FILES = new Set(['gateway.lock', 'gateway.lock-journal', 'operator-address', 'demo']);
const BEGINNINGS = [STORE_NAME, 'backup.part'];

/**
 * Creates the folder where it isn't there (mode 700), and checks that it and its files can be read and written.
 *
 * @throws LockgateError `input-data` where there can't be such a folder, `data-unwritable` where it is not ours
 */
export function openFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    const { code = (error as Error).message } = error as NodeJS.ErrnoException;
    // A full or failing disk is not a wrong setting.
    if (!NO_FOLDER.has(code)) throw error;
    throw new LockgateError('input-data', `the data folder ${folder} can't be made: ${code}`);
  }
  const { R_OK, W_OK, X_OK } = constants;
  want(folder, `the data folder ${folder}`, R_OK | W_OK | X_OK);
  for (const name of ourFiles(folder)) want(path.join(folder, name), path.join(folder, name), R_OK | W_OK);
}

function want(file: string, what: string, access: number): void {
  try {
    accessSync(file, access);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    // Removed since it was listed.
    if (code === 'ENOENT') return;
    const why = REFUSALS[code];
    if (why === undefined) throw error;
    throw new LockgateError('data-unwritable', `${what} can't be used: ${why}`, { cause: error });
  }
}

/**
 * Takes away the rights of the group and of others to our files. Windows has no such modes.
 *
 * @returns a sentence that names them; null where there were none
 * @throws LockgateError `data-open` where a file belongs to another user, so that we can't
 */
export function closeToOthers(folder: string): string | null {
  if (process.platform === 'win32') return null;
  const mended: string[] = [];
  for (const name of ourFiles(folder)) {
    const file = path.join(folder, name);
    const stat = lstatSync(file, { throwIfNoEntry: false });
    if (stat === undefined || !(stat.isFile() || stat.isDirectory()) || (stat.mode & FOR_OTHERS) === 0) continue;
    try {
      chmodSync(file, stat.isDirectory() ? 0o700 : 0o600);
    } catch (error) {
      const sentence = `${file} can be read by others (mode ${(stat.mode & 0o777).toString(8)}), and is another user's`;
      throw new LockgateError('data-open', `${sentence}: have its owner chmod 600 it`, { cause: error });
    }
    mended.push(name);
  }
  if (mended.length === 0) return null;
  const files = mended.length === 1 ? '1 file' : `${mended.length} files`;
  return `${files} of ${folder} could be read by others and can't be any more (now mode 600): ${mended.join(', ')}`;
}

function ourFiles(folder: string): string[] {
  return readdirSync(folder).filter((name) => {
    return !SECRETS.has(name) && (OTHER_FILES.has(name) || BEGINNINGS.some((beginning) => name.startsWith(beginning)));
  });
}

/** A free name for a file that is evidence of damage: `FILE.failed.TIME`, in UTC. */
export function evidenceName(file: string): string {
  const time = new Date(systemClock.now()).toISOString().replaceAll(':', '-').replace(/\.\d+/, '');
  const name = `${file}.failed.${time}`;
  let free = name;
  for (let number = 2; existsSync(free); number += 1) free = `${name}-${number}`;
  return free;
}

/**
 * Reads, creates, replaces and deletes files that hold a secret. A file is created completely and durably or not at
 * all, and replaces another file atomically.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { LockgateError } from '../../proto/errors.js';

/**
 * Reads a secret's file, and creates it first (mode 600) if it is missing. Creation is durable: a key lost in a power
 * cut would make everything hashed or encrypted with it useless.
 *
 * @returns the text without surrounding white space
 */
export function readOrMakeSecretFile(file: string, make: () => string): string {
  if (!existsSync(file)) createDurably(file, `${make()}\n`);
  return readSecretFile(file);
}

/**
 * Returns the text of a secret's file, without surrounding white space.
 *
 * @throws LockgateError `input-secret-file` if other users may read or write the file, `secret-file` if it can't be
 * read
 */
export function readSecretFile(file: string): string {
  return withDiskErrors(file, () => {
    refuseReadableByOthers(file);
    return readFileSync(file, 'utf8').trim();
  });
}

/**
 * Mode bits that a secret's file must not have. If another user owns the file: writing and executing for the group, and
 * all for others; if this user owns it: all for both.
 */
const FORBIDDEN_IF_FOREIGN = 0o037;
const FORBIDDEN_IF_OWN = 0o077;

/**
 * Refuses a secret that other users can read. The mode is not corrected: somebody may have read the secret already, and
 * its owner must decide what to do. A file of another owner (root's, as containers mount them) may be readable by this
 * process's group, since this process could not read it otherwise. Windows has no such modes.
 */
function refuseReadableByOthers(file: string): void {
  if (process.platform === 'win32') return;
  const stat = statSync(file);
  const { mode, uid } = stat;
  // A path that is not a file fails when it is read.
  if (!stat.isFile() || (mode & (uid === process.geteuid?.() ? FORBIDDEN_IF_OWN : FORBIDDEN_IF_FOREIGN)) === 0) return;
  throw new LockgateError(
    'input-secret-file',
    `other users may read ${file} (mode ${(mode & 0o777).toString(8)}): chmod 600 it, and replace the secret ` +
      'if another user may have read it',
  );
}

/** Creates or replaces a secret's file (mode 600), durably. */
export function writeSecretFile(file: string, text: string): void {
  createDurably(file, `${text}\n`);
}

/** Moves a secret's file to `to` atomically, replacing the file there; if `to` is a link, its target. */
export function moveSecretFile(from: string, to: string): void {
  const target = existsSync(to) ? realpathSync(to) : to;
  withDiskErrors(target, () => {
    try {
      renameSync(from, target);
    } catch (error) {
      // A file that is a mount point, as in containers, can only be overwritten; `from` stays until that is done.
      if (!['EBUSY', 'EXDEV'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
      writeDurably(target, 'r+', readFileSync(from));
      rmSync(from);
    }
  });
  for (const folder of new Set([path.dirname(target), path.dirname(from)])) syncFolder(folder);
}

/** Copies a secret's file to the path `copyFile`, with a number appended if another file has that path. */
export function copySecretFile(file: string, copyFile: string): void {
  const bytes = withDiskErrors(file, () => readFileSync(file));
  let copy = copyFile;
  for (let number = 2; existsSync(copy) && !readFileSync(copy).equals(bytes); number += 1)
    copy = `${copyFile}-${number}`;
  createDurably(copy, bytes);
}

/** Deletes a secret's file, durably. */
export function deleteSecretFile(file: string): void {
  rmSync(file, { force: true });
  syncFolder(path.dirname(file));
}

function createDurably(file: string, content: string | Buffer): void {
  withDiskErrors(file, () => {
    // A draft that a killed process left is useless.
    const draft = `${file}.new`;
    rmSync(draft, { force: true });
    try {
      writeDurably(draft, 'wx', content);
    } catch (error) {
      rmSync(draft, { force: true });
      throw error;
    }
    // This process has locked the data folder, so no other process creates the file at the same time.
    renameSync(draft, file);
    syncFolder(path.dirname(file));
  });
}

function writeDurably(file: string, flags: 'wx' | 'r+', content: string | Buffer): void {
  const handle = openSync(file, flags, 0o600);
  try {
    ftruncateSync(handle);
    writeFileSync(handle, content);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Runs `work`; converts disk errors into a LockgateError. @throws LockgateError `secret-file` */
function withDiskErrors<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!DISK_ERROR_CODES.has(code)) throw error;
    throw new LockgateError('secret-file', `${file} can't be read or written: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

const DISK_ERROR_CODES = new Set(['EACCES', 'EPERM', 'EROFS', 'EISDIR', 'ENOSPC', 'EDQUOT', 'EBUSY']);

/** Makes changed names in a folder durable (fsync). Windows does not need it. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

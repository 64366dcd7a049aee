/**
 * Files that hold a secret. Each is created completely and durably or not at all, and replaces another atomically.
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
 * Reads a secret's file, creating it (mode 600) where it is missing, completely and durably or not at all: a key that a
 * power cut left empty would make everything that is hashed and sealed with it useless.
 *
 * @returns the text without the white space around it
 */
export function readOrMakeSecretFile(file: string, make: () => string): string {
  if (!existsSync(file)) makeDurably(file, `${make()}\n`);
  return readSecretFile(file);
}

/**
 * The text of a secret's file, without the white space around it.
 *
 * @throws LockgateError `input-secret-file` where others than its owner may read or write it, `secret-file` where it
 * can't be read
 */
export function readSecretFile(file: string): string {
  return onDisk(file, () => {
    refuseLoose(file);
    return readFileSync(file, 'utf8').trim();
  });
}

/** Mode bits that a foreign owner's file must not have (all of others, write and execute of the group); and our own. */
const FOR_OTHERS = 0o037;
const FOR_GROUP_AND_OTHERS = 0o077;

/**
 * Refuses a secret that others can read. Its mode is not corrected: somebody may have read it already, which its owner
 * has to consider. A file of another owner (root's, as containers mount them) may be readable by our group, since we
 * could not read it otherwise. Windows has no such modes.
 */
function refuseLoose(file: string): void {
  if (process.platform === 'win32') return;
  const stat = statSync(file);
  const { mode, uid } = stat;
  // What is not a file is reported when it is read.
  if (!stat.isFile() || (mode & (uid === process.geteuid?.() ? FOR_GROUP_AND_OTHERS : FOR_OTHERS)) === 0) return;
  throw new LockgateError(
    'input-secret-file',
    `${file} is open to others (mode ${(mode & 0o777).toString(8)}): chmod 600 it, and if one of them may have read ` +
      'it, replace what it holds',
  );
}

/** Creates or replaces a secret's file (mode 600), durably. */
export function makeSecretFile(file: string, text: string): void {
  makeDurably(file, `${text}\n`);
}

/** Replaces one secret's file by another atomically; where `to` is a link, its target. */
export function moveSecretFile(from: string, to: string): void {
  const place = existsSync(to) ? realpathSync(to) : to;
  onDisk(place, () => {
    try {
      renameSync(from, place);
    } catch (error) {
      // A file that is a mount of its own, as in containers, can only be overwritten; `from` stays complete until then.
      if (!['EBUSY', 'EXDEV'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
      writeDurably(place, 'r+', readFileSync(from));
      rmSync(from);
    }
  });
  for (const folder of new Set([path.dirname(place), path.dirname(from)])) syncFolder(folder);
}

/** Copies a secret's file to `name`, or with a number appended where that name is taken by something else. */
export function keepSecretFile(file: string, name: string): void {
  const bytes = onDisk(file, () => readFileSync(file));
  let copy = name;
  for (let number = 2; existsSync(copy) && !readFileSync(copy).equals(bytes); number += 1) copy = `${name}-${number}`;
  makeDurably(copy, bytes);
}

/** Deletes a secret's file, durably. */
export function dropSecretFile(file: string): void {
  rmSync(file, { force: true });
  syncFolder(path.dirname(file));
}

function makeDurably(file: string, content: string | Buffer): void {
  onDisk(file, () => {
    // A leftover of a start that was killed here is useless.
    const draft = `${file}.new`;
    rmSync(draft, { force: true });
    try {
      writeDurably(draft, 'wx', content);
    } catch (error) {
      rmSync(draft, { force: true });
      throw error;
    }
    // This process holds the data folder's lock, so nobody else creates it at the same time.
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

/** Runs `work`; turns errors of the disk into a sentence. @throws LockgateError `secret-file` */
function onDisk<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!REFUSALS.has(code)) throw error;
    throw new LockgateError('secret-file', `${file} can't be read or put in its place: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

const REFUSALS = new Set(['EACCES', 'EPERM', 'EROFS', 'EISDIR', 'ENOSPC', 'EDQUOT', 'EBUSY']);

/** Makes a new name in a folder durable. Windows does not need that. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/**
 * Files with a secret: each is made whole and on the disk, or not at all, and takes another's place in one step.
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
 * Reads a secret's file, making it (mode 600) where it isn't there. It is made whole and on the disk, or not at all:
 * what the store keeps on the disk is hashed and sealed with the key, and a key that a power cut left empty would take
 * all of it along.
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

/** What others than the owner and the group may do, and what the group may do beside reading. */
const FOR_OTHERS = 0o037;
const FOR_GROUP_AND_OTHERS = 0o077;

/**
 * A secret that others can read is none. It is refused, not tightened: somebody may have read it already, which its
 * owner has to think about. A file of another owner's (root's, as containers mount them) may be readable by our group,
 * since we could not read it otherwise. Windows has no such modes.
 */
function refuseLoose(file: string): void {
  if (process.platform === 'win32') return;
  const stat = statSync(file);
  const { mode, uid } = stat;
  // What is no file is told of when it is read.
  if (!stat.isFile() || (mode & (uid === process.geteuid?.() ? FOR_GROUP_AND_OTHERS : FOR_OTHERS)) === 0) return;
  throw new LockgateError(
    'input-secret-file',
    `${file} is open to others (mode ${(mode & 0o777).toString(8)}): chmod 600 it, and if one of them may have read ` +
      'it, replace what it holds',
  );
}

/** Makes a secret's file (mode 600); it is on the disk when this returns. What was there is replaced. */
export function makeSecretFile(file: string, text: string): void {
  makeDurably(file, `${text}\n`);
}

/** Puts one secret's file in the place of another, in one step; where the place is a link, of what it leads to. */
export function moveSecretFile(from: string, to: string): void {
  const place = existsSync(to) ? realpathSync(to) : to;
  onDisk(place, () => {
    try {
      renameSync(from, place);
    } catch (error) {
      // A file that is mounted by itself, as containers do, can only be written over; `from` is whole until it is.
      if (!['EBUSY', 'EXDEV'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
      writeDurably(place, 'r+', readFileSync(from));
      rmSync(from);
    }
  });
  for (const folder of new Set([path.dirname(place), path.dirname(from)])) syncFolder(folder);
}

/** Keeps a copy of a secret's file, under the first name with `name` and a number that holds nothing else. */
export function keepSecretFile(file: string, name: string): void {
  const bytes = onDisk(file, () => readFileSync(file));
  let copy = name;
  for (let number = 2; existsSync(copy) && !readFileSync(copy).equals(bytes); number += 1) copy = `${name}-${number}`;
  makeDurably(copy, bytes);
}

/** Takes a secret's file away, for good. */
export function dropSecretFile(file: string): void {
  rmSync(file, { force: true });
  syncFolder(path.dirname(file));
}

function makeDurably(file: string, content: string | Buffer): void {
  onDisk(file, () => {
    // One that a start left behind when it was killed here is of no use to anybody.
    const draft = `${file}.new`;
    rmSync(draft, { force: true });
    try {
      writeDurably(draft, 'wx', content);
    } catch (error) {
      rmSync(draft, { force: true });
      throw error;
    }
    // The data folder is held for this process: nobody else makes it at the same time.
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

/** What the disk doesn't allow, as a sentence. @throws LockgateError `secret-file` */
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

/** Makes a new name in a folder durable. Windows has no such thing, and needs none. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

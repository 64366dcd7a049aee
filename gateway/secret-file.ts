/**
 * A file with a secret of the data folder, made once and never changed.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Reads a secret's file, making it (mode 600) where it isn't there. It is made whole and on the disk, or not at all:
 * what the store keeps on the disk is hashed and sealed with the key, and a key that a power cut left empty would take
 * all of it along.
 *
 * @returns the text without the white space around it
 */
export function readOrMakeSecretFile(file: string, make: () => string): string {
  if (!existsSync(file)) makeDurably(file, `${make()}\n`);
  return readFileSync(file, 'utf8').trim();
}

function makeDurably(file: string, text: string): void {
  // One that a start left behind when it was killed here is of no use to anybody.
  const draft = `${file}.new`;
  rmSync(draft, { force: true });
  const handle = openSync(draft, 'wx', 0o600);
  try {
    writeFileSync(handle, text);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  // It goes over nothing: there was no such file, and the data folder is held for this process.
  renameSync(draft, file);
  syncFolder(path.dirname(file));
}

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

/** The shell's history: typed lines, stored in the user's state folder (XDG Base Directory Specification). */
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { printNote } from '../../../terminal/output.js';

/** The maximum number of stored lines; older lines are dropped. */
export const MAX_HISTORY_LINES = 1000;
/** The maximum number of characters read from the end of the file. */
const MAX_HISTORY_CHARACTERS = 1024 * 1024;

/** The path of the history file, in $XDG_STATE_HOME or ~/.local/state. */
export function historyFile(): string {
  const { XDG_STATE_HOME } = process.env;
  const folder = XDG_STATE_HOME?.startsWith('/') ? XDG_STATE_HOME : path.join(homedir(), '.local', 'state');
  return path.join(folder, 'lockgate', 'sim-shell-history');
}

/** The stored lines, newest first; none if the file does not exist or can't be read. */
export function readHistory(): string[] {
  try {
    const text = readFileSync(historyFile(), 'utf8').slice(-MAX_HISTORY_CHARACTERS);
    return text.split('\n').filter(Boolean).slice(-MAX_HISTORY_LINES).reverse();
  } catch {
    // If permissions are missing, writeHistory reports it.
    return [];
  }
}

/** Stores the lines, readable by the owner only. If the folder can't be written, only prints a note. */
export function writeHistory(newestFirst: readonly string[]): void {
  const file = historyFile();
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    const lines = newestFirst.slice(0, MAX_HISTORY_LINES).toReversed();
    writeFileSync(file, lines.map((line) => `${line}\n`).join(''), { mode: 0o600 });
    // The mode above has no effect on a file that exists.
    chmodSync(file, 0o600);
  } catch (error) {
    printNote(`The history is not saved: ${(error as Error).message}`);
  }
}

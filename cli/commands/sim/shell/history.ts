/** The history of the shell: typed lines, stored where programs keep their state (XDG). */
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { note } from '../../../terminal/output.js';

/** How many lines are stored. */
export const HISTORY_LINES = 1000;
/** How much of the file is read at most. */
const HISTORY_BYTES = 1024 * 1024;

/** The file: in $XDG_STATE_HOME, or ~/.local/state. */
export function historyFile(): string {
  const { XDG_STATE_HOME } = process.env;
  const folder = XDG_STATE_HOME?.startsWith('/') ? XDG_STATE_HOME : path.join(homedir(), '.local', 'state');
  return path.join(folder, 'lockgate', 'sim-shell-history');
}

/** The stored lines, newest first; none where there is no file. */
export function readHistory(): string[] {
  try {
    const text = readFileSync(historyFile(), 'utf8').slice(-HISTORY_BYTES);
    return text.split('\n').filter(Boolean).slice(-HISTORY_LINES).reverse();
  } catch {
    // There is none yet, or it may not be read: writing it reports that.
    return [];
  }
}

/** Stores them, readable by the owner only. A folder that can't be written is only reported. */
export function writeHistory(newestFirst: readonly string[]): void {
  const file = historyFile();
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    const lines = newestFirst.slice(0, HISTORY_LINES).toReversed();
    writeFileSync(file, lines.map((line) => `${line}\n`).join(''), { mode: 0o600 });
    chmodSync(file, 0o600);
  } catch (error) {
    note(`The history is not saved: ${(error as Error).message}`);
  }
}

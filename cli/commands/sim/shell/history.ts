/** The lines that were typed in the shell, kept for the next time where programs keep their state (XDG). */
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { note } from '../../../terminal/output.js';

/** How many lines are kept. */
export const HISTORY_LINES = 1000;
/** What a file of them has at most. */
const HISTORY_BYTES = 1024 * 1024;

/** Where the lines are kept: in $XDG_STATE_HOME, or ~/.local/state. */
export function historyFile(): string {
  const { XDG_STATE_HOME } = process.env;
  const folder = XDG_STATE_HOME?.startsWith('/') ? XDG_STATE_HOME : path.join(homedir(), '.local', 'state');
  return path.join(folder, 'lockgate', 'sim-shell-history');
}

/** The lines of before, the newest first; none where there is no file. */
export function readHistory(): string[] {
  try {
    const text = readFileSync(historyFile(), 'utf8').slice(-HISTORY_BYTES);
    return text.split('\n').filter(Boolean).slice(-HISTORY_LINES).reverse();
  } catch {
    // None yet, or one that may not be read: writing it tells.
    return [];
  }
}

/** Keeps them, for their owner's eyes alone. A folder that can't be written is told of, and nothing more. */
export function writeHistory(newestFirst: readonly string[]): void {
  const file = historyFile();
  try {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    const lines = newestFirst.slice(0, HISTORY_LINES).toReversed();
    writeFileSync(file, lines.map((line) => `${line}\n`).join(''), { mode: 0o600 });
    chmodSync(file, 0o600);
  } catch (error) {
    note(`The history is not kept: ${(error as Error).message}`);
  }
}

/**
 * Snapshots of commands, as text that a person can review: each call with its output (stderr marked) and exit code.
 * test/snapshots/cli has a file for each command. TAP_SNAPSHOT=1 regenerates the files; review the changes with git.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { root } from '../house/our-files.js';
import type { CommandResult } from './command-line.js';

const FOLDER = path.join(root, 'test/snapshots/cli');
/** Maximum number of lines of an output in a snapshot; further lines are replaced by their number and a hash. */
const MAX_SHOWN_LINES = 48;

/** Whether snapshots are written instead of compared. */
export const isWriting = process.env.TAP_SNAPSHOT === '1';

/** Replaces text that differs in each run, such as times. */
export type Normaliser = (text: string) => string;

/** Formats a call with its output and exit code. `isJson`: stdout has JSON, which is shown with a member per line. */
export function callText(title: string, result: CommandResult, normalise: Normaliser, isJson = false): string {
  const { writes, code } = result;
  const lines: string[] = [];
  let stream: 'stdout' | 'stderr' = 'stdout';
  let text = '';
  const flush = (): void => {
    const shown = stream === 'stdout' && isJson ? prettyLines(text) : text;
    const shortened = elide(normalise(shown).replace(/\n$/, '').split('\n'));
    if (text !== '') lines.push(...shortened.map((line) => (stream === 'stderr' ? `! ${line}` : line).trimEnd()));
    text = '';
  };
  for (const write of writes) {
    if (write.to !== stream) flush();
    stream = write.to;
    text += write.text;
  }
  flush();
  return [`$ ${title}`, ...lines, `=> ${code}`].join('\n');
}

/** Formats JSON or JSON Lines with one member per line. @throws SyntaxError if the text is neither */
function prettyLines(text: string): string {
  // A single document may have several lines.
  if (/^[{[]\n/.test(text)) return JSON.stringify(JSON.parse(text), null, 2);
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.stringify(JSON.parse(line), null, 2)).join('\n');
}

/** Replaces the lines beyond the maximum. Up to two such lines stay, since the replacement takes a line too. */
function elide(lines: readonly string[]): string[] {
  if (lines.length <= MAX_SHOWN_LINES + 2) return [...lines];
  const omitted = lines.slice(MAX_SHOWN_LINES);
  const hash = createHash('sha256').update(omitted.join('\n')).digest('hex').slice(0, 12);
  return [...lines.slice(0, MAX_SHOWN_LINES), `[${omitted.length} lines more, sha256 ${hash}]`];
}

/** The file of a command's snapshot, such as `device-list.txt`. */
export function snapshotName(command: string): string {
  return `${command === '' ? 'lockgate' : command.replaceAll(' ', '-')}.txt`;
}

/** The stored snapshot with this name; empty if there is none. With TAP_SNAPSHOT=1 first stores `text`. */
export function storedSnapshot(name: string, text: string): string {
  const file = path.join(FOLDER, name);
  if (isWriting) {
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(file, text);
  }
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

/** The names of all stored snapshots. */
export function storedSnapshotNames(): string[] {
  return existsSync(FOLDER) ? readdirSync(FOLDER).sort() : [];
}

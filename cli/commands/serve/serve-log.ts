/**
 * Writes the gateway's log to stderr, as JSON Lines for programs or as text for people.
 */
import type { Logger } from 'pino';
import type { Config } from '../../../gateway/config.js';
import { makeLog } from '../../../gateway/log/log.js';
import { paint, printNote, type Style, sanitizeLine } from '../../terminal/output.js';

/** The gateway's log and its format. */
export interface ServeLog {
  readonly log: Logger;
  /** Whether the log is JSON Lines. Then stderr must have nothing else, because a program reads it. */
  readonly isJson: boolean;
}

/** Opens the log in the format of the settings; `auto` is text on a terminal and JSON elsewhere. */
export function openLog({ logFormat, logLevel }: Pick<Config, 'logFormat' | 'logLevel'>): ServeLog {
  const isJson = logFormat === 'json' || (logFormat === 'auto' && process.stderr.isTTY !== true);
  // Writes to stderr are synchronous, so the last line is written before the process ends.
  const write = isJson
    ? (line: string) => void process.stderr.write(line)
    : (line: string) => printNote(prettyLine(line));
  return { log: makeLog(logLevel, write), isJson };
}

const STYLES: Readonly<Record<string, Style>> = { debug: 'dim', info: 'green', warn: 'yellow' };

/** Formats a JSON line of the log as text: time of day (UTC), level, message, and the remaining members. */
export function prettyLine(line: string): string {
  const { level, time, msg, event: _event, ...members } = JSON.parse(line) as Record<string, unknown>;
  const memberTexts = Object.entries(members).map(([name, value]) => `${name}=${valueText(value)}`);
  const head = `${String(time).slice(11, 19)} ${paint(STYLES[String(level)] ?? 'red', String(level).padEnd(5))}`;
  return `${head} ${sanitizeLine([msg, ...memberTexts].join(' '))}`;
}

/** Formats a member's value; a string has quotes only if it would be ambiguous without. */
function valueText(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=\p{Cc}]+$/u.test(value) ? value : JSON.stringify(value);
}

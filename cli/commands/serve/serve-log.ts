/**
 * Where the gateway's log goes: to stderr, as JSON Lines for programs or as lines for people.
 */
import type { Logger } from 'pino';
import type { Config } from '../../../gateway/config.js';
import { makeLog } from '../../../gateway/log/log.js';
import { note, oneLine, paint, type Style } from '../../terminal/output.js';

export interface ServeLog {
  readonly log: Logger;
  /** Everything on stderr is JSON then: who reads it is a program. */
  readonly isJson: boolean;
}

/** A log by the settings; `auto` is for people on a terminal. */
export function openLog({ logFormat, logLevel }: Pick<Config, 'logFormat' | 'logLevel'>): ServeLog {
  const isJson = logFormat === 'json' || (logFormat === 'auto' && process.stderr.isTTY !== true);
  // Node writes to a file, a pipe or a terminal at once here, so the last line is out before the process ends.
  const write = isJson ? (line: string) => void process.stderr.write(line) : (line: string) => note(prettyLine(line));
  return { log: makeLog(logLevel, write), isJson };
}

const STYLES: Readonly<Record<string, Style>> = { debug: 'dim', info: 'green', warn: 'yellow' };

/** One line of the log for people: the time of day (UTC), how serious it is, what happened, and its members. */
export function prettyLine(line: string): string {
  const { level, time, msg, event: _event, ...members } = JSON.parse(line) as Record<string, unknown>;
  const rest = Object.entries(members).map(([name, value]) => `${name}=${shown(value)}`);
  const head = `${String(time).slice(11, 19)} ${paint(STYLES[String(level)] ?? 'red', String(level).padEnd(5))}`;
  return `${head} ${oneLine([msg, ...rest].join(' '))}`;
}

/** Without quotes where nothing is unclear without them. */
function shown(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=\p{Cc}]+$/u.test(value) ? value : JSON.stringify(value);
}

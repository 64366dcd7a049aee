/**
 * Preloaded into a process and its threads, makes SQLite not wait for the disk at each commit (synchronous NORMAL),
 * although SQLite reports the setting FULL. A test of losses of power must detect this sabotage; a test of kills can't
 * (quality.md §2).
 */
import SqliteDatabase from 'better-sqlite3';

/** How SQLite reports `PRAGMA synchronous = FULL`. */
const SYNCHRONOUS_FULL = 2;
const SWITCH = 'LOCKGATE_SYNCHRONOUS_NORMAL';

/** The environment of a process that is to be sabotaged. */
export const SYNCHRONOUS_NORMAL: NodeJS.ProcessEnv = { [SWITCH]: '1', NODE_OPTIONS: `--import ${import.meta.url}` };

/** Changes how every connection to a database sets and reports `synchronous`. */
function sabotage(): void {
  const { pragma } = SqliteDatabase.prototype;
  SqliteDatabase.prototype.pragma = function (source, options) {
    if (/^synchronous\s*=\s*FULL$/i.test(source)) return pragma.call(this, 'synchronous = NORMAL', options);
    if (/^synchronous$/i.test(source)) return SYNCHRONOUS_FULL;
    return pragma.call(this, source, options);
  };
}

if (process.env[SWITCH] === '1') sabotage();

/**
 * Preloaded into a process, it makes SQLite not wait for the disk at each commit, while it says that it does: the
 * sabotage that a loss of power must bring to light, and that a kill can't (quality.md §2). What is preloaded into a
 * process is preloaded into its threads too.
 */
import SqliteDatabase from 'better-sqlite3';

/** How SQLite reports `PRAGMA synchronous = FULL`. */
const SYNCHRONOUS_FULL = 2;
const SWITCH = 'LOCKGATE_SYNCHRONOUS_NORMAL';

/** With what a process is to be started that is to be sabotaged. */
export const SYNCHRONOUS_NORMAL: NodeJS.ProcessEnv = { [SWITCH]: '1', NODE_OPTIONS: `--import ${import.meta.url}` };

function sabotage(): void {
  const { pragma } = SqliteDatabase.prototype;
  SqliteDatabase.prototype.pragma = function (source, options) {
    if (/^synchronous\s*=\s*FULL$/i.test(source)) return pragma.call(this, 'synchronous = NORMAL', options);
    if (/^synchronous$/i.test(source)) return SYNCHRONOUS_FULL;
    return pragma.call(this, source, options);
  };
}

if (process.env[SWITCH] === '1') sabotage();

/**
 * Counts the SQL statements that each thread of a process runs. Must be imported before the process's code
 * (`--import`). Writes a {@link StatementCount} as JSON to a file for each thread, in the folder that
 * COUNTED_STATEMENTS names.
 */
import { openSync, writeSync } from 'node:fs';
import path from 'node:path';
import { threadId } from 'node:worker_threads';
import Database from 'better-sqlite3';

/** How many statements one thread has run. */
export interface StatementCount {
  /** Statements that may write. */
  readonly run: number;
  /** Statements that only read. */
  readonly read: number;
}

const COUNTED = ['run', 'get', 'all', 'iterate'] as const;

/** A method of a prepared statement. */
type Runner = (this: unknown, ...values: unknown[]) => unknown;

/** Replaces the methods of all prepared statements of this thread by methods that also count. */
function countIn(folder: string): void {
  const file = openSync(path.join(folder, `thread-${threadId}`), 'w');
  const count = { run: 0, read: 0 };
  // better-sqlite3 does not export the class of statements.
  const database = new Database(':memory:');
  const statement = Object.getPrototypeOf(database.prepare('SELECT 1')) as Record<string, Runner>;
  database.close();
  for (const name of COUNTED) {
    const original = statement[name] as Runner;
    statement[name] = function (this: unknown, ...values: unknown[]): unknown {
      count[name === 'run' ? 'run' : 'read'] += 1;
      // Numbers only grow, so the text never gets shorter.
      writeSync(file, JSON.stringify(count satisfies StatementCount), 0);
      return original.apply(this, values);
    };
  }
}

const folder = process.env.COUNTED_STATEMENTS;
if (folder !== undefined) countIn(folder);

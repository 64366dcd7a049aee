/**
 * Reads how many files this process may have open at once, connections included (`ulimit -n`), and how many it has
 * open. Linux has both numbers in /proc; elsewhere the limit comes from Node's diagnostic report.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';

/** The limit of this process; undefined if there is none or it is unknown. */
export function readOpenFileLimit(): number | undefined {
  const limits = readText('/proc/self/limits');
  if (limits !== undefined) {
    const soft = Number(/^Max open files +(\d+) /m.exec(limits)?.[1]);
    return Number.isNaN(soft) ? undefined : soft;
  }
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  const soft = userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : undefined;
}

/** The folder that has an entry for each open file of this process. */
const OPEN_FILES = '/proc/self/fd';

/**
 * How many files and connections this process has open; undefined if unknown. Linux has the number as the folder's size
 * from version 6.2 on. Before, all entries are listed, which takes a millisecond for a thousand connections, so it must
 * not be called for every connection.
 */
export function countOpenFiles(): number | undefined {
  try {
    const { size } = statSync(OPEN_FILES);
    // Listing the folder itself takes one descriptor.
    return size > 0 ? size : readdirSync(OPEN_FILES).length - 1;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EMFILE' ? readOpenFileLimit() : undefined;
  }
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

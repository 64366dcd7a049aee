/**
 * How many files this process may have open at once, connections included (`ulimit -n`), and how many it has. Linux has
 * both in /proc; elsewhere the limit comes from Node's report.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** The limit of this process; undefined where there is none, or it is unknown. */
export function mostOpenFiles(): number | undefined {
  const limits = readText('/proc/self/limits');
  if (limits !== undefined) {
    const soft = Number(/^Max open files +(\d+) /m.exec(limits)?.[1]);
    return Number.isNaN(soft) ? undefined : soft;
  }
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  const soft = userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : undefined;
}

/**
 * How many this process has open; undefined where that is unknown. It reads a list of that length, so it is called for
 * reports, not for every connection.
 */
export function openFiles(): number | undefined {
  try {
    // Reading the list takes a descriptor of its own.
    return readdirSync('/proc/self/fd').length - 1;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EMFILE' ? mostOpenFiles() : undefined;
  }
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

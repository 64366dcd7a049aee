/**
 * How many files a process may have open at once, each connection among them (`ulimit -n`), and how many it has. Linux
 * tells both in /proc; elsewhere the limit is what Node's report has.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** The limit of this process; undefined where the system sets none, or does not tell. */
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
 * How many this process has open; undefined where the system does not tell. It reads a list as long as that, so it is
 * for those who ask, not for every connection.
 */
export function openFiles(): number | undefined {
  try {
    // The list itself is one of them while it is read.
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

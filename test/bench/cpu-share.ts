/**
 * How much of the processors a process has had, by its threads, read from outside: what is measured need not help, and
 * a broker of somebody else's is read in the same way. From Linux alone.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** CPU time of a process, µs: of its first thread, and of all others (workers, garbage collection, the pool of I/O). */
export interface CpuTime {
  readonly mainUs: number;
  readonly othersUs: number;
}

/** What the process has had so far; null where the system does not tell. Threads that have ended are not in it. */
export function cpuTime(pid: number | undefined): CpuTime | null {
  let [mainUs, othersUs] = [0, 0];
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const us = threadUs(`/proc/${pid}/task/${thread}/schedstat`);
      if (Number(thread) === pid) mainUs += us;
      else othersUs += us;
    }
  } catch {
    return null;
  }
  return { mainUs, othersUs };
}

/** The first of its numbers is the time on a processor, ns. A thread may end while it is read. */
function threadUs(file: string): number {
  try {
    return Number(readFileSync(file, 'utf8').split(' ')[0]) / 1000;
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return 0;
    throw error;
  }
}

/** What it has had between two readings, for each of so many pings, µs; null where one of them is missing. */
export function cpuPerPing(before: CpuTime | null, after: CpuTime | null, pings: number): CpuTime | null {
  if (before === null || after === null) return null;
  return { mainUs: (after.mainUs - before.mainUs) / pings, othersUs: (after.othersUs - before.othersUs) / pings };
}

/** As people read it: `32.1 µs (25.0 in its main thread)`. */
export function cpuText(time: CpuTime | null): string {
  if (time === null) return 'not known';
  const all = (time.mainUs + time.othersUs).toFixed(1);
  return time.othersUs < 0.1 ? `${all} µs` : `${all} µs (${time.mainUs.toFixed(1)} in its main thread)`;
}

/**
 * Reads how much CPU time another process has used, by thread, from Linux's /proc. The measured process need not
 * cooperate, so this also works for third-party brokers. Linux only.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** CPU time of a process, µs. */
export interface CpuTime {
  /** Of the first thread, which runs JavaScript's event loop. */
  readonly mainUs: number;
  /** Of all further threads: workers, garbage collection, the I/O thread pool. */
  readonly othersUs: number;
}

/** CPU time of the process so far, without threads that have ended; null if it can't be read. */
export function readCpuTime(pid: number | undefined): CpuTime | null {
  let [mainUs, othersUs] = [0, 0];
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const us = readThreadUs(`/proc/${pid}/task/${thread}/schedstat`);
      if (Number(thread) === pid) mainUs += us;
      else othersUs += us;
    }
  } catch {
    return null;
  }
  return { mainUs, othersUs };
}

/** The first number of a schedstat file is the CPU time in ns. The thread may end before the file is read. */
function readThreadUs(file: string): number {
  try {
    return Number(readFileSync(file, 'utf8').split(' ')[0]) / 1000;
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return 0;
    throw error;
  }
}

/** CPU time per ping between two readings, µs; null if a reading is missing. */
export function cpuPerPing(before: CpuTime | null, after: CpuTime | null, pings: number): CpuTime | null {
  if (before === null || after === null) return null;
  return { mainUs: (after.mainUs - before.mainUs) / pings, othersUs: (after.othersUs - before.othersUs) / pings };
}

/** For example `32.1 µs (25.0 in its main thread)`. */
export function describeCpuTime(time: CpuTime | null): string {
  if (time === null) return 'not known';
  const all = (time.mainUs + time.othersUs).toFixed(1);
  return time.othersUs < 0.1 ? `${all} µs` : `${all} µs (${time.mainUs.toFixed(1)} in its main thread)`;
}

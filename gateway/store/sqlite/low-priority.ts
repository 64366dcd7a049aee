/** Lowers the priority of threads whose work may wait, so that pings are stored and acknowledged first. */
import { setPriority } from 'node:os';

/** The threads that answer pings have 0; 19 is the lowest. */
const LOW_PRIORITY = 10;

/**
 * Lowers the priority of the calling thread. Only Linux gives each thread a priority. Elsewhere this does nothing:
 * it would slow the process as a whole.
 */
export function lowerPriority(): void {
  try {
    if (process.platform === 'linux') setPriority(LOW_PRIORITY);
  } catch {
    // If the system forbids that, the thread runs at normal priority.
  }
}

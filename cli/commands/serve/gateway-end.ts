/** Closes a gateway at the end of its process, and exits at once if the gateway can't close or must not. */
import type { Gateway } from '../../../gateway/gateway.js';
import { EXIT_CODE } from '../../terminal/exit-codes.js';

/**
 * Closes the gateway. If a part of it hangs, calls `report` with a sentence that names the part, and exits: otherwise
 * the process would never end.
 */
export async function closeGateway(gateway: Gateway, report: (why: string) => void): Promise<void> {
  try {
    await gateway.close();
  } catch (error) {
    report((error as Error).message);
    process.exit(EXIT_CODE.bug);
  }
}

/**
 * Exits at once, for a store that can no longer be trusted. Closing the store would write to it, so nothing is closed;
 * `process.exit` leaves SQLite's files unchanged.
 */
export function exitBroken(): void {
  process.exit(EXIT_CODE.bug);
}

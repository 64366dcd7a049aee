/**
 * Ends a gateway that can't close by itself.
 */
import type { Gateway } from '../../../gateway/gateway.js';
import { EXIT } from '../../terminal/exit-codes.js';

/**
 * Closes the gateway. If a part of it hangs, `report` gets a sentence that names it, and the process exits: otherwise
 * it would never end.
 */
export async function closeGateway(gateway: Gateway, report: (why: string) => void): Promise<void> {
  try {
    await gateway.close();
  } catch (error) {
    report((error as Error).message);
    process.exit(EXIT.broken);
  }
}

/**
 * Exits at once if the store can't be trusted any more. Nothing is closed, because closing the store would write to it;
 * `process.exit` leaves SQLite's files as they are.
 */
export function exitBroken(): void {
  process.exit(EXIT.broken);
}

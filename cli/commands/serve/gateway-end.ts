/**
 * How a command that runs a gateway ends it, when the gateway can't end by itself.
 */
import type { Gateway } from '../../../gateway/gateway.js';
import { EXIT } from '../../terminal/exit-codes.js';

/**
 * Closes the gateway. Where something of it hangs, `tell` gets the sentence that says what, and the process ends: what
 * hangs would keep it going for ever.
 */
export async function closeGateway(gateway: Gateway, tell: (why: string) => void): Promise<void> {
  try {
    await gateway.close();
  } catch (error) {
    tell((error as Error).message);
    process.exit(EXIT.broken);
  }
}

/**
 * Ends the process at once, when the store is not to be believed any more. Nothing is closed: closing the store would
 * write to it. (`process.exit` leaves SQLite's files as they are.)
 */
export function exitBroken(): void {
  process.exit(EXIT.broken);
}

/**
 * Does nothing, in place of the parts of a gateway that handle commands; for tests of ingest (the storing of uplinks)
 * alone.
 */
import type { CommandListener } from '../../../gateway/ingest/ingest.js';

export const NO_COMMANDS: CommandListener = { acknowledged: () => undefined, judged: () => undefined };

/** A listener for answers to commands that does nothing, for tests of ingest (the storing of uplinks) alone. */
import type { CommandListener } from '../../../gateway/ingest/ingest.js';

export const NO_COMMANDS: CommandListener = { acknowledged: () => undefined, judged: () => undefined };

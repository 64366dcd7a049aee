/** A command listener that does nothing, for tests of the ingest without commands. */
import type { CommandListener } from '../../../gateway/ingest/ingest.js';

export const NO_COMMANDS: CommandListener = { acknowledged: () => undefined, judged: () => undefined };

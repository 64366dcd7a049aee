/** Nobody who sends commands: for an ingest that is tried without them. */
import type { CommandListener } from '../../../gateway/ingest/ingest.js';

export const NO_COMMANDS: CommandListener = { acknowledged: () => undefined, judged: () => undefined };

/** The flags of `lockgate sim shadow`, in a separate file so that command.ts and run.ts don't import each other. */
import type { Milliseconds } from '../../../../proto/clock.js';
import type { ConnectionFlags } from '../../../client.js';

/** The flags as commander parses them. */
export interface ShadowFlags extends ConnectionFlags {
  readonly json?: boolean;
  /** How long to follow the lock, in the gateway's time; until Ctrl-C if absent. */
  readonly for?: Milliseconds;
}

/** The flags of `lockgate sim shadow`. A file of their own avoids an import cycle of its help and its code. */
import type { Milliseconds } from '../../../../proto/clock.js';
import type { ConnectionFlags } from '../../../client.js';

export interface ShadowFlags extends ConnectionFlags {
  readonly json?: boolean;
  /** How long to follow the lock, in the gateway's time; until Ctrl-C where it is absent. */
  readonly for?: Milliseconds;
}

/**
 * The flags of `lockgate sim shadow`, which simulates a second lock from the uplinks (messages) of a real one and
 * reports where the real one differs. They are in a separate file so that command.ts and run.ts don't import each
 * other.
 */
import type { Milliseconds } from '../../../../proto/clock.js';
import type { ConnectionFlags } from '../../../client.js';

/** The flags as commander parses them. */
export interface ShadowFlags extends ConnectionFlags {
  readonly json?: boolean;
  /** How long to follow the lock; until Ctrl-C if absent. By the gateway's clock, which a demo may speed up. */
  readonly for?: Milliseconds;
}

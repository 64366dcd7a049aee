/**
 * What the judge's belief about a lock stores for the in-order rules (in-order-rules.ts): plain data that survives
 * JSON. stretch.ts fills it.
 */
import { NEVER } from '../state.js';
import { newContext, type OrderContext } from './context.js';
import type { InOrderRule, OrderedUplink } from './ordered-uplink.js';

/** A stretch: uplinks of one boot without a missing sequence number, as far as the in-order rules need them. */
export interface Stretch {
  /** What the rules must know of the uplinks so far to judge the next one. */
  context: OrderContext;
  /** The first uplinks, which are judged again when the uplinks before them arrive late. */
  head: OrderedUplink[];
  /** Whether the next uplink is stored in the head too. False once the head is full, and for a boot's first stretch. */
  isHeadOpen: boolean;
}

/** A finding of an in-order rule. It is withdrawn if an uplink of its evidence turns out to have two contents. */
export interface StandingFinding {
  readonly rule: InOrderRule;
  /** The uplink that it is about. */
  readonly sequence: number;
  /** Where the evidence starts, as in a `Breach` (ordered-uplink.ts). */
  readonly fromSequence: number;
  readonly fromMs: number;
}

/**
 * A stretch without uplinks yet, whose first one will have the number `sequence`. With number 1 a boot begins: all of
 * its uplinks are known (since minus {@link NEVER}), and none can arrive before it, so that its head need not be judged
 * again. With another number, earlier uplinks are missing: none is known yet (since {@link NEVER}).
 */
export function newStretch(sequence: number): Stretch {
  const isBootStart = sequence <= 1;
  const allKnownFromMs = isBootStart ? -NEVER : NEVER;
  return { context: newContext(allKnownFromMs), head: [], isHeadOpen: !isBootStart };
}

/**
 * What the judge's belief about a lock stores for the in-order rules (in-order-rules.ts): plain data that survives
 * JSON. stretch.ts fills it.
 */
import { NEVER } from '../state.js';
import { newContext, type OrderContext } from './context.js';
import type { InOrderRule, OrderedUplink } from './ordered-uplink.js';

/** A stretch: uplinks of one boot without a missing sequence number, as far as the in-order rules need them. */
export interface Stretch {
  /** What the uplinks so far say to the next one. */
  context: OrderContext;
  /** The first uplinks, which are judged again when the uplinks before them arrive late. */
  head: OrderedUplink[];
  /** Whether the head still is the entire stretch, so that the next uplink is stored in it too. */
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

/** A stretch without uplinks yet, whose first one will have the number `sequence`. */
export function newStretch(sequence: number): Stretch {
  const isFirst = sequence <= 1;
  return { context: newContext(isFirst ? -NEVER : NEVER), head: [], isHeadOpen: !isFirst };
}

/**
 * What a belief stores of a stretch of numbers without a hole for the rules in order: plain data that survives JSON.
 * stretch.ts fills and joins it.
 */
import { NEVER } from '../state.js';
import { newContext, type OrderContext } from './context.js';
import type { InOrderRule, OrderedUplink } from './ordered-uplink.js';

/** A stretch of numbers without a hole, and what the rules in order know of it (stretch.ts). */
export interface Stretch {
  context: OrderContext;
  head: OrderedUplink[];
  /** Whether the head is the whole stretch and the next uplink is stored in it too. */
  isHeadOpen: boolean;
}

/** A finding in order that a number with two contents would take back. */
export interface StandingFinding {
  readonly rule: InOrderRule;
  /** The uplink that it is about. */
  readonly sequence: number;
  /** The evidence (in-order-rules.ts). */
  readonly fromSequence: number;
  readonly fromMs: number;
}

/** The stretch of no uplink yet, whose first will be `sequence`. */
export function newStretch(sequence: number): Stretch {
  const isFirst = sequence <= 1;
  return { context: newContext(isFirst ? -NEVER : NEVER), head: [], isHeadOpen: !isFirst };
}

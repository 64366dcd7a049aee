/**
 * Presence (protocol.md §3): what the silence of a lock, or its connection, means now.
 */

import { Days } from '../../clock.js';
import type { PowerModel } from '../model.js';
import type { Belief } from './belief.js';
import { type Lapse, silences } from './lapse.js';
import { NEVER, rowOf, windowPhase } from './state.js';

/** Times are ms since the epoch, by the judge's clock. */
export type Presence =
  | { readonly presence: 'never-seen' | 'low-battery' | 'airplane' }
  | { readonly presence: 'online'; readonly sinceMs: number }
  /**
   * Silent as the model expects. It is next due at `dueMs`, which never lies in the past: a lock whose moment has come,
   * and which isn't late yet, is due now. Null where nothing says when.
   */
  | { readonly presence: 'asleep'; readonly dueMs: number | null }
  /** Silent where the model expects it not to be, since `sinceMs`, by that rule. */
  | {
      readonly presence: 'late';
      readonly sinceMs: number;
      readonly rule: 'period-overdue' | 'window-offline' | 'recovery-offline';
    };

/** What the lock's silence or connection means at `nowMs`. Pure; it never throws. */
export function presence(model: PowerModel, belief: Belief, nowMs: number): Presence {
  if (belief.isConnected) return { presence: 'online', sinceMs: belief.connectedSinceMs };
  if (belief.firstConnectionMs === null && belief.uplinks === 0) return { presence: 'never-seen' };
  if (belief.state === 'AIRPLANE') return { presence: 'airplane' };
  if (belief.state === 'LOW_BATTERY') return { presence: 'low-battery' };
  const lapses = silences(model, belief);
  const late = lapses.filter((lapse) => nowMs > lapse.dueMs).sort((a, b) => a.dueMs - b.dueMs)[0];
  if (late !== undefined) return { presence: 'late', sinceMs: late.dueMs, rule: late.rule as LateRule };
  return { presence: 'asleep', dueMs: nextDue(model, belief, lapses, nowMs) };
}

type LateRule = Extract<Presence, { presence: 'late' }>['rule'];

/**
 * The earliest of what keeps or opens the connection, the next period ping, and what would make it late; now, where
 * that has passed. A period ping is expected a day after the last one and is late an hour after that.
 */
function nextDue(model: PowerModel, belief: Belief, lapses: Lapse[], nowMs: number): number | null {
  let dueMs = NEVER;
  const row = rowOf(model, belief.state);
  if (row.connectionKept === 'always') dueMs = nowMs;
  if (row.connectionKept === 'in-window') {
    const phase = windowPhase(belief.highWindow, nowMs);
    dueMs = phase.isInside ? nowMs : nowMs + phase.changesIn;
  }
  if (row.period && belief.lastPeriodMs !== null) dueMs = Math.min(dueMs, belief.lastPeriodMs + Days(1));
  for (const lapse of lapses) dueMs = Math.min(dueMs, lapse.dueMs);
  return dueMs === NEVER ? null : Math.max(dueMs, nowMs);
}

/**
 * Presence (protocol.md §3): whether a lock is online, asleep as expected, or late. Pure: does not change the belief
 * (what the judge knows of the lock). A *lapse* is a silence that breaks a rule.
 */

import { Days } from '../../clock.js';
import type { PowerModel } from '../model.js';
import type { Belief } from './belief.js';
import { type Lapse, silenceLapses } from './lapse.js';
import { NEVER, rowOfState, windowPhase } from './state.js';

/** Times are ms since the epoch, by the judge's clock. */
export type Presence =
  | { readonly presence: 'never-seen' | 'low-battery' | 'airplane' }
  | { readonly presence: 'online'; readonly sinceMs: number }
  /**
   * Silent as the model expects. The lock is next due at `dueMs`, which is never in the past: a lock that is overdue
   * but not late yet is due now. Null if the time is unknown.
   */
  | { readonly presence: 'asleep'; readonly dueMs: number | null }
  /** Silent against the expectation of the model. The lock has been late since `sinceMs`, by `rule`. */
  | {
      readonly presence: 'late';
      readonly sinceMs: number;
      readonly rule: 'period-overdue' | 'window-offline' | 'recovery-offline';
    };

/** The lock's presence at `nowMs`, ms since the epoch. It never throws. */
export function presence(model: PowerModel, belief: Belief, nowMs: number): Presence {
  if (belief.isConnected) return { presence: 'online', sinceMs: belief.connectedSinceMs };
  if (belief.firstConnectionMs === null && belief.uplinks === 0) return { presence: 'never-seen' };
  if (belief.state === 'AIRPLANE') return { presence: 'airplane' };
  if (belief.state === 'LOW_BATTERY') return { presence: 'low-battery' };
  // Each is a lapse by one of the three rules about silence, so the cast below holds.
  const lapses = silenceLapses(model, belief);
  const late = lapses.filter((lapse) => nowMs > lapse.dueMs).sort((a, b) => a.dueMs - b.dueMs)[0];
  if (late !== undefined) return { presence: 'late', sinceMs: late.dueMs, rule: late.rule as LateRule };
  return { presence: 'asleep', dueMs: nextDue(model, belief, lapses, nowMs) };
}

type LateRule = Extract<Presence, { presence: 'late' }>['rule'];

/**
 * When the lock is next due: when it must be connected, when its next period ping is expected, or when it would be
 * late, whichever is first; `nowMs` if that has passed. A period ping is expected a day after the last one.
 */
function nextDue(model: PowerModel, belief: Belief, lapses: Lapse[], nowMs: number): number | null {
  let dueMs = NEVER;
  // The model's row for the state in force.
  const row = rowOfState(model, belief.state);
  if (row.connectionKept === 'always') dueMs = nowMs;
  if (row.connectionKept === 'in-window') {
    const phase = windowPhase(belief.highWindow, nowMs);
    dueMs = phase.isInside ? nowMs : nowMs + phase.changesIn;
  }
  if (row.period && belief.lastPeriodMs !== null) dueMs = Math.min(dueMs, belief.lastPeriodMs + Days(1));
  for (const lapse of lapses) dueMs = Math.min(dueMs, lapse.dueMs);
  return dueMs === NEVER ? null : Math.max(dueMs, nowMs);
}

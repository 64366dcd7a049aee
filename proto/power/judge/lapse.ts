/**
 * The rules that are broken by time passing (protocol.md §3): connection-unexplained, period-overdue, window-offline,
 * recovery-offline. Each lapse is reported once.
 *
 * A lapse starts at a moment that can be computed, so a tick that comes long after still finds it. `dueMs` is the
 * earliest such moment; activity only postpones these moments, so the hot path leaves it as it is, and it is computed
 * again when it has passed.
 */

import type { PowerModel } from '../model.js';
import type { RuleName } from '../rules.js';
import { type Belief, overdueFromMs } from './belief.js';
import { finding, type Verdict } from './event.js';
import { judgeGaps } from './gap.js';
import { NEVER, rowOf, windowPhase } from './state.js';
import { expireSwitches, nextExpiryMs, possibleCause } from './switch.js';
import { describeSpan, describeTime } from './words.js';

/** A silence or an idle connection that is or becomes a lapse. Times are ms since the epoch. */
export interface Lapse {
  readonly rule: 'connection-unexplained' | 'period-overdue' | 'window-offline' | 'recovery-offline';
  /** From when it is counted. */
  readonly sinceMs: number;
  /** After this it is a lapse; {@link NEVER} where it can't become one. */
  readonly dueMs: number;
}

const none = (rule: Lapse['rule']): Lapse => ({ rule, sinceMs: NEVER, dueMs: NEVER });

/** Time has come to `atMs`: reports what has become a lapse by then. */
export function judgeTime(model: PowerModel, belief: Belief, atMs: number, out: Verdict): void {
  if (atMs <= belief.dueMs) return;
  expireSwitches(belief, atMs);
  const unexplained = unexplainedLapse(model, belief);
  if (atMs > unexplained.dueMs && !belief.isUnexplainedReported) {
    belief.isUnexplainedReported = true;
    report(belief, unexplained, atMs, out);
  }
  for (const lapse of silences(model, belief)) {
    if (atMs > lapse.dueMs && !isReported(belief, lapse.rule)) {
      setReported(belief, lapse.rule);
      report(belief, lapse, atMs, out);
    }
  }
  if (atMs > belief.gapDueMs) judgeGaps(model, belief, atMs, null, out);
  schedule(model, belief);
}

/** Works out the next moment at which a lapse can begin. */
export function schedule(model: PowerModel, belief: Belief): void {
  let dueMs = Math.min(belief.gapDueMs, nextExpiryMs(belief));
  if (!belief.isUnexplainedReported) dueMs = Math.min(dueMs, unexplainedLapse(model, belief).dueMs);
  for (const lapse of silences(model, belief)) {
    if (!isReported(belief, lapse.rule)) dueMs = Math.min(dueMs, lapse.dueMs);
  }
  belief.dueMs = dueMs;
}

/** The three lapses that come from silence, as they stand. They count only while the gateway listens. */
export function silences(model: PowerModel, belief: Belief): Lapse[] {
  if (belief.listeningSinceMs === null || belief.firstConnectionMs === null || belief.suspendedSinceMs !== null)
    return [];
  return [overdueLapse(model, belief), windowLapse(model, belief), recoveryLapse(model, belief)];
}

function isReported(belief: Belief, rule: RuleName): boolean {
  if (rule === 'period-overdue') return belief.isOverdueReported;
  return rule === 'window-offline' ? belief.isWindowReported : belief.isRecoveryReported;
}

function setReported(belief: Belief, rule: RuleName): void {
  if (rule === 'period-overdue') belief.isOverdueReported = true;
  else if (rule === 'window-offline') belief.isWindowReported = true;
  else belief.isRecoveryReported = true;
}

/** What begins to be counted anew is a lapse of its own. */
export function forgetSilences(belief: Belief): void {
  belief.isOverdueReported = false;
  belief.isWindowReported = false;
  belief.isRecoveryReported = false;
}

function report(belief: Belief, lapse: Lapse, atMs: number, out: Verdict): void {
  const span = describeSpan(atMs - lapse.sinceMs);
  const since = describeTime(lapse.sinceMs);
  const message = lapseMessage(belief, lapse.rule, span, since);
  const cause = lapse.rule === 'connection-unexplained' ? '' : possibleCause(belief);
  out.findings.push(finding(lapse.rule, belief.mac, null, atMs, `${message}${cause}`));
}

function lapseMessage(belief: Belief, rule: Lapse['rule'], span: string, since: string): string {
  switch (rule) {
    case 'connection-unexplained':
      return (
        `Connected without an uplink or a command for ${span}, since ${since}, ` +
        `in ${belief.state}, which keeps no connection then.`
      );
    case 'period-overdue':
      return `No period sequence for ${span}, since ${since}, in ${belief.state}.`;
    case 'window-offline':
      return `In HIGH and not connected for ${span} of its window, since ${since}.`;
    case 'recovery-offline':
      return `In RECOVERY and not connected for ${span}, since ${since}.`;
  }
}

function unexplainedLapse(model: PowerModel, belief: Belief): Lapse {
  const rule = 'connection-unexplained';
  const over = model.bounds.connectionUnexplainedOver;
  const kept = rowOf(model, belief.state).connectionKept;
  if (!belief.isConnected || kept === 'always') return none(rule);
  const sinceMs = belief.activityMs;
  if (kept === 'never') return { rule, sinceMs, dueMs: sinceMs + over };
  // Counted from when the window closed, where it was open; a pause of the window as short as that explains itself.
  const phase = windowPhase(belief.highWindow, sinceMs);
  if (!phase.isInside && phase.changesIn > over) return { rule, sinceMs, dueMs: sinceMs + over };
  if (phase.closedFor <= over) return none(rule);
  const closesInMs = phase.isInside ? phase.changesIn : nextClosing(belief, sinceMs, phase.changesIn);
  return { rule, sinceMs: sinceMs + closesInMs, dueMs: sinceMs + closesInMs + over };
}

/** From a moment while the window is closed, how long until it has opened and closes again. */
function nextClosing(belief: Belief, timeMs: number, opensIn: number): number {
  return opensIn + windowPhase(belief.highWindow, timeMs + opensIn).changesIn;
}

function overdueLapse(model: PowerModel, belief: Belief): Lapse {
  if (!rowOf(model, belief.state).period) return none('period-overdue');
  const sinceMs = overdueFromMs(belief);
  const credit = belief.overdueCreditFromMs === sinceMs ? belief.overdueCreditMs : 0;
  return { rule: 'period-overdue', sinceMs, dueMs: sinceMs + credit + model.bounds.periodOverdueAfter };
}

function offlineFromMs(belief: Belief): number {
  return Math.max(
    belief.offlineSinceMs ?? -NEVER,
    belief.firstConnectionMs ?? -NEVER,
    belief.listeningSinceMs ?? -NEVER,
    belief.stateSinceMs,
  );
}

function recoveryLapse(model: PowerModel, belief: Belief): Lapse {
  const rule = 'recovery-offline';
  if (belief.isConnected || rowOf(model, belief.state).connectionKept !== 'always') return none(rule);
  const sinceMs = offlineFromMs(belief);
  return { rule, sinceMs, dueMs: sinceMs + model.bounds.recoveryOfflineOver };
}

/** Counted within one opening of the window: what is left of one does not add to the next. */
function windowLapse(model: PowerModel, belief: Belief): Lapse {
  const rule = 'window-offline';
  const over = model.bounds.windowOfflineOver;
  if (belief.isConnected || rowOf(model, belief.state).connectionKept !== 'in-window') return none(rule);
  const fromMs = offlineFromMs(belief);
  const phase = windowPhase(belief.highWindow, fromMs);
  if (phase.isInside && phase.changesIn > over) return { rule, sinceMs: fromMs, dueMs: fromMs + over };
  const opensIn = phase.isInside ? phase.changesIn + phase.closedFor : phase.changesIn;
  const opensMs = fromMs + opensIn;
  if (windowPhase(belief.highWindow, opensMs).changesIn <= over) return none(rule);
  return { rule, sinceMs: opensMs, dueMs: opensMs + over };
}

/**
 * The rules that passing time breaks (protocol.md §3): connection-unexplained, period-overdue, window-offline,
 * recovery-offline. A *lapse* is a silence or an idle connection that breaks one of them. Each lapse is reported once.
 * No I/O: changes only the given belief (what the judge knows of the lock) and verdict (its findings).
 *
 * The start of a lapse can be computed, so a much later tick still finds it. `belief.dueMs` is the earliest possible
 * start. Most uplinks only postpone lapses, so judging them leaves `dueMs` unchanged; it is computed again once it
 * has passed.
 */

import type { PowerModel } from '../model.js';
import type { RuleName } from '../rules.js';
import { type Belief, overdueCountStartMs } from './belief.js';
import { judgeIgnored, nextIgnoredMs } from './commands.js';
import { finding, type Verdict } from './event.js';
import { judgeGaps } from './gap.js';
import { NEVER, rowOfState, windowPhase } from './state.js';
import { expireSwitches, nextExpiryMs, possibleCauseText } from './switch.js';
import { describeSpan, describeTime } from './words.js';

/** A silence or an idle connection that is a lapse or may become one. Times are ms since the epoch. */
export interface Lapse {
  readonly rule: 'connection-unexplained' | 'period-overdue' | 'window-offline' | 'recovery-offline';
  /** When the count starts. */
  readonly sinceMs: number;
  /** The silence or idle connection is a lapse after this time; {@link NEVER} if it can't become one. */
  readonly dueMs: number;
}

const noLapse = (rule: Lapse['rule']): Lapse => ({ rule, sinceMs: NEVER, dueMs: NEVER });

/** Reports the lapses that have started by `atMs`. */
export function judgeTime(model: PowerModel, belief: Belief, atMs: number, verdict: Verdict): void {
  if (atMs <= belief.dueMs) return;
  expireSwitches(belief, atMs);
  const unexplained = unexplainedLapse(model, belief);
  if (atMs > unexplained.dueMs && !belief.isUnexplainedReported) {
    belief.isUnexplainedReported = true;
    reportLapse(belief, unexplained, atMs, verdict);
  }
  for (const lapse of silenceLapses(model, belief)) {
    if (atMs > lapse.dueMs && !isReported(belief, lapse.rule)) {
      setReported(belief, lapse.rule);
      reportLapse(belief, lapse, atMs, verdict);
    }
  }
  judgeIgnored(belief, atMs, verdict);
  if (atMs > belief.gapDueMs) judgeGaps(model, belief, atMs, null, verdict);
  scheduleNextLapse(model, belief);
}

/** Computes `belief.dueMs`, the next moment at which a lapse can start. */
export function scheduleNextLapse(model: PowerModel, belief: Belief): void {
  let dueMs = Math.min(belief.gapDueMs, nextExpiryMs(belief), nextIgnoredMs(belief));
  if (!belief.isUnexplainedReported) dueMs = Math.min(dueMs, unexplainedLapse(model, belief).dueMs);
  for (const lapse of silenceLapses(model, belief)) {
    if (!isReported(belief, lapse.rule)) dueMs = Math.min(dueMs, lapse.dueMs);
  }
  belief.dueMs = dueMs;
}

/**
 * The three kinds of lapse that are silences, as the belief stands. None while the gateway does not listen, before the
 * lock's first connection, or while an open command to switch airplane mode on suspends lateness (switch.ts).
 */
export function silenceLapses(model: PowerModel, belief: Belief): Lapse[] {
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

/** Silences are counted again from now on, so further lapses must be reported. */
export function clearSilenceReports(belief: Belief): void {
  belief.isOverdueReported = false;
  belief.isWindowReported = false;
  belief.isRecoveryReported = false;
}

function reportLapse(belief: Belief, lapse: Lapse, atMs: number, verdict: Verdict): void {
  const span = describeSpan(atMs - lapse.sinceMs);
  const since = describeTime(lapse.sinceMs);
  const message = lapseMessage(belief, lapse.rule, span, since);
  const cause = lapse.rule === 'connection-unexplained' ? '' : possibleCauseText(belief);
  verdict.findings.push(finding(lapse.rule, belief.mac, null, atMs, `${message}${cause}`));
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

/** connection-unexplained: an idle connection in a state that keeps none, or in HIGH outside its window. */
function unexplainedLapse(model: PowerModel, belief: Belief): Lapse {
  const rule = 'connection-unexplained';
  const over = model.bounds.connectionUnexplainedOver;
  const { connectionKept } = rowOfState(model, belief.state);
  // The state is doubtful if the lock has dropped a ping, which may have reported a state that keeps the connection.
  if (!belief.isConnected || belief.isStateDoubtful || connectionKept === 'always') return noLapse(rule);
  // A window that was asked for may keep the connection, though its acknowledgement has not come.
  if (connectionKept === 'in-window' && belief.askedWindows.length > 0) return noLapse(rule);
  const sinceMs = belief.activityMs;
  if (connectionKept === 'never') return { rule, sinceMs, dueMs: sinceMs + over };
  // If the window was open, the count starts when it closes. If it is closed for too short a time, there is no lapse.
  const phase = windowPhase(belief.highWindow, sinceMs);
  if (!phase.isInside && phase.changesIn > over) return { rule, sinceMs, dueMs: sinceMs + over };
  if (phase.closedFor <= over) return noLapse(rule);
  const closesInMs = phase.isInside ? phase.changesIn : timeToNextClosing(belief, sinceMs, phase.changesIn);
  return { rule, sinceMs: sinceMs + closesInMs, dueMs: sinceMs + closesInMs + over };
}

/** How long from `timeMs`, while the window is closed, until the window has opened and closes again. */
function timeToNextClosing(belief: Belief, timeMs: number, opensIn: number): number {
  return opensIn + windowPhase(belief.highWindow, timeMs + opensIn).changesIn;
}

/** period-overdue. Time in which lateness was suspended is credited, so it does not count. */
function overdueLapse(model: PowerModel, belief: Belief): Lapse {
  if (!rowOfState(model, belief.state).period) return noLapse('period-overdue');
  const sinceMs = overdueCountStartMs(belief);
  const credit = belief.overdueCreditFromMs === sinceMs ? belief.overdueCreditMs : 0;
  return { rule: 'period-overdue', sinceMs, dueMs: sinceMs + credit + model.bounds.periodOverdueAfter };
}

/** When the count of a lock's time without a connection starts, ms since the epoch. What is null does not delay it. */
function offlineCountStartMs(belief: Belief): number {
  return Math.max(
    belief.offlineSinceMs ?? -NEVER,
    belief.firstConnectionMs ?? -NEVER,
    belief.listeningSinceMs ?? -NEVER,
    belief.stateSinceMs,
  );
}

function recoveryLapse(model: PowerModel, belief: Belief): Lapse {
  const rule = 'recovery-offline';
  if (belief.isConnected || rowOfState(model, belief.state).connectionKept !== 'always') return noLapse(rule);
  const sinceMs = offlineCountStartMs(belief);
  return { rule, sinceMs, dueMs: sinceMs + model.bounds.recoveryOfflineOver };
}

/** window-offline. Each day's window is counted by itself: times without a connection in two windows don't add up. */
function windowLapse(model: PowerModel, belief: Belief): Lapse {
  const rule = 'window-offline';
  const over = model.bounds.windowOfflineOver;
  if (belief.isConnected || rowOfState(model, belief.state).connectionKept !== 'in-window') return noLapse(rule);
  const fromMs = offlineCountStartMs(belief);
  const phase = windowPhase(belief.highWindow, fromMs);
  if (phase.isInside && phase.changesIn > over) return { rule, sinceMs: fromMs, dueMs: fromMs + over };
  // Too little is left of the current window, or it is closed: the count starts when the next one opens.
  const opensIn = phase.isInside ? phase.changesIn + phase.closedFor : phase.changesIn;
  const opensMs = fromMs + opensIn;
  if (windowPhase(belief.highWindow, opensMs).changesIn <= over) return noLapse(rule);
  return { rule, sinceMs: opensMs, dueMs: opensMs + over };
}

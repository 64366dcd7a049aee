/**
 * The judge checks whether what a lock did is allowed (protocol.md §3). It takes the power model, the belief (what it
 * knows about the lock so far) and the next event, and returns the new belief and the findings. It shares only the
 * table in power/model.ts with the simulation in power/step/, so that each can prove the other wrong.
 *
 * {@link judge} returns a new belief: it is for tests and wherever speed does not matter. {@link judgeInPlace} changes
 * the given belief: the gateway judges every ping before acknowledging it, and copying a belief costs more than judging
 * a ping. Both are deterministic, read no clock, and change nothing but the belief and the verdict. Neither throws,
 * whatever values a well-typed event has.
 *
 * A *lapse* is a silence or an idle connection that breaks a rule. A *switch* is a command to switch airplane mode on:
 * while it is unanswered, the lock may be silent because of it.
 */

import type { PowerModel } from '../model.js';
import type { Belief } from './belief.js';
import { noteAskedWindow, updateBelief } from './belief-update.js';
import { assumeAllCommandsKnown, commandAnsweredBy, judgeCommands, noteSentCommand } from './commands.js';
import { connect, disconnect, judgeReceipt, noteReceipt } from './connection.js';
import { judgeAnySource, judgeLockContent } from './content.js';
import { type CommandEvent, type JudgeEvent, newVerdict, type UplinkEvent, type Verdict } from './event.js';
import { clearSilenceReports, judgeTime, scheduleNextLapse } from './lapse.js';
import { judgeNetworkPings } from './network-ping.js';
import { judgePeriod } from './period.js';
import { judgeSequence } from './sequence.js';
import { acknowledgeSwitch, noteReconnected, noteSwitchSent, refuteSwitches } from './switch.js';

/** What {@link judge} returns: the belief after the event, and the event's findings and withdrawals. */
export interface Judgement extends Verdict {
  readonly belief: Belief;
}

/** Judges one event without changing `belief`. */
export function judge(model: PowerModel, belief: Belief, event: JudgeEvent): Judgement {
  const next = structuredClone(belief);
  const verdict = newVerdict();
  judgeInPlace(model, next, event, verdict);
  return { belief: next, ...verdict };
}

/** Judges one event: updates `belief` in place, and adds findings and withdrawals to `verdict`. */
export function judgeInPlace(model: PowerModel, belief: Belief, event: JudgeEvent, verdict: Verdict): void {
  const atMs = advanceTime(model, belief, event.atMs, verdict);
  // A time that is not finite, or that goes back, must not get into the belief.
  const timed = atMs === event.atMs ? event : { ...event, atMs };
  switch (timed.type) {
    case 'uplink':
      if (timed.source === 'phone') judgePhone(belief, timed, verdict);
      else if (timed.novelty === 'repeat') judgeRepeat(model, belief, timed);
      else judgeUplink(model, belief, timed, verdict);
      break;
    case 'connect':
      // A phone's connection says nothing about the lock's.
      if (timed.source === 'phone') break;
      connect(belief, atMs, verdict);
      noteReconnected(belief);
      scheduleNextLapse(model, belief);
      break;
    case 'disconnect':
      if (timed.source === 'phone') break;
      disconnect(belief, timed.cause, atMs, verdict);
      scheduleNextLapse(model, belief);
      break;
    case 'command':
      judgeCommand(model, belief, timed);
      scheduleNextLapse(model, belief);
      break;
    case 'gateway':
      changeListening(belief, timed.state, atMs, verdict);
      scheduleNextLapse(model, belief);
      break;
    case 'tick':
      break;
  }
}

/**
 * Advances the belief to the event's time. Returns the belief's time: a time that is not finite or goes back is
 * ignored.
 */
function advanceTime(model: PowerModel, belief: Belief, atMs: number, verdict: Verdict): number {
  if (atMs > belief.nowMs && atMs < Number.POSITIVE_INFINITY) belief.nowMs = atMs;
  // `dueMs` is the earliest time at which a lapse can start.
  if (belief.nowMs > belief.dueMs) judgeTime(model, belief, belief.nowMs, verdict);
  return belief.nowMs;
}

/**
 * Judges a phone's uplink, only by the rules that apply to every sender. It does not change the belief about the lock.
 */
function judgePhone(belief: Belief, event: UplinkEvent, verdict: Verdict): void {
  if (event.novelty !== 'repeat') judgeAnySource(belief.mac, event, verdict);
}

/**
 * An uplink that was received before is not judged again; it only counts as traffic on the connection. After it the
 * connection can be idle for too long again, although connection-unexplained has been reported.
 */
function judgeRepeat(model: PowerModel, belief: Belief, event: UplinkEvent): void {
  const wasReported = belief.isUnexplainedReported;
  noteReceipt(belief, event);
  belief.isUnexplainedReported = false;
  if (wasReported) scheduleNextLapse(model, belief);
}

/** Judges an uplink of the lock that was not received before with this content. */
function judgeUplink(model: PowerModel, belief: Belief, event: UplinkEvent, verdict: Verdict): void {
  const { body } = event.uplink;
  const wasReported = belief.isUnexplainedReported || belief.isOverdueReported;
  judgeAnySource(belief.mac, event, verdict);
  judgeLockContent(model, belief, event, verdict);
  judgeReceipt(model, belief, event, verdict);
  if (belief.uplinks === 0 && isFirstOfAll(belief, event)) assumeAllCommandsKnown(belief);
  belief.isUnexplainedReported = false;
  // Before judgeCommands, which marks the command as answered.
  const answer = commandAnsweredBy(belief, event);
  judgeSequence(model, belief, event, answer, verdict);
  if (body.kind !== 'ack' && body.reason === 'REASON_PERIOD_TRACKING') judgePeriod(model, belief, event, verdict);
  let isChanged = updateBelief(model, belief, event);
  if (body.kind === 'ack') isChanged = acknowledgeSwitch(belief, body.commandId, event.atMs) || isChanged;
  if (belief.airplaneSwitches.length > 0 && !event.uplink.power.airplane)
    isChanged = refuteSwitches(belief, event.atMs) || isChanged;
  judgeCommands(model, belief, event, verdict);
  judgeNetworkPings(model, belief, event, verdict);
  if (isChanged || wasReported) scheduleNextLapse(model, belief);
}

/**
 * Whether this is the first uplink that the lock ever sent: it has number 1 and came over the lock's first connection.
 * Then no command was sent to it earlier than the judge knows.
 */
function isFirstOfAll(
  { connections, isConnected, firstConnectionMs, connectedSinceMs }: Belief,
  event: UplinkEvent,
): boolean {
  return isConnected && connections === 1 && firstConnectionMs === connectedSinceMs && event.uplink.sequence === 1;
}

function judgeCommand(model: PowerModel, belief: Belief, { id, command, expiresMs, atMs }: CommandEvent): void {
  // Like an uplink, a command is a reason for the connection, which may be idle for too long again afterwards.
  if (belief.isConnected) belief.activityMs = atMs;
  belief.isUnexplainedReported = false;
  noteSentCommand(model, belief, id, command, atMs, expiresMs);
  if (command.type !== 'set-power') return;
  if (command.airplane === true) noteSwitchSent(belief, id, atMs, expiresMs);
  if (command.highWindow !== undefined) noteAskedWindow(belief, id, command.highWindow, atMs);
}

/**
 * The gateway started or stopped listening. No connection survives either. A connection that the belief still has at a
 * start was one to a gateway that crashed. At a start, all silences are counted again (protocol.md §3), so an earlier
 * finding does not suppress a new one.
 */
function changeListening(belief: Belief, state: 'start' | 'stop', atMs: number, verdict: Verdict): void {
  disconnect(belief, 'gateway', atMs, verdict);
  belief.listeningSinceMs = state === 'start' ? atMs : null;
  if (state === 'start') clearSilenceReports(belief);
}

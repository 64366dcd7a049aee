/**
 * `judge` says whether what a lock did is allowed (protocol.md §3). It takes the power model, what is believed of the
 * lock and the next event, and returns the new belief and the findings. It shares nothing with `step` but the table in
 * power/model.ts.
 *
 * There are two ways to call it. {@link judge} does not change the belief it is given and returns a new one: for tests
 * and wherever speed does not matter. {@link judgeInPlace} does the same on the belief that its caller owns: a copy of
 * a belief costs more than judging a ping does, and a gateway judges every ping before it is acknowledged. Either is
 * deterministic, reads no clock and touches nothing but the belief and the verdict.
 *
 * Neither throws, whatever the values of a well-typed event are. Each event is first a tick of its time.
 */

import type { PowerModel } from '../model.js';
import type { Belief } from './belief.js';
import { believe } from './believe.js';
import { connect, disconnect, judgeReceipt, noteReceipt } from './connection.js';
import { judgeAnySource, judgeOwnContent } from './content.js';
import { type CommandEvent, type JudgeEvent, newVerdict, type UplinkEvent, type Verdict } from './event.js';
import { forgetSilences, judgeTime, schedule } from './lapse.js';
import { judgePeriod } from './period.js';
import { judgeSequence } from './sequence.js';
import { acknowledgeSwitch, noteReconnected, refuteSwitches, sendSwitch } from './switch.js';

/** What {@link judge} returns: the belief after the event, and what the event brought. */
export interface Judgement extends Verdict {
  readonly belief: Belief;
}

/** Judges one event and leaves `belief` as it is. */
export function judge(model: PowerModel, belief: Belief, event: JudgeEvent): Judgement {
  const next = structuredClone(belief);
  const out = newVerdict();
  judgeInPlace(model, next, event, out);
  return { belief: next, ...out };
}

/** Judges one event: updates `belief` in place, and adds findings to `out`. */
export function judgeInPlace(model: PowerModel, belief: Belief, event: JudgeEvent, out: Verdict): void {
  const atMs = passTime(model, belief, event.atMs, out);
  // A time that is none, or that goes back, must not get into the belief.
  const timed = atMs === event.atMs ? event : { ...event, atMs };
  switch (timed.type) {
    case 'uplink':
      if (timed.source === 'phone') judgePhone(belief, timed, out);
      else if (timed.copy === 'repeat') repeatUplink(model, belief, timed);
      else judgeUplink(model, belief, timed, out);
      break;
    case 'connect':
      if (timed.source === 'phone') break;
      connect(belief, atMs, out);
      noteReconnected(belief);
      schedule(model, belief);
      break;
    case 'disconnect':
      if (timed.source === 'phone') break;
      disconnect(belief, timed.cause, atMs, out);
      schedule(model, belief);
      break;
    case 'command':
      sendCommand(belief, timed);
      schedule(model, belief);
      break;
    case 'gateway':
      changeListening(belief, timed.state, atMs, out);
      schedule(model, belief);
      break;
    case 'tick':
      break;
  }
}

/** Brings the belief to the event's time. Returns the time that counts: no number, or one that goes back, does not. */
function passTime(model: PowerModel, belief: Belief, atMs: number, out: Verdict): number {
  if (atMs > belief.nowMs && atMs < Number.POSITIVE_INFINITY) belief.nowMs = atMs;
  if (belief.nowMs > belief.dueMs) judgeTime(model, belief, belief.nowMs, out);
  return belief.nowMs;
}

/** Four rules apply to a phone's uplink, and it changes nothing in the belief about the lock. */
function judgePhone(belief: Belief, event: UplinkEvent, out: Verdict): void {
  if (event.copy !== 'repeat') judgeAnySource(belief.mac, event, out);
}

/** The same uplink again is no other uplink: it was judged when it came first, and now shows that there is traffic. */
function repeatUplink(model: PowerModel, belief: Belief, event: UplinkEvent): void {
  const wasReported = belief.isUnexplainedReported;
  noteReceipt(belief, event);
  belief.isUnexplainedReported = false;
  if (wasReported) schedule(model, belief);
}

function judgeUplink(model: PowerModel, belief: Belief, event: UplinkEvent, out: Verdict): void {
  const { body } = event.uplink;
  const wasReported = belief.isUnexplainedReported || belief.isOverdueReported;
  judgeAnySource(belief.mac, event, out);
  judgeOwnContent(model, belief, event, out);
  judgeReceipt(belief, event, out);
  belief.isUnexplainedReported = false;
  judgeSequence(model, belief, event, out);
  if (body.kind !== 'ack' && body.reason === 'REASON_PERIOD_TRACKING') judgePeriod(model, belief, event, out);
  let isChanged = believe(model, belief, event);
  if (body.kind === 'ack') isChanged = acknowledgeSwitch(belief, body.commandId, event.atMs) || isChanged;
  if (belief.airplaneSwitches.length > 0 && !event.uplink.power.airplane)
    isChanged = refuteSwitches(belief, event.atMs) || isChanged;
  if (isChanged || wasReported) schedule(model, belief);
}

function sendCommand(belief: Belief, { id, command, expiresMs, atMs }: CommandEvent): void {
  if (belief.isConnected) belief.activityMs = atMs;
  belief.isUnexplainedReported = false;
  if (command.type === 'set-power' && command.airplane === true) sendSwitch(belief, id, atMs, expiresMs);
}

/**
 * The gateway started or stopped listening. No connection outlives the gateway: at a start, any connection in the
 * belief was one with a gateway that crashed. All silences are counted again from there (protocol.md §3), so an earlier
 * finding does not suppress a new one.
 */
function changeListening(belief: Belief, state: 'start' | 'stop', atMs: number, out: Verdict): void {
  disconnect(belief, 'gateway', atMs, out);
  belief.listeningSinceMs = state === 'start' ? atMs : null;
  if (state === 'start') forgetSilences(belief);
}

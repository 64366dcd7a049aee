/**
 * Explains events of a lock other than uplinks: the lock connected, it disconnected, or a command was sent to it. The
 * caller passes the history around the event. Each explanation is a list of steps (step.ts). Pure.
 */
import type { CommandEvent, ConnectEvent, DisconnectEvent, JudgeEvent, UplinkEvent } from '../power/judge/event.js';
import { describeSpan, describeTime } from '../power/judge/words.js';
import type { PowerModel } from '../power/model.js';
import { isKnownReason } from '../wire/reasons.js';
import { type JudgedHistory, ownUplinks, uplinkLabel } from './history.js';
import {
  afterMomentSteps,
  believedStep,
  CONNECTION_END_WHY,
  lastConnectionEndStep,
  lastUplinkStep,
  uplinkText,
} from './moment.js';
import { REASON_WHY } from './reasons.js';
import { silenceStep } from './silence.js';
import { SECTIONS, step, type WhyStep } from './step.js';

/** For {@link believedStep}: the explained events are in the past, so the gateway's view may have changed since. */
const IS_PAST = true;

/** All steps that explain why a lock or phone connected, what came over the connection, and how it ended. */
export function connectSteps(model: PowerModel, history: JudgedHistory, event: ConnectEvent): WhyStep[] {
  const { atMs } = event;
  if (event.source === 'phone') return [phoneStep(event, 'connected')];
  const { beliefBefore } = history;
  const at = describeTime(atMs);
  const sentence = beliefBefore.isConnected
    ? `The lock connected at ${at}, although it counted as connected since ` +
      `${describeTime(beliefBefore.connectedSinceMs)}: that connection ended then, as a takeover.`
    : `The lock connected at ${at}${offlineText(beliefBefore.offlineSinceMs, atMs)}.`;
  return [
    step('connection', beliefBefore.isConnected ? 'takeover' : 'connected', SECTIONS.events, sentence, atMs),
    believedStep(model, beliefBefore, atMs, IS_PAST),
    ...(beliefBefore.isConnected ? [] : [silenceStep(model, beliefBefore, atMs)]),
    // With the belief before the event, in which the lock's last connection is not yet this one.
    ...lastConnectionEndStep({ ...history, belief: beliefBefore }),
    ...purposeSteps(history.after),
    ...endSteps(history.after, atMs),
  ];
}

function offlineText(offlineSinceMs: number | null, atMs: number): string {
  return offlineSinceMs === null ? '' : `, ${describeSpan(atMs - offlineSinceMs)} after its last connection had ended`;
}

/** What the lock sent over the connection: its first uplink says what the connection was made for. */
function purposeSteps(after: readonly JudgeEvent[]): WhyStep[] {
  const uplinks = ownUplinks(eventsOfConnection(after));
  const [first] = uplinks;
  if (first === undefined)
    return [step('trigger', 'none', SECTIONS.model, 'No uplink of the lock came over this connection.')];
  const count = uplinks.length === 1 ? 'One uplink' : `${uplinks.length} uplinks`;
  const sentence = `${count} came over it. The first was ${uplinkText(first)}: ${triggerText(first)}.`;
  const { body } = first.uplink;
  return [step('trigger', body.kind === 'ack' ? 'ack' : body.reason, SECTIONS.model, sentence, first.atMs)];
}

function triggerText({ uplink: { body } }: UplinkEvent): string {
  if (body.kind === 'ack') return 'sent each time the lock receives a command, to report the outcome';
  if (!isKnownReason(body.reason)) return 'a reason that the specification does not list';
  return body.kind === 'gps' ? REASON_WHY[body.reason].gps : REASON_WHY[body.reason].cellular;
}

/** How the connection ended, if the events that were read say so. */
function endSteps(after: readonly JudgeEvent[], atMs: number): WhyStep[] {
  const end = after.find(endsConnection);
  if (end === undefined)
    return [step('after', 'open', SECTIONS.traces, 'The events that were read do not say how it ended.')];
  const cause = end.type === 'disconnect' ? end.cause : end.type === 'connect' ? 'takeover' : 'gateway';
  const row = CONNECTION_END_WHY[cause];
  const how = hasClosePing(eventsOfConnection(after)) ? row.closed : row.unclosed;
  const sentence = `It ended at ${describeTime(end.atMs)}, after ${describeSpan(end.atMs - atMs)}: ${how}.`;
  return [step('connection', cause, row.restsOn, sentence, end.atMs)];
}

function endsConnection(event: JudgeEvent): boolean {
  if (event.type === 'connect' || event.type === 'disconnect') return event.source === 'lock';
  return event.type === 'gateway' && event.state === 'stop';
}

/** The events before the end of the connection. */
function eventsOfConnection(after: readonly JudgeEvent[]): readonly JudgeEvent[] {
  const end = after.findIndex(endsConnection);
  return end === -1 ? after : after.slice(0, end);
}

/** Whether a close-connection ping came. */
function hasClosePing(events: readonly JudgeEvent[]): boolean {
  return ownUplinks(events).some(({ uplink }) => uplink.body.kind === 'close_connection');
}

/** All steps that explain why a connection ended. */
export function disconnectSteps(model: PowerModel, history: JudgedHistory, event: DisconnectEvent): WhyStep[] {
  const { atMs, cause } = event;
  if (event.source === 'phone') return [phoneStep(event, `disconnected (${cause})`)];
  const { beliefBefore, belief } = history;
  const row = CONNECTION_END_WHY[cause];
  const at = describeTime(atMs);
  if (!beliefBefore.isConnected) {
    const sentence = `A connection ended at ${at} (${cause}), while the lock counted as not connected.`;
    return [step('connection', cause, row.restsOn, sentence, atMs), believedStep(model, belief, atMs, IS_PAST)];
  }
  const { connectedSinceMs, closeSeen } = beliefBefore;
  const how = closeSeen === 'none' ? row.unclosed : row.closed;
  const lasted = describeSpan(atMs - connectedSinceMs);
  const sentence =
    `The connection ended at ${at} (${cause}): ${how}. It had been made at ${describeTime(connectedSinceMs)} and ` +
    `lasted ${lasted}.`;
  return [
    step('connection', cause, row.restsOn, sentence, atMs),
    lastUplinkStep(history),
    believedStep(model, belief, atMs, IS_PAST),
    silenceStep(model, belief, atMs),
    ...afterMomentSteps(model, history, atMs),
  ];
}

function phoneStep({ atMs }: ConnectEvent | DisconnectEvent, action: string): WhyStep {
  const sentence = `A phone ${action} at ${describeTime(atMs)}. It acts for the lock and says nothing about it.`;
  return step('connection', 'phone', SECTIONS.wire, sentence, atMs);
}

/** All steps that explain a command that was sent to a lock, and its answer. */
export function sentCommandSteps(model: PowerModel, history: JudgedHistory, event: CommandEvent): WhyStep[] {
  const { id, command, atMs, expiresMs } = event;
  const expiry = expiresMs === undefined ? '' : ` It expires at ${describeTime(expiresMs)}.`;
  const sent = `Command ${id} (${command.type}) was sent to the lock at ${describeTime(atMs)}.${expiry}`;
  return [
    step('command', 'sent', SECTIONS.wire, sent, atMs),
    ...(history.beliefBefore.isConnected ? [] : [offlineCommandStep(atMs)]),
    believedStep(model, history.beliefBefore, atMs, IS_PAST),
    answerStep(history.after, id, atMs),
  ];
}

function offlineCommandStep(atMs: number): WhyStep {
  const sentence = 'The lock counted as not connected, so the command cannot have reached it then.';
  return step('connection', 'none', SECTIONS.wire, sentence, atMs);
}

function answerStep(after: readonly JudgeEvent[], id: number, sentMs: number): WhyStep {
  const answer = ownUplinks(after).find(({ uplink: { body } }) => body.kind === 'ack' && body.commandId === id);
  if (answer === undefined || answer.uplink.body.kind !== 'ack')
    return step('command', 'unanswered', SECTIONS.wire, 'The events that were read have no answer to it.');
  const span = describeSpan(answer.atMs - sentMs);
  const sentence = `The lock answered ${answer.uplink.body.result} ${span} later (${uplinkLabel(answer.uplink)}).`;
  return step('command', answer.uplink.body.result, SECTIONS.wire, sentence, answer.atMs);
}

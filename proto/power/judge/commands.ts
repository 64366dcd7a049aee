/**
 * The commands that were sent to a lock, and the rules that depend on them (protocol.md §3): locate-unasked,
 * ack-unasked, command-ignored, ack-untrue for set-power, and clock-behind at an acknowledgement. No I/O: the functions
 * change only the given belief (what the judge knows of the lock) and verdict (its findings).
 *
 * The judge knows the commands that were sent since some time and those above some id: from a trace's header, or from
 * the lock's first connection on. It makes no finding that an earlier command could explain. An event's `atMs` is when
 * it happened by the judge's clock, an uplink's `timeMs` when the lock made it by the lock's clock. Conditions such as
 * `!(a > b)` also hold for NaN, so that a value that is no number makes no finding.
 */
import type { Command, CommandAck, PowerChange, PowerSettings } from '../../wire/ping.js';
import type { PowerModel } from '../model.js';
import { BELIEF_LIMITS, type Belief } from './belief.js';
import { keyOf } from './content.js';
import { finding, type UplinkEvent, type Verdict } from './event.js';
import type { Answer } from './in-order/ordered-uplink.js';
import type { Stretch } from './in-order/stretch-state.js';
import { newSentCommand, type SentCommand } from './sent-command.js';
import { NEVER, rowOfState, stateRow } from './state.js';
import { forgetSwitch } from './switch.js';
import { describeSpan, describeTime } from './words.js';

/** Notes a command that was sent, perhaps again. */
export function noteSentCommand(
  model: PowerModel,
  belief: Belief,
  id: number,
  command: Command,
  atMs: number,
  expiresMs: number = NEVER,
): void {
  // The number of the lock's connection; −1 for none.
  const connection = belief.isConnected ? belief.connections : -1;
  const sent = newSentCommand(id, command, atMs, expiresMs, connection);
  const index = belief.commands.findIndex((each) => each.id === id);
  const known = belief.commands[index];
  if (known !== undefined && isSameCommand(known, sent)) {
    known.sentMs = atMs;
    known.connection = connection;
    known.isOverdue = false;
    return;
  }
  // The first command that the judge learns of; from it on it learns of all, and each new one has a greater id.
  if (belief.commandsAboveId === NEVER) belief.commandsAboveId = id - 1;
  if (known !== undefined) belief.commands.splice(index, 1);
  // The judge has forgotten commands up to this id. This one may be such a command, sent again after its answer.
  if (id <= belief.commandsAboveId) sent.isAnswered = true;
  belief.commands.push(sent);
  forgetOldCommands(model, belief, atMs);
}

/**
 * Takes back that a command was sent: its bytes never left, since it was cancelled meanwhile. A command that was sent
 * before `atMs` too may have reached the lock, so it stays.
 */
export function forgetUnsentCommand(belief: Belief, id: number, atMs: number): void {
  const index = belief.commands.findIndex((each) => each.id === id);
  if (belief.commands[index]?.firstSentMs !== atMs) return;
  belief.commands.splice(index, 1);
  belief.askedWindows = belief.askedWindows.filter((each) => each.id !== id);
  forgetSwitch(belief, id, atMs);
}

/** Whether both are the same command sent again. The same id with another command counts as a new command. */
function isSameCommand(one: SentCommand, other: SentCommand): boolean {
  return JSON.stringify(one.command) === JSON.stringify(other.command);
}

/** Forgets the oldest commands: those that can no longer matter to a rule, and those beyond the limit. */
function forgetOldCommands({ bounds }: PowerModel, belief: Belief, atMs: number): void {
  const { commands } = belief;
  while (commands.length > 1) {
    const [oldest] = commands as [SentCommand];
    const isSettled = oldest.isAnswered || oldest.isIgnoredReported || oldest.expiresMs <= atMs;
    // The slack counts twice: once in judgeLocate, and once for a ping that arrives now from a clock that is behind.
    const isOld = atMs - oldest.sentMs > bounds.locateWithin + 2 * bounds.locateSlack;
    if (!(isSettled && isOld) && commands.length <= BELIEF_LIMITS.commands) return;
    commands.shift();
    belief.commandsAboveId = Math.max(belief.commandsAboveId, oldest.id);
    belief.commandsSinceMs = Math.max(belief.commandsSinceMs, oldest.sentMs);
  }
}

/** Called at the lock's first uplink ever: from its first connection on, the judge receives every command. */
export function assumeAllCommandsKnown(belief: Belief): void {
  belief.commandsSinceMs = -NEVER;
  belief.commandsAboveId = 0;
}

/** Which kind of command an uplink answers; `none` for a ping. */
export function commandAnsweredBy(belief: Belief, { uplink: { body } }: UplinkEvent): Answer {
  if (body.kind !== 'ack') return 'none';
  const known = belief.commands.find(({ id }) => id === body.commandId);
  if (known === undefined) return 'unknown';
  const { type } = known.command;
  if (type === 'reset') return 'reset';
  // A lock acknowledges a command each time that it arrives, but carries it out only once.
  if (known.isAnswered) return 'other';
  return body.result === 'ok' && (type === 'unlock' || type === 'lock') ? type : 'other';
}

/** Judges what a new uplink of the lock says about commands. */
export function judgeCommands(model: PowerModel, belief: Belief, event: UplinkEvent, verdict: Verdict): void {
  const { body } = event.uplink;
  if (body.kind === 'ack') judgeAck(model, belief, event, body, verdict);
  else if (body.reason === 'REASON_GPS_PING') judgeLocate(model, belief, event, 'locate-gps', verdict);
  else if (body.reason === 'REASON_CELL_PING') judgeLocate(model, belief, event, 'locate-cell', verdict);
  if (belief.commands.length > 0) markOverdueCommands(model, belief, event);
}

function judgeAck(model: PowerModel, belief: Belief, event: UplinkEvent, ack: CommandAck, verdict: Verdict): void {
  const known = belief.commands.find(({ id }) => id === ack.commandId);
  if (known === undefined) {
    if (!(ack.commandId > belief.commandsAboveId)) return;
    const message = `Command ${ack.commandId} was acknowledged, and was never sent to this lock.`;
    verdict.findings.push(finding('ack-unasked', belief.mac, keyOf(event), event.atMs, message));
    return;
  }
  const behind = known.firstSentMs - event.uplink.timeMs;
  if (belief.isConnected && known.firstConnection === belief.connections && behind > model.bounds.clockBehindOver) {
    const message =
      `The lock’s time ${describeTime(event.uplink.timeMs)} is ${describeSpan(behind)} before command ${known.id}, ` +
      'which it acknowledges, was sent.';
    verdict.findings.push(finding('clock-behind', belief.mac, keyOf(event), event.atMs, message));
  }
  if (!known.isAnswered) judgeFirstAck(belief, event, ack, known, verdict);
  known.isAnswered = true;
}

/**
 * Judges the first acknowledgement of a command by ack-untrue. It must be the newest uplink, and no uplink since the
 * command was sent may be missing. Otherwise this may not be the first acknowledgement, and the lock may have changed
 * its settings again since.
 */
function judgeFirstAck(
  belief: Belief,
  event: UplinkEvent,
  { result, highWindow, commandId }: CommandAck,
  { command: change, firstSentMs }: SentCommand,
  verdict: Verdict,
): void {
  const stretch = newestStretch(belief, event);
  if (stretch === undefined) return;
  if (!(stretch.context.fromMs <= firstSentMs)) {
    // An uplink since the command is missing, so the next ping need not have the lock state that was asked for.
    // `promised` is the lock state that an acknowledgement says a command has brought about.
    stretch.context.promised = 'unknown';
    return;
  }
  if (change.type !== 'set-power' || result !== 'ok') return;
  const untrue = untrueMembers(change, event.uplink.power);
  if (change.highWindow !== undefined && highWindow !== null && !isSameWindow(change.highWindow, highWindow))
    untrue.push('high_window');
  if (untrue.length === 0) return;
  const message = `Command ${commandId} was acknowledged as ok, but not carried out: ${untrue.join(', ')}.`;
  verdict.findings.push(finding('ack-untrue', belief.mac, keyOf(event), event.atMs, message));
}

/** What the in-order rules know of the uplinks up to this one; undefined if it is not the newest uplink of the lock. */
function newestStretch({ runs }: Belief, { uplink, credential }: UplinkEvent): Stretch | undefined {
  const record = runs[runs.length - 1];
  const span = record?.spans[record.spans.length - 1];
  const isNewest = record?.credential === credential && record.boot === uplink.boot && span?.high === uplink.sequence;
  return isNewest ? span.stretch : undefined;
}

/** The settings that the command asked for and that the lock's power does not have, each as a phrase. */
function untrueMembers(change: PowerChange, power: PowerSettings): string[] {
  const untrue: string[] = [];
  if (change.mode !== undefined && change.mode !== power.mode) untrue.push(`mode is ${power.mode}`);
  if (change.rideTracking !== undefined && change.rideTracking !== power.rideTracking)
    untrue.push(`ride_tracking is ${power.rideTracking ? 'on' : 'off'}`);
  if (change.airplane !== undefined && change.airplane !== power.airplane)
    untrue.push(`airplane is ${power.airplane ? 'on' : 'off'}`);
  if (change.recovery !== undefined && change.recovery !== power.recovery)
    untrue.push(`recovery is ${power.recovery ? 'on' : 'off'}`);
  return untrue;
}

function isSameWindow(a: PowerChange['highWindow'], b: PowerChange['highWindow']): boolean {
  return a?.fromMinute === b?.fromMinute && a?.toMinute === b?.toMinute && a?.utcOffsetMinutes === b?.utcOffsetMinutes;
}

/** locate-unasked: a located position must follow a command of its kind. */
function judgeLocate(
  { bounds }: PowerModel,
  belief: Belief,
  event: UplinkEvent,
  type: 'locate-gps' | 'locate-cell',
  verdict: Verdict,
): void {
  const { timeMs, body } = event.uplink;
  // The slack allows for a difference between the lock's clock and the judge's.
  const fromMs = timeMs - bounds.locateWithin - bounds.locateSlack;
  const toMs = timeMs + bounds.locateSlack;
  if (!(belief.commandsSinceMs <= fromMs) || body.kind === 'ack') return;
  if (belief.commands.some((each) => each.command.type === type && each.firstSentMs <= toMs && each.sentMs >= fromMs))
    return;
  const message = `${body.reason} was sent, and no ${type} command in the ${describeSpan(bounds.locateWithin)} before.`;
  verdict.findings.push(finding('locate-unasked', belief.mac, keyOf(event), event.atMs, message));
}

/**
 * Marks commands that the lock had time to answer. On the connection over which the command was sent, an uplink came
 * that was made over 3 min later. That uplink reports that nothing else waits in the lock (`kept` = 0), so no
 * acknowledgement is on its way. And no uplink since the command is from a state that takes no commands.
 */
function markOverdueCommands(model: PowerModel, belief: Belief, event: UplinkEvent): void {
  if (!belief.isConnected) return;
  const { bounds } = model;
  const { kept, timeMs, power, body } = event.uplink;
  // The uplink may be older than the newest one, from which the belief has its state.
  const ownState = stateRow(model, power, body.kind === 'ack' ? belief.batteryPercent : body.batteryPercent);
  const takesCommands = ownState.commands && rowOfState(model, belief.state).commands;
  for (const each of belief.commands) {
    if (each.isAnswered || each.isOverdue || each.connection !== belief.connections) continue;
    // The lock may have ignored the command on purpose, so it can't become overdue on this connection.
    if (!takesCommands) each.connection = -1;
    else if (kept > 0 || mayBeDiscarded(belief, event, each)) continue;
    // By both clocks: a late arrival, or a lock's clock that is ahead, does not show that the lock had time.
    else if (Math.min(event.atMs, timeMs) - each.sentMs > bounds.ignoredAfter) {
      each.isOverdue = true;
      belief.dueMs = Math.min(belief.dueMs, each.expiresMs);
    }
  }
}

/** Whether a lock whose buffer was full may have discarded the acknowledgement: then a number is missing since. */
function mayBeDiscarded(belief: Belief, event: UplinkEvent, { sentMs }: SentCommand): boolean {
  if (event.uplink.dropped === 0) return false;
  const stretch = newestStretch(belief, event);
  return stretch === undefined || !(stretch.context.fromMs <= sentMs);
}

/** When the next overdue command expires; {@link NEVER} if no command is overdue. */
export function nextIgnoredMs({ commands }: Belief): number {
  let nextMs = NEVER;
  for (const each of commands) {
    if (each.isOverdue && !each.isAnswered && !each.isIgnoredReported) nextMs = Math.min(nextMs, each.expiresMs);
  }
  return nextMs;
}

/** Reports the overdue commands that have expired by `atMs`. */
export function judgeIgnored(belief: Belief, atMs: number, verdict: Verdict): void {
  if (atMs <= nextIgnoredMs(belief)) return;
  for (const each of belief.commands) {
    if (!each.isOverdue || each.isAnswered || each.isIgnoredReported || atMs <= each.expiresMs) continue;
    each.isIgnoredReported = true;
    const message =
      `Command ${each.id} (${each.command.type}) was sent at ${describeTime(each.sentMs)} and expired at ` +
      `${describeTime(each.expiresMs)} without an acknowledgement, though the lock sent uplinks on that connection.`;
    verdict.findings.push(finding('command-ignored', belief.mac, null, atMs, message));
  }
}

/**
 * Makes uplinks, buffers them until they are acknowledged, and sends them one at a time (protocol.md §1, §2). No I/O:
 * the functions change only the context of the step (the lock's state and effects) that they are given.
 */
import type { CommandAck, Ping, Position, Uplink } from '../../wire/ping.js';
import type { KnownReason } from '../../wire/reasons.js';
import type { GpsFix, StepEffect } from './io.js';
import { isSilent } from './reading.js';
import type { FinishedCommand, StepContext } from './state.js';

/** Where a new uplink is put among those that wait: behind all, or ahead of all that may be delayed. */
type QueuePosition = 'in-order' | 'overtaking';

/** Makes a cellular ping with the lock's current values. A theft or reset ping overtakes others (protocol.md §2). */
export function makeCellular(context: StepContext, reason: KnownReason, position: Position | null = null): void {
  const { state } = context;
  const overtakes = reason === 'REASON_THEFT' || reason === 'REASON_RESET';
  makePing(context, overtakes ? 'overtaking' : 'in-order', {
    kind: 'cellular',
    reason,
    lockState: state.lockState,
    batteryPercent: state.batteryPercent,
    firmwareVersion: state.firmwareVersion,
    ebikeVolts: state.ebikeVolts,
    tetherState: state.tetherState,
    position,
  });
}

/** Makes a GPS ping from the current GPS measurement. */
export function makeGps(context: StepContext, reason: KnownReason, fix: GpsFix): void {
  const { state } = context;
  state.lastFixMs = context.nowMs;
  makePing(context, 'in-order', {
    kind: 'gps',
    reason,
    lockState: state.lockState,
    batteryPercent: state.batteryPercent,
    ebikeVolts: state.ebikeVolts,
    tetherState: state.tetherState,
    position: fix.position,
    speedMetersPerSecond: fix.speedMetersPerSecond,
    directionDegrees: fix.directionDegrees,
  });
}

/** Makes the close-connection ping, which announces that the lock leaves the network. */
export function makeClose(context: StepContext): void {
  const { state } = context;
  makePing(context, 'in-order', {
    kind: 'close_connection',
    reason: 'REASON_CLOSE_CONNECTION',
    lockState: state.lockState,
    batteryPercent: state.batteryPercent,
  });
  if (state.power.airplane) state.airplaneTold = true;
}

/** Makes the acknowledgement of a finished command. */
export function makeAck(context: StepContext, command: FinishedCommand): void {
  const body: CommandAck = {
    kind: 'ack',
    commandId: command.id,
    result: command.result,
    detail: command.detail,
    highWindow: command.setsPower ? context.state.highWindow : null,
  };
  makeUplink(context, 'in-order', body);
}

function makePing(context: StepContext, queuePosition: QueuePosition, ping: Ping): void {
  context.state.toldLockState = ping.lockState;
  context.state.toldInSilence = isSilent(context.row);
  makeUplink(context, queuePosition, ping);
}

function makeUplink(context: StepContext, queuePosition: QueuePosition, body: Ping | CommandAck): void {
  const { state } = context;
  if (state.waiting.length >= context.model.bufferUplinks) discardOldest(context);
  if (!state.power.airplane) state.airplaneTold = false;
  state.sequence++;
  const uplink: Uplink = {
    boot: state.boot,
    sequence: state.sequence,
    timeMs: context.nowMs,
    power: state.power,
    kept: state.waiting.length,
    dropped: state.dropped,
    body,
  };
  context.effects.push({ type: 'made', uplink });
  if (state.waiting.length === 0) state.waiting = [uplink];
  else if (queuePosition === 'in-order') state.waiting = [...state.waiting, uplink];
  else state.waiting = state.waiting.toSpliced(overtakingIndex(context), 0, uplink);
}

/** The index for an overtaking uplink. It must not delay the uplink in flight, nor older cellular pings of a theft. */
function overtakingIndex(context: StepContext): number {
  const { waiting, inFlight } = context.state;
  let index = inFlight ? 1 : 0;
  for (; index < waiting.length; index++) {
    const body = waiting[index]?.body;
    if (body?.kind !== 'cellular' || body.reason !== 'REASON_THEFT') break;
  }
  return index;
}

/**
 * Discards the oldest uplink that is not REASON_THEFT, or else the oldest REASON_THEFT; never the uplink in flight
 * (protocol.md §2).
 */
function discardOldest(context: StepContext): void {
  const { state } = context;
  const first = state.inFlight ? 1 : 0;
  const indexWithoutTheft = indexOfOldest(state.waiting, first, 'other');
  const index = indexWithoutTheft < 0 ? indexOfOldest(state.waiting, first, 'theft') : indexWithoutTheft;
  const uplink = state.waiting[index];
  if (uplink === undefined) return;
  state.waiting = state.waiting.toSpliced(index, 1);
  state.dropped++;
  context.effects.push({ type: 'discarded', uplink });
}

/** The index, from `first` on, of the oldest uplink that is REASON_THEFT, or that is not; −1 if there is none. */
function indexOfOldest(waiting: readonly Uplink[], first: number, kind: 'theft' | 'other'): number {
  let oldestIndex = -1;
  let oldest: Uplink | undefined;
  for (let index = first; index < waiting.length; index++) {
    const uplink = waiting[index];
    if (uplink === undefined || isTheft(uplink) !== (kind === 'theft')) continue;
    if (oldest !== undefined && !isOlder(uplink, oldest)) continue;
    oldest = uplink;
    oldestIndex = index;
  }
  return oldestIndex;
}

function isOlder(a: Uplink, b: Uplink): boolean {
  return a.boot === b.boot ? a.sequence < b.sequence : a.boot < b.boot;
}

/** Whether an uplink is a ping of a theft. */
export function isTheft(uplink: Uplink): boolean {
  return uplink.body.kind !== 'ack' && uplink.body.reason === 'REASON_THEFT';
}

/** Sends the first waiting uplink. The caller ensures that the connection is up and nothing is in flight. */
export function publishFirst(context: StepContext): void {
  const { state } = context;
  const uplink = state.waiting[0];
  if (uplink === undefined) return;
  state.inFlight = true;
  state.sentOnLink++;
  state.trafficAtMs = context.nowMs;
  const publish: StepEffect = { type: 'publish', uplink };
  context.effects.push(publish);
}

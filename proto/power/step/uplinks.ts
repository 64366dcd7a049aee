/** Making uplinks, keeping them until they are acknowledged, and sending them one at a time (protocol.md §1, §2). */
import type { CommandAck, Ping, Position, Uplink } from '../../wire/ping.js';
import type { KnownReason } from '../../wire/reasons.js';
import type { GpsFix, StepEffect } from './io.js';
import { isSilent } from './reading.js';
import type { FinishedCommand, Turn } from './state.js';

/** Where an uplink joins those that wait: behind them, or ahead of all but those that overtook before it. */
type Place = 'in-order' | 'overtaking';

/** Makes a cellular ping with what the lock senses now. A theft's overtakes what waits (protocol.md §2). */
export function makeCellular(turn: Turn, reason: KnownReason, position: Position | null = null): void {
  const { state } = turn;
  const overtakes = reason === 'REASON_THEFT' || reason === 'REASON_RESET';
  makePing(turn, overtakes ? 'overtaking' : 'in-order', {
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

/** Makes a GPS ping at the place and with the motion that GPS reads now. */
export function makeGps(turn: Turn, reason: KnownReason, fix: GpsFix): void {
  const { state } = turn;
  state.lastFixMs = turn.nowMs;
  makePing(turn, 'in-order', {
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

/** Makes the ping that says that the lock leaves the network. */
export function makeClose(turn: Turn): void {
  const { state } = turn;
  makePing(turn, 'in-order', {
    kind: 'close_connection',
    reason: 'REASON_CLOSE_CONNECTION',
    lockState: state.lockState,
    batteryPercent: state.batteryPercent,
  });
  if (state.power.airplane) state.airplaneTold = true;
}

/** Makes the acknowledgement of a command that is done with. */
export function makeAck(turn: Turn, command: FinishedCommand): void {
  const body: CommandAck = {
    kind: 'ack',
    commandId: command.id,
    result: command.result,
    detail: command.detail,
    highWindow: command.setsPower ? turn.state.highWindow : null,
  };
  make(turn, 'in-order', body);
}

function makePing(turn: Turn, place: Place, ping: Ping): void {
  turn.state.toldLockState = ping.lockState;
  turn.state.toldInSilence = isSilent(turn.row);
  make(turn, place, ping);
}

function make(turn: Turn, place: Place, body: Ping | CommandAck): void {
  const { state } = turn;
  if (state.waiting.length >= turn.model.bufferUplinks) discardOne(turn);
  if (!state.power.airplane) state.airplaneTold = false;
  state.sequence++;
  const uplink: Uplink = {
    boot: state.boot,
    sequence: state.sequence,
    timeMs: turn.nowMs,
    power: state.power,
    kept: state.waiting.length,
    dropped: state.dropped,
    body,
  };
  turn.effects.push({ type: 'made', uplink });
  if (state.waiting.length === 0) state.waiting = [uplink];
  else if (place === 'in-order') state.waiting = [...state.waiting, uplink];
  else state.waiting = state.waiting.toSpliced(placeOfOvertaking(turn), 0, uplink);
}

/** Behind the uplink in flight and behind the theft's cellular pings that wait already. */
function placeOfOvertaking(turn: Turn): number {
  const { waiting, inFlight } = turn.state;
  let place = inFlight ? 1 : 0;
  for (; place < waiting.length; place++) {
    const body = waiting[place]?.body;
    if (body?.kind !== 'cellular' || body.reason !== 'REASON_THEFT') break;
  }
  return place;
}

/** The oldest that is not REASON_THEFT goes first, then the oldest theft; never the one in flight (protocol.md §2). */
function discardOne(turn: Turn): void {
  const { state } = turn;
  const first = state.inFlight ? 1 : 0;
  const other = oldest(state.waiting, first, false);
  const found = other < 0 ? oldest(state.waiting, first, true) : other;
  const uplink = state.waiting[found];
  if (uplink === undefined) return;
  state.waiting = state.waiting.toSpliced(found, 1);
  state.dropped++;
  turn.effects.push({ type: 'discarded', uplink });
}

/** Where the oldest of the thefts, or of all else, stands from `first` on; −1 where there is none. */
function oldest(waiting: readonly Uplink[], first: number, ofTheft: boolean): number {
  let found = -1;
  let best: Uplink | undefined;
  for (let index = first; index < waiting.length; index++) {
    const uplink = waiting[index];
    if (uplink === undefined || isTheft(uplink) !== ofTheft) continue;
    if (best !== undefined && !isOlder(uplink, best)) continue;
    best = uplink;
    found = index;
  }
  return found;
}

function isOlder(one: Uplink, other: Uplink): boolean {
  return one.boot === other.boot ? one.sequence < other.sequence : one.boot < other.boot;
}

/** Whether an uplink is a ping of a theft. */
export function isTheft(uplink: Uplink): boolean {
  return uplink.body.kind !== 'ack' && uplink.body.reason === 'REASON_THEFT';
}

/** Sends the first that waits. The caller has seen that the connection is up and nothing is in flight. */
export function publishFirst(turn: Turn): void {
  const { state } = turn;
  const uplink = state.waiting[0];
  if (uplink === undefined) return;
  state.inFlight = true;
  state.sentOnLink++;
  state.trafficAtMs = turn.nowMs;
  const publish: StepEffect = { type: 'publish', uplink };
  turn.effects.push(publish);
}

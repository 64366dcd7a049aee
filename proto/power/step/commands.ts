/** Commands: each id is carried out once and acknowledged each time that it arrives (protocol.md §1, §2). */
import { Seconds } from '../../clock.js';
import type { CommandResult, Downlink, HighWindow, PowerChange, PowerSettings } from '../../wire/ping.js';
import { searchEndsMs } from './gps.js';
import { effectiveRow, isSilent, NEVER, triggerRow } from './reading.js';
import { COMMANDS_REMEMBERED, type FinishedCommand, type Turn } from './state.js';
import { changeLockState, planPeriod } from './triggers.js';
import { makeAck, makeCellular, makeClose, makeGps } from './uplinks.js';

const UNLOCK = Object.freeze({ type: 'unlock' });
const LOCK = Object.freeze({ type: 'lock' });

const MINUTES_OF_DAY = 1440;

/** A command arrived. In a state that takes none it is as if it had not: no answer may leave the lock. */
export function onCommand(turn: Turn, downlink: Downlink): void {
  const { state, row, nowMs } = turn;
  if (state.link !== 'up' || !row.commands) return;
  state.trafficAtMs = nowMs;
  const { id } = downlink;
  const before = state.finished.find((finished) => finished.id === id);
  if (before !== undefined) makeAck(turn, before);
  else if (joinsPending(turn, id)) return;
  else if (nowMs >= downlink.expiresMs) finish(turn, id, 'rejected', 'expired');
  else carryOut(turn, downlink);
}

/** The same id again while it is being carried out: one more acknowledgement when it is done. */
function joinsPending({ state }: Turn, id: number): boolean {
  if (state.locating.includes(id)) state.locating = [...state.locating, id];
  else if (state.locatingByCell.includes(id)) state.locatingByCell = [...state.locatingByCell, id];
  else if (state.locking.includes(id)) state.locking = [...state.locking, id];
  else return false;
  return true;
}

function carryOut(turn: Turn, { id, command }: Downlink): void {
  const { state } = turn;
  switch (command.type) {
    case 'unlock':
      unlock(turn, id);
      break;
    case 'lock':
      startLocking(turn, id);
      break;
    case 'siren':
      turn.effects.push({ type: 'siren', durationMs: Seconds(command.seconds) });
      finish(turn, id, 'ok', '');
      break;
    case 'locate-gps':
      state.locating = [...state.locating, id];
      state.locatingUntilMs = searchEndsMs(turn);
      break;
    case 'locate-cell':
      state.locatingByCell = [...state.locatingByCell, id];
      break;
    case 'set-power':
      setPower(turn, id, command);
      break;
    case 'reset':
      finish(turn, id, 'ok', '');
      makeClose(turn);
      state.resetAfterClose = true;
      break;
  }
}

/** The tone sounds once, for however many commands. */
function startLocking(turn: Turn, id: number): void {
  const { state, nowMs } = turn;
  const durationMs = turn.model.timings.lockWarningTone;
  state.locking = [...state.locking, id];
  if (state.lockingAtMs !== NEVER) return;
  state.lockingAtMs = nowMs + durationMs;
  turn.effects.push({ type: 'tone', durationMs });
}

function unlock(turn: Turn, id: number): void {
  failLocking(turn, 'overtaken by an unlock');
  if (turn.state.lockState !== 'unlocked') {
    turn.effects.push(UNLOCK);
    changeLockState(turn, 'unlocked');
  }
  finish(turn, id, 'ok', '');
}

/** Closes the lock when its warning tone has ended. */
export function settleLocking(turn: Turn): void {
  const { state } = turn;
  if (state.locking.length === 0 || turn.nowMs < state.lockingAtMs) return;
  if (state.lockState !== 'locked') {
    turn.effects.push(LOCK);
    changeLockState(turn, 'locked');
  }
  const ids = state.locking;
  state.locking = [];
  state.lockingAtMs = NEVER;
  finishAll(turn, ids, 'ok', '');
}

function failLocking(turn: Turn, detail: string): void {
  const ids = turn.state.locking;
  if (ids.length === 0) return;
  turn.state.locking = [];
  turn.state.lockingAtMs = NEVER;
  finishAll(turn, ids, 'failed', detail);
}

/** One GPS ping for all that asked, when there is a fix; otherwise they are acknowledged as failed. */
export function advanceLocate(turn: Turn): void {
  const { state, nowMs, fix, model } = turn;
  const ids = state.locating;
  if (ids.length === 0) return;
  const isOver = state.gps !== 'fixed' && nowMs >= state.locatingUntilMs;
  if (fix === null && !isOver) return;
  state.locating = [];
  state.locatingUntilMs = NEVER;
  if (fix === null) {
    finishAll(turn, ids, 'failed', 'no fix');
    return;
  }
  const reason = triggerRow(model, 'locate-gps')?.gpsReason;
  if (reason) makeGps(turn, reason, fix);
  finishAll(turn, ids, 'ok', '');
}

/** The same with the place that the network tells, in the next tick. */
export function advanceLocateByCell(turn: Turn): void {
  const { state, model } = turn;
  const ids = state.locatingByCell;
  if (ids.length === 0 || !turn.ticked) return;
  state.locatingByCell = [];
  if (turn.cellPosition === null) {
    finishAll(turn, ids, 'failed', 'no position');
    return;
  }
  const reason = triggerRow(model, 'locate-cell')?.cellularReason;
  if (reason) makeCellular(turn, reason, turn.cellPosition);
  finishAll(turn, ids, 'ok', '');
}

function setPower(turn: Turn, id: number, change: PowerChange): void {
  const wrong = change.highWindow === undefined ? undefined : wrongWindow(change.highWindow);
  if (wrong === undefined) applySettings(turn, change);
  finish(turn, id, wrong === undefined ? 'ok' : 'rejected', wrong ?? '', true);
}

/** What is wrong with a high window; undefined where nothing is. The gateway may be of another build. */
function wrongWindow({ fromMinute, toMinute, utcOffsetMinutes }: HighWindow): string | undefined {
  const isMinute = (value: number): boolean => Number.isInteger(value) && value >= 0 && value < MINUTES_OF_DAY;
  if (!isMinute(fromMinute) || !isMinute(toMinute)) return 'the high window is outside the day';
  return isMinute(Math.abs(utcOffsetMinutes)) ? undefined : 'the UTC offset is over a day';
}

/** Takes on power settings, by hand or by command. */
export function applySettings(turn: Turn, change: PowerChange): void {
  const { state } = turn;
  const { mode = state.power.mode, rideTracking = state.power.rideTracking } = change;
  const { airplane = state.power.airplane, recovery = state.power.recovery } = change;
  if (change.highWindow !== undefined) state.highWindow = change.highWindow;
  // A ride that is on searches for a fix from now.
  if (rideTracking && !state.power.rideTracking) state.trackGpsUntilMs = searchEndsMs(turn);
  takeOn(turn, { mode, rideTracking, airplane, recovery }, state.batteryPercent);
}

/** Takes on settings and battery, and does what the effective state asks for that is entered or left by them. */
export function takeOn(turn: Turn, power: PowerSettings, batteryPercent: number): void {
  const { state } = turn;
  const row = effectiveRow(turn.model, power, batteryPercent);
  const isEntered = row.state !== state.stateName;
  // What was asked of the lock is answered before it falls silent, and so under the settings of before.
  if (isEntered && isSilent(row)) abandonCommands(turn);
  // What falls where the state forbids it is left out, not caught up.
  if (isEntered && !turn.row.period) planPeriod(turn);
  state.power = power;
  state.batteryPercent = batteryPercent;
  if (!isEntered) return;
  state.stateName = row.state;
  turn.row = row;
  state.retryAtMs = turn.nowMs;
  state.failures = 0;
  state.farewell = isSilent(row) ? 'due' : 'none';
  if (!row.stateChange) state.stateGpsUntilMs = NEVER;
  if (!row.period) state.periodGpsUntilMs = NEVER;
  // A theft that goes on tells the new state by its own next ping, at once.
  if (isSilent(row) && state.tracking === 'theft') state.trackCellAtMs = NEVER;
}

function abandonCommands(turn: Turn): void {
  const { state } = turn;
  const ids = [...state.locating, ...state.locatingByCell];
  state.locating = [];
  state.locatingByCell = [];
  state.locatingUntilMs = NEVER;
  failLocking(turn, 'the lock falls silent');
  finishAll(turn, ids, 'failed', 'the lock falls silent');
}

/** Acknowledges each arrival; the command itself is finished once. */
function finishAll(turn: Turn, ids: readonly number[], result: CommandResult, detail: string): void {
  for (const id of ids) {
    const before = turn.state.finished.find((finished) => finished.id === id);
    if (before === undefined) finish(turn, id, result, detail);
    else makeAck(turn, before);
  }
}

function finish(turn: Turn, id: number, result: CommandResult, detail: string, setsPower = false): void {
  const { state } = turn;
  const command: FinishedCommand = { id, result, detail, setsPower };
  state.finished = [...state.finished.slice(1 - COMMANDS_REMEMBERED), command];
  turn.effects.push({ type: 'finished', commandId: id, result, detail });
  makeAck(turn, command);
}

/**
 * Carries out commands: each id once, with an acknowledgement each time that it arrives (protocol.md §1, §2). Also
 * applies power settings, set by command or at the lock. No I/O: the functions change only the context of the step (the
 * lock's state and effects) that they are given.
 */
import { Seconds } from '../../clock.js';
import type { CommandResult, Downlink, HighWindow, PowerChange, PowerSettings } from '../../wire/ping.js';
import { searchEndsMs } from './gps.js';
import { effectiveRow, isSilent, NEVER, triggerRow } from './reading.js';
import { type FinishedCommand, MAX_COMMANDS_REMEMBERED, type StepContext } from './state.js';
import { changeLockState, planPeriod } from './triggers.js';
import { makeAck, makeCellular, makeClose, makeGps } from './uplinks.js';

const UNLOCK = Object.freeze({ type: 'unlock' });
const LOCK = Object.freeze({ type: 'lock' });

const MINUTES_OF_DAY = 1440;

/** A command arrived. In a state that takes no commands the lock ignores it, since no answer may leave the lock. */
export function onCommand(context: StepContext, downlink: Downlink): void {
  const { state, row, nowMs } = context;
  if (state.link !== 'up' || !row.commands) return;
  state.trafficAtMs = nowMs;
  const { id } = downlink;
  const finishedBefore = state.finished.find((finished) => finished.id === id);
  if (finishedBefore !== undefined) makeAck(context, finishedBefore);
  else if (joinPendingCommand(context, id)) return;
  else if (nowMs >= downlink.expiresMs) finish(context, id, 'rejected', 'expired');
  else carryOut(context, downlink);
}

/**
 * If the command with this id is already being carried out, notes that the lock owes one more acknowledgement when it
 * has finished. Returns whether the command is being carried out.
 */
function joinPendingCommand({ state }: StepContext, id: number): boolean {
  if (state.locatingByGps.includes(id)) state.locatingByGps = [...state.locatingByGps, id];
  else if (state.locatingByCell.includes(id)) state.locatingByCell = [...state.locatingByCell, id];
  else if (state.locking.includes(id)) state.locking = [...state.locking, id];
  else return false;
  return true;
}

function carryOut(context: StepContext, { id, command }: Downlink): void {
  const { state } = context;
  switch (command.type) {
    case 'unlock':
      unlock(context, id);
      break;
    case 'lock':
      startLocking(context, id);
      break;
    case 'siren':
      context.effects.push({ type: 'siren', durationMs: Seconds(command.seconds) });
      finish(context, id, 'ok', '');
      break;
    case 'locate-gps':
      state.locatingByGps = [...state.locatingByGps, id];
      state.locatingByGpsUntilMs = searchEndsMs(context);
      break;
    case 'locate-cell':
      state.locatingByCell = [...state.locatingByCell, id];
      break;
    case 'set-power':
      setPower(context, id, command);
      break;
    case 'reset':
      finish(context, id, 'ok', '');
      makeClose(context);
      state.resetAfterClose = true;
      break;
  }
}

/** Starts the warning tone. It sounds once, however many lock commands wait for its end. */
function startLocking(context: StepContext, id: number): void {
  const { state, nowMs } = context;
  const durationMs = context.model.timings.lockWarningTone;
  state.locking = [...state.locking, id];
  if (state.lockingAtMs !== NEVER) return;
  state.lockingAtMs = nowMs + durationMs;
  context.effects.push({ type: 'tone', durationMs });
}

function unlock(context: StepContext, id: number): void {
  failLocking(context, 'overtaken by an unlock');
  if (context.state.lockState !== 'unlocked') {
    context.effects.push(UNLOCK);
    changeLockState(context, 'unlocked');
  }
  finish(context, id, 'ok', '');
}

/** Closes the lock when its warning tone has ended. */
export function settleLocking(context: StepContext): void {
  const { state } = context;
  if (state.locking.length === 0 || context.nowMs < state.lockingAtMs) return;
  if (state.lockState !== 'locked') {
    context.effects.push(LOCK);
    changeLockState(context, 'locked');
  }
  const ids = state.locking;
  state.locking = [];
  state.lockingAtMs = NEVER;
  finishAll(context, ids, 'ok', '');
}

/** Stops the warning tone and answers the waiting lock commands as failed. */
function failLocking(context: StepContext, detail: string): void {
  const ids = context.state.locking;
  if (ids.length === 0) return;
  context.state.locking = [];
  context.state.lockingAtMs = NEVER;
  finishAll(context, ids, 'failed', detail);
}

/** Answers all waiting commands to locate by GPS: with one GPS ping at a fix, or as failed when the search is over. */
export function advanceLocate(context: StepContext): void {
  const { state, nowMs, fix, model } = context;
  const ids = state.locatingByGps;
  if (ids.length === 0) return;
  const isOver = state.gps !== 'fixed' && nowMs >= state.locatingByGpsUntilMs;
  if (fix === null && !isOver) return;
  state.locatingByGps = [];
  state.locatingByGpsUntilMs = NEVER;
  if (fix === null) {
    finishAll(context, ids, 'failed', 'no fix');
    return;
  }
  const reason = triggerRow(model, 'locate-gps')?.gpsReason;
  if (reason) makeGps(context, reason, fix);
  finishAll(context, ids, 'ok', '');
}

/** Answers all waiting commands to locate by cell, in the tick that carries the network's position. */
export function advanceLocateByCell(context: StepContext): void {
  const { state, model } = context;
  const ids = state.locatingByCell;
  if (ids.length === 0 || !context.isTick) return;
  state.locatingByCell = [];
  if (context.cellPosition === null) {
    finishAll(context, ids, 'failed', 'no position');
    return;
  }
  const reason = triggerRow(model, 'locate-cell')?.cellularReason;
  if (reason) makeCellular(context, reason, context.cellPosition);
  finishAll(context, ids, 'ok', '');
}

function setPower(context: StepContext, id: number, change: PowerChange): void {
  const problem = change.highWindow === undefined ? undefined : windowProblem(change.highWindow);
  if (problem === undefined) applySettings(context, change);
  const setsPower = true;
  finish(context, id, problem === undefined ? 'ok' : 'rejected', problem ?? '', setsPower);
}

/** What is wrong with a high window; undefined if it is valid. A gateway of another version may send an invalid one. */
function windowProblem({ fromMinute, toMinute, utcOffsetMinutes }: HighWindow): string | undefined {
  const isMinute = (value: number): boolean => Number.isInteger(value) && value >= 0 && value < MINUTES_OF_DAY;
  if (!isMinute(fromMinute) || !isMinute(toMinute)) return 'the high window is outside the day';
  return isMinute(Math.abs(utcOffsetMinutes)) ? undefined : 'the UTC offset is over a day';
}

/** Applies new power settings. */
export function applySettings(context: StepContext, change: PowerChange): void {
  const { state } = context;
  const { mode = state.power.mode, rideTracking = state.power.rideTracking } = change;
  const { airplane = state.power.airplane, recovery = state.power.recovery } = change;
  if (change.highWindow !== undefined) state.highWindow = change.highWindow;
  // If a ride is going on, the lock starts to search for a fix now.
  if (rideTracking && !state.power.rideTracking) state.trackGpsUntilMs = searchEndsMs(context);
  applyPowerState(context, { mode, rideTracking, airplane, recovery }, state.batteryPercent);
}

/** Applies settings and battery level. If they lead to another effective state, the lock enters it. */
export function applyPowerState(context: StepContext, power: PowerSettings, batteryPercent: number): void {
  const { state } = context;
  const row = effectiveRow(context.model, power, batteryPercent);
  const isOtherState = row.state !== state.stateName;
  // The lock answers waiting commands before it falls silent, and so with its old settings.
  if (isOtherState && isSilent(row)) abandonCommands(context);
  // Period pings that the old state forbade are skipped, not sent later.
  if (isOtherState && !context.row.period) planPeriod(context);
  state.power = power;
  state.batteryPercent = batteryPercent;
  if (!isOtherState) return;
  state.stateName = row.state;
  context.row = row;
  // A lock that has waited to connect again tries at once in its new state.
  state.retryAtMs = context.nowMs;
  state.failures = 0;
  state.silenceNotice = isSilent(row) ? 'due' : 'none';
  if (!row.stateChange) state.stateGpsUntilMs = NEVER;
  if (!row.period) state.periodGpsUntilMs = NEVER;
  // In LOW_BATTERY, a silent state, a theft goes on. It reports the new state at once: its next ping is due, as if it
  // had made none yet. The close-connection ping follows after the theft.
  if (isSilent(row) && state.tracking === 'theft') state.trackCellAtMs = NEVER;
}

/** Answers all waiting commands as failed, because the lock falls silent. */
function abandonCommands(context: StepContext): void {
  const { state } = context;
  const ids = [...state.locatingByGps, ...state.locatingByCell];
  state.locatingByGps = [];
  state.locatingByCell = [];
  state.locatingByGpsUntilMs = NEVER;
  failLocking(context, 'the lock falls silent');
  finishAll(context, ids, 'failed', 'the lock falls silent');
}

/** Finishes commands. Each id in the list gets an acknowledgement; an id that is listed twice is finished once. */
function finishAll(context: StepContext, ids: readonly number[], result: CommandResult, detail: string): void {
  for (const id of ids) {
    const finishedBefore = context.state.finished.find((finished) => finished.id === id);
    if (finishedBefore === undefined) finish(context, id, result, detail);
    else makeAck(context, finishedBefore);
  }
}

/**
 * Remembers the outcome of a command, so that it is not carried out again, and acknowledges the command. With
 * `setsPower`, for a set-power, the acknowledgement has the high window that is now in force.
 */
function finish(context: StepContext, id: number, result: CommandResult, detail: string, setsPower = false): void {
  const { state } = context;
  const command: FinishedCommand = { id, result, detail, setsPower };
  // With this command at most MAX_COMMANDS_REMEMBERED.
  state.finished = [...state.finished.slice(1 - MAX_COMMANDS_REMEMBERED), command];
  context.effects.push({ type: 'finished', commandId: id, result, detail });
  makeAck(context, command);
}

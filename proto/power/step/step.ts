/**
 * How a lock acts: the power model as a pure function (protocol.md §2).
 *
 * `step` takes what a lock knows and one thing that happens to it, and returns what it knows then, what it does, and
 * when it must be woken. It reads nothing but its arguments: no clock, no dice, no table but the model that it is
 * given. Between two inputs nothing happens, so a sleeping lock costs nothing.
 *
 * Each step goes the same way: take the input in; end what is over; let each trigger speak in the order of its rank in
 * the model; say farewell where the lock falls silent; connect, send or close; switch the receiver.
 */
import type { PowerModel, TriggerName } from '../model.js';
import { advanceLocate, advanceLocateByCell, applySettings, onCommand, settleLocking, takeOn } from './commands.js';
import { dueMs } from './due.js';
import { changeSky, settleReceiver, switchReceiver } from './gps.js';
import type { StepEffect, StepInput } from './io.js';
import {
  advanceKept,
  changeCoverage,
  dropLink,
  onAcknowledged,
  onConnected,
  onConnectFailed,
  onDisconnected,
  restartModem,
  settleFarewell,
  settleLink,
} from './link.js';
import { rowOf } from './reading.js';
import { type Draft, draftOf, type StepState, type Turn, VOLATILE } from './state.js';
import {
  advancePeriod,
  advanceRide,
  advanceStateChange,
  advanceTheft,
  changeLockState,
  endTracking,
  planPeriod,
  wantsFix,
} from './triggers.js';

/** What a step comes to. */
export interface StepResult {
  readonly state: StepState;
  /** What the lock does, in order. */
  readonly effects: readonly StepEffect[];
  /** When the next tick is due, ms since the epoch; Infinity where only an input can wake the lock. */
  readonly wakeAtMs: number;
}

/**
 * Lets a lock act on one input at the moment `nowMs` (its own clock, ms since the epoch, never going back).
 * The state given is left as it was. Throws only where the model has no row for a state that can be.
 */
export function step(model: PowerModel, state: StepState, input: StepInput, nowMs: number): StepResult {
  const draft = draftOf(state);
  const effects: StepEffect[] = [];
  const wakeAtMs = stepInPlace(model, draft, input, nowMs, effects);
  return { state: draft, effects, wakeAtMs };
}

/**
 * The same on a state that its caller owns, for whoever simulates many locks: copying a state costs as much as the step
 * does. What the lock does is added to `effects`. Returns when the next tick is due, as `StepResult` has it.
 */
export function stepInPlace(
  model: PowerModel,
  state: Draft,
  input: StepInput,
  nowMs: number,
  effects: StepEffect[],
): number {
  const turn = takeTurn(model, state, nowMs, effects);
  takeIn(turn, input);
  settleLocking(turn);
  endTracking(turn);
  settleReceiver(turn);
  for (const advance of inOrderOfRank(model)) advance(turn);
  settleFarewell(turn);
  settleLink(turn);
  switchReceiver(turn, wantsFix(turn));
  const wakeAtMs = dueMs(turn);
  spareTurn = turn;
  return wakeAtMs;
}

/** The turn of the step before: no step outlives its call, and millions of them need not leave one behind each. */
let spareTurn: { -readonly [Key in keyof Turn]: Turn[Key] } | undefined;

function takeTurn(model: PowerModel, state: Draft, nowMs: number, effects: StepEffect[]): Turn {
  const row = rowOf(model, state.stateName);
  const turn = spareTurn;
  if (turn === undefined) return { model, nowMs, state, row, fix: null, cellPosition: null, ticked: false, effects };
  spareTurn = undefined;
  turn.model = model;
  turn.nowMs = nowMs;
  turn.state = state;
  turn.row = row;
  turn.fix = null;
  turn.cellPosition = null;
  turn.ticked = false;
  turn.effects = effects;
  return turn;
}

/** Whether the next tick is to carry what GPS reads. A host need not look otherwise. */
export function needsFix(state: StepState): boolean {
  return state.gps !== 'off';
}

/** Whether the next tick is to carry the position that the cellular network tells. */
export function needsCellPosition(state: StepState): boolean {
  return state.locatingByCell.length > 0;
}

type Advance = (turn: Turn) => void;

/** How each trigger gets on; a reset speaks when the connection stands (`onConnected`), and so is not here. */
const ADVANCE: Readonly<Partial<Record<TriggerName, Advance>>> = {
  theft: advanceTheft,
  'state-change': advanceStateChange,
  ride: advanceRide,
  period: advancePeriod,
  'kept-connection': advanceKept,
  'locate-gps': advanceLocate,
  'locate-cell': advanceLocateByCell,
};

/** Looked up once for a table of triggers: by name at each step it would be a good part of the step's cost. */
let ranked: { readonly of: PowerModel['triggers']; readonly advances: readonly Advance[] } | undefined;

function inOrderOfRank({ triggers }: PowerModel): readonly Advance[] {
  if (ranked?.of !== triggers)
    ranked = { of: triggers, advances: triggers.flatMap((row) => ADVANCE[row.trigger] ?? []) };
  return ranked.advances;
}

function takeIn(turn: Turn, input: StepInput): void {
  const { state, nowMs } = turn;
  switch (input.type) {
    case 'tick':
      turn.ticked = true;
      turn.fix = input.fix;
      turn.cellPosition = input.cellPosition;
      break;
    case 'motion':
      if (state.moving === input.moving) return;
      state.moving = input.moving;
      state.motionSinceMs = nowMs;
      break;
    case 'lock-state':
      changeLockState(turn, input.lockState);
      break;
    case 'sky':
      changeSky(turn, input.open);
      break;
    case 'battery':
      takeOn(turn, state.power, input.percent);
      break;
    case 'ebike':
      state.ebikeVolts = input.volts;
      break;
    case 'tether':
      state.tetherState = input.tetherState;
      break;
    case 'settings':
      applySettings(turn, input.change);
      break;
    case 'boot':
      boot(turn);
      break;
    default:
      takeInOfLink(turn, input);
      break;
  }
}

type LinkInput = Extract<
  StepInput,
  { type: 'coverage' | 'modem-reset' | 'connected' | 'connect-failed' | 'disconnected' | 'acknowledged' | 'command' }
>;

function takeInOfLink(turn: Turn, input: LinkInput): void {
  switch (input.type) {
    case 'coverage':
      changeCoverage(turn, input.covered);
      break;
    case 'modem-reset':
      restartModem(turn);
      break;
    case 'connected':
      onConnected(turn);
      break;
    case 'connect-failed':
      onConnectFailed(turn);
      break;
    case 'disconnected':
      onDisconnected(turn);
      break;
    case 'acknowledged':
      onAcknowledged(turn, input.boot, input.sequence);
      break;
    case 'command':
      onCommand(turn, input.downlink);
      break;
  }
}

/**
 * The flash keeps what `LockFlash` names, the uplinks that wait under their old boot among it; the sequence begins
 * anew. A command that was being carried out is forgotten unanswered, so that the gateway sends it again.
 */
function boot(turn: Turn): void {
  const { state, nowMs } = turn;
  dropLink(turn);
  Object.assign(state, VOLATILE);
  state.boot++;
  state.sequence = 0;
  state.dropped = 0;
  state.motionSinceMs = nowMs;
  state.lockStateSinceMs = nowMs;
  state.skySinceMs = nowMs;
  state.retryAtMs = nowMs;
  planPeriod(turn);
  takeOn(turn, state.power, state.batteryPercent);
}

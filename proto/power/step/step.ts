/**
 * The behaviour of a lock as a pure function, derived from the power model (protocol.md §2).
 *
 * `step` takes a lock's state and one input (something that happens to the lock). It returns the new state, what the
 * lock does, and when the lock must be woken. It reads only its arguments: no clock, no random source, no other table.
 * Between two inputs nothing happens, so simulating a sleeping lock costs nothing.
 *
 * Each step does the same things in order: apply the input; close the lock once its warning tone has ended; end rides
 * and thefts that are over; let the GPS receiver find or lose its fix; let each trigger (a reason to send) make its
 * pings, by its rank in the model; announce that the lock falls silent; connect, send or close; switch the GPS
 * receiver.
 */
import type { PowerModel, TriggerName } from '../model.js';
import {
  advanceLocate,
  advanceLocateByCell,
  applyPowerState,
  applySettings,
  onCommand,
  settleLocking,
} from './commands.js';
import { dueMs } from './due.js';
import { changeSky, settleReceiver, switchReceiver } from './gps.js';
import type { StepEffect, StepInput } from './io.js';
import {
  advanceKept,
  announceSilence,
  changeCoverage,
  dropLink,
  onAcknowledged,
  onConnected,
  onConnectFailed,
  onDisconnected,
  restartModem,
  settleLink,
} from './link.js';
import { effectiveRow, rowOfState } from './reading.js';
import { type Draft, draftOf, resetByBoot, type StepContext, type StepState } from './state.js';
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

/** The outcome of a step. */
export interface StepResult {
  readonly state: StepState;
  /** What the lock does, in order. */
  readonly effects: readonly StepEffect[];
  /** When the next tick is due, ms since the epoch; Infinity where only an input can wake the lock. */
  readonly wakeAtMs: number;
}

/**
 * Lets a lock act on one input at `nowMs` (the lock's own clock, ms since the epoch, never going back). Does not change
 * the given state. Throws only if the model has no row for the lock's state.
 */
export function step(model: PowerModel, state: StepState, input: StepInput, nowMs: number): StepResult {
  const draft = draftOf(state);
  const effects: StepEffect[] = [];
  const wakeAtMs = stepInPlace(model, draft, input, nowMs, effects);
  return { state: draft, effects, wakeAtMs };
}

/**
 * The same as {@link step}, but changes `state` and adds what the lock does to `effects`. It is for simulating many
 * locks, since copying a state costs as much as the step. Returns when the next tick is due, as in `StepResult`.
 */
export function stepInPlace(
  model: PowerModel,
  state: Draft,
  input: StepInput,
  nowMs: number,
  effects: StepEffect[],
): number {
  const context = newContext(model, state, nowMs, effects);
  applyInput(context, input);
  settleLocking(context);
  endTracking(context);
  settleReceiver(context);
  for (const advance of inOrderOfRank(model)) advance(context);
  announceSilence(context);
  settleLink(context);
  switchReceiver(context, wantsFix(context));
  const wakeAtMs = dueMs(context);
  spareContext = context;
  return wakeAtMs;
}

/** An answer of the link to what the lock did. */
export type LinkAnswer = Extract<StepInput, { type: 'connected' | 'connect-failed' | 'disconnected' | 'acknowledged' }>;

/**
 * The same as {@link stepInPlace} for an answer of the link that comes at the moment of the last step. That step has
 * settled what depends on the time, so only what the answer can change is settled again: the connection, and the ping
 * that a kept connection starts with. Most steps of a virtual run are such answers.
 */
export function answerInPlace(
  model: PowerModel,
  state: Draft,
  input: LinkAnswer,
  nowMs: number,
  effects: StepEffect[],
): number {
  const context = newContext(model, state, nowMs, effects);
  applyLinkInput(context, input);
  advanceKept(context);
  settleLink(context);
  const wakeAtMs = dueMs(context);
  spareContext = context;
  return wakeAtMs;
}

/**
 * Applies an input that the lock only notes, such as a sky that opens while GPS is off. Returns false, and changes
 * nothing, if the input may cause more: then it needs a step. To be called only before the time at which the last step
 * wanted the next tick; that time stays the same. It saves a step for most changes of the world.
 */
export function noteInPlace(model: PowerModel, state: Draft, input: StepInput, nowMs: number): boolean {
  // While an uplink is in flight, no tick is planned for the ping that a kept connection makes at intervals
  // (`networkPingEvery`): whichever step comes next makes it once it is due, so no step may be left out.
  if (state.inFlight) return false;
  switch (input.type) {
    case 'motion':
      return state.moving === input.moving;
    case 'lock-state':
      return state.lockState === input.lockState;
    case 'coverage':
      // A lost connection needs a step. Regained coverage does not: the lock connects at its next retry.
      if (!input.covered && state.link !== 'down') return false;
      state.covered = input.covered;
      return true;
    case 'sky':
      if (state.skyOpen === input.open) return true;
      if (state.gps !== 'off') return false;
      state.skyOpen = input.open;
      state.skySinceMs = nowMs;
      return true;
    case 'battery':
      if (effectiveRow(model, state.power, input.percent).state !== state.stateName) return false;
      state.batteryPercent = input.percent;
      return true;
    case 'ebike':
      state.ebikeVolts = input.volts;
      return true;
    case 'tether':
      state.tetherState = input.tetherState;
      return true;
    default:
      return false;
  }
}

/**
 * The context of the last step, for reuse: a fresh object for each of millions of steps would burden the garbage
 * collector. Undefined during a step, so that a step that throws leaves none behind.
 */
let spareContext: { -readonly [Key in keyof StepContext]: StepContext[Key] } | undefined;

function newContext(model: PowerModel, state: Draft, nowMs: number, effects: StepEffect[]): StepContext {
  const row = rowOfState(model, state.stateName);
  const context = spareContext;
  if (context === undefined) return { model, nowMs, state, row, fix: null, cellPosition: null, isTick: false, effects };
  spareContext = undefined;
  context.model = model;
  context.nowMs = nowMs;
  context.state = state;
  context.row = row;
  context.fix = null;
  context.cellPosition = null;
  context.isTick = false;
  context.effects = effects;
  return context;
}

/** Whether the next tick must carry a GPS measurement. Otherwise the host need not compute one. */
export function needsFix(state: StepState): boolean {
  return state.gps !== 'off';
}

/** Whether the next tick must carry the lock's position according to the cellular network. */
export function needsCellPosition(state: StepState): boolean {
  return state.locatingByCell.length > 0;
}

type Advance = (context: StepContext) => void;

/**
 * The function that makes each trigger's pings. A reset has none: `onConnected` reports it once the lock is connected.
 */
const ADVANCE: Readonly<Partial<Record<TriggerName, Advance>>> = {
  theft: advanceTheft,
  'state-change': advanceStateChange,
  ride: advanceRide,
  period: advancePeriod,
  'kept-connection': advanceKept,
  'locate-gps': advanceLocate,
  'locate-cell': advanceLocateByCell,
};

/** The functions in the order of the table of triggers used last. Looking them up at each step would cost too much. */
let rankedAdvances: { readonly triggers: PowerModel['triggers']; readonly advances: readonly Advance[] } | undefined;

function inOrderOfRank({ triggers }: PowerModel): readonly Advance[] {
  if (rankedAdvances?.triggers !== triggers)
    rankedAdvances = { triggers, advances: triggers.flatMap((row) => ADVANCE[row.trigger] ?? []) };
  return rankedAdvances.advances;
}

function applyInput(context: StepContext, input: StepInput): void {
  const { state, nowMs } = context;
  switch (input.type) {
    case 'tick':
      context.isTick = true;
      context.fix = input.fix;
      context.cellPosition = input.cellPosition;
      break;
    case 'motion':
      if (state.moving === input.moving) return;
      state.moving = input.moving;
      state.motionSinceMs = nowMs;
      break;
    case 'lock-state':
      changeLockState(context, input.lockState);
      break;
    case 'sky':
      changeSky(context, input.open);
      break;
    case 'battery':
      applyPowerState(context, state.power, input.percent);
      break;
    case 'ebike':
      state.ebikeVolts = input.volts;
      break;
    case 'tether':
      state.tetherState = input.tetherState;
      break;
    case 'settings':
      applySettings(context, input.change);
      break;
    case 'boot':
      boot(context);
      break;
    default:
      applyLinkInput(context, input);
      break;
  }
}

type LinkInput = Extract<
  StepInput,
  { type: 'coverage' | 'modem-reset' | 'connected' | 'connect-failed' | 'disconnected' | 'acknowledged' | 'command' }
>;

function applyLinkInput(context: StepContext, input: LinkInput): void {
  switch (input.type) {
    case 'coverage':
      changeCoverage(context, input.covered);
      break;
    case 'modem-reset':
      restartModem(context);
      break;
    case 'connected':
      onConnected(context);
      break;
    case 'connect-failed':
      onConnectFailed(context);
      break;
    case 'disconnected':
      onDisconnected(context);
      break;
    case 'acknowledged':
      onAcknowledged(context, input.boot, input.sequence);
      break;
    case 'command':
      onCommand(context, input.downlink);
      break;
  }
}

/**
 * The lock boots. Its flash survives (the members of `LockFlash`), with uplinks of earlier boots that still wait.
 * The sequence restarts, and so does the count of uplinks that were dropped because the buffer was full. The lock
 * forgets unfinished commands without an answer, so the gateway sends them again.
 */
function boot(context: StepContext): void {
  const { state, nowMs } = context;
  dropLink(context);
  resetByBoot(state);
  state.boot++;
  state.sequence = 0;
  state.dropped = 0;
  state.motionSinceMs = nowMs;
  state.lockStateSinceMs = nowMs;
  state.skySinceMs = nowMs;
  state.retryAtMs = nowMs;
  planPeriod(context);
  applyPowerState(context, state.power, state.batteryPercent);
}

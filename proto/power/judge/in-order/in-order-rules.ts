/**
 * Holds one uplink against those before it in order, numbers without a hole (protocol.md §3, "What a lock must do"):
 * change-untold, gps-before-cellular, gps-missing, cadence-too-fast between GPS pings, refresh-missing, clock-back,
 * motion-unlikely, and ack-untrue for unlock and lock.
 *
 * Pure but for `context`, which it brings up to date. What the context does not know breaks no rule, so that an earlier
 * uplink that arrives late can only add evidence.
 */
import type { LockState } from '../../../wire/ping.js';
import { isDatable } from '../../../wire/ping-json.js';
import type { PowerModel, StateRow } from '../../model.js';
import { NEVER, stateRow } from '../state.js';
import { describeSpan, describeTime } from '../words.js';
import { type AwaitedGps, forgetContext, type OrderContext } from './context.js';
import { metersBetween } from './geodesy.js';
import { addToRun, endRunIfOver } from './gps-run.js';
import type { Breach, OrderedUplink } from './ordered-uplink.js';

/** Judges `one`, the next uplink of the stretch that `context` knows, and adds it to the context. */
export function judgeInOrder(model: PowerModel, context: OrderContext, one: OrderedUplink, broken: Breach[]): void {
  if (one.isDoubtful) {
    forgetContext(context);
    // All that was made after it is known, if its time says when that was.
    if (isDatable(one.timeMs)) context.fromMs = one.timeMs + 1;
    return;
  }
  const { sequence, timeMs } = one;
  // A context that knows nothing begins here.
  if (context.fromMs === NEVER) context.fromMs = timeMs;
  judgeClock(model, context, one, broken);
  endRunIfOver(model, context, timeMs);
  if (hasSearchEnded(model, context.awaitedState, timeMs)) context.awaitedState = null;
  if (hasSearchEnded(model, context.awaitedPeriod, timeMs)) context.awaitedPeriod = null;
  if (one.kind !== 'ack') context.batteryPercent = one.batteryPercent;
  const isBatteryKnown = context.batteryPercent >= 0;
  const row = stateRow(model, one.power, isBatteryKnown ? context.batteryPercent : null);
  if (row.state !== context.state && (isBatteryKnown || one.kind !== 'ack')) {
    context.state = row.state;
    if (context.run !== null) context.run.isSteady = false;
  }
  if (one.kind === 'ack') context.isReset = one.answer === 'reset' || one.answer === 'unknown';
  else judgePing(model, context, row, one, broken);
  if (one.answer === 'unlock' || one.answer === 'lock') {
    context.promised = one.answer === 'lock' ? 'locked' : 'unlocked';
    context.promisedSequence = sequence;
  }
  context.lastMs = timeMs;
}

function judgeClock({ bounds }: PowerModel, { lastMs }: OrderContext, one: OrderedUplink, broken: Breach[]): void {
  const back = lastMs - one.timeMs;
  if (lastMs === NEVER || back <= bounds.clockBackOver) return;
  const [from, to] = [describeTime(lastMs), describeTime(one.timeMs)];
  const message = `The lock’s clock went back by ${describeSpan(back)}, from ${from} to ${to}.`;
  broken.push({ rule: 'clock-back', fromSequence: one.sequence - 1, fromMs: one.timeMs, message });
}

function judgePing(
  model: PowerModel,
  context: OrderContext,
  row: StateRow,
  one: OrderedUplink,
  broken: Breach[],
): void {
  judgeLockState(context, row, one, broken);
  if (one.kind === 'close_connection') judgeClose(model, context, row, one, broken);
  else if (one.kind === 'gps') judgeGps(model, context, one, broken);
  else noteCellular(context, one);
  addToRun(model, context, one, broken);
  if (one.position !== null) judgePosition(model, context, one, broken);
  context.isReset = false;
  context.hasChangePings = row.stateChange;
  context.pingSequence = one.sequence;
  context.lockState = one.lockState;
}

/** change-untold, and ack-untrue for unlock and lock: both are about a lock state that no state ping told. */
function judgeLockState(context: OrderContext, row: StateRow, one: OrderedUplink, broken: Breach[]): void {
  const { lockState } = one;
  const { lockState: before, promised, promisedSequence, pingSequence } = context;
  context.promised = 'unknown';
  if (lockState === 'unknown') return;
  const isStatePing = one.kind === 'cellular' && one.reason === 'REASON_STATE_PING';
  if (promised !== 'unknown' && promised !== lockState && !isStatePing) {
    const message =
      `The acknowledgement before it says that the command to ${promised === 'locked' ? 'lock' : 'unlock'} was ` +
      `carried verdict, but this ping says ${lockState}.`;
    broken.push({ rule: 'ack-untrue', fromSequence: promisedSequence, fromMs: one.timeMs, message });
  }
  if (before === 'unknown' || before === lockState) return;
  if (context.run !== null) context.run.isSteady = false;
  forgetAwaitedOf(context, lockState);
  if (isStatePing || !context.hasChangePings || !row.stateChange) return;
  const message = `${one.reason} says ${lockState} and the ping before it ${before}, without a state ping between.`;
  broken.push({ rule: 'change-untold', fromSequence: pingSequence, fromMs: one.timeMs, message });
}

/** After a change of the lock state, no GPS ping is due for a cellular ping of before. */
function forgetAwaitedOf(context: OrderContext, lockState: LockState): void {
  if (context.awaitedState !== null && context.awaitedState.lockState !== lockState) context.awaitedState = null;
  if (context.awaitedPeriod !== null && context.awaitedPeriod.lockState !== lockState) context.awaitedPeriod = null;
}

function noteCellular(context: OrderContext, { reason, timeMs, sequence, lockState }: OrderedUplink): void {
  if (reason === 'REASON_THEFT') context.theftCellMs = timeMs;
  else if (reason === 'REASON_STATE_PING') {
    context.stateCellMs = timeMs;
    context.awaitedState = { timeMs, sequence, lockState };
  } else if (reason === 'REASON_PERIOD_TRACKING') {
    context.periodCellMs = timeMs;
    context.awaitedPeriod = { timeMs, sequence, lockState };
  }
}

/** gps-before-cellular; and no GPS ping is awaited any more of the ping’s trigger and of those that it outranks. */
function judgeGps({ bounds }: PowerModel, context: OrderContext, one: OrderedUplink, broken: Breach[]): void {
  const { reason, timeMs } = one;
  let cellularMs = NEVER;
  switch (reason) {
    case 'REASON_THEFT':
      cellularMs = context.theftCellMs;
      break;
    case 'REASON_STATE_PING':
      cellularMs = context.stateCellMs;
      break;
    case 'REASON_PERIOD_TRACKING':
      cellularMs = context.periodCellMs;
      break;
    case 'REASON_UNLOCKED_PING':
      break;
    default:
      return;
  }
  context.awaitedPeriod = null;
  if (reason === 'REASON_THEFT' || reason === 'REASON_STATE_PING') context.awaitedState = null;
  const fromMs = timeMs - bounds.cellularBeforeGpsWithin;
  if (cellularMs >= fromMs || context.fromMs > fromMs) return;
  const message =
    `A GPS ping ${reason} was made without a cellular ping of that reason in the ` +
    `${describeSpan(bounds.cellularBeforeGpsWithin)} before.`;
  broken.push({ rule: 'gps-before-cellular', fromSequence: -1, fromMs, message });
}

/** gps-missing. A close-connection ping that reports LOW_BATTERY or AIRPLANE may cut a search for a fix short. */
function judgeClose(
  model: PowerModel,
  context: OrderContext,
  row: StateRow,
  one: OrderedUplink,
  broken: Breach[],
): void {
  const { awaitedState, awaitedPeriod } = context;
  context.awaitedState = null;
  context.awaitedPeriod = null;
  // Both states that allow no ping of the day are silent ones.
  if (context.isReset || !row.period) return;
  if (isCutShort(model, awaitedState, one)) reportMissing('REASON_STATE_PING', awaitedState, one, broken);
  else if (isCutShort(model, awaitedPeriod, one)) reportMissing('REASON_PERIOD_TRACKING', awaitedPeriod, one, broken);
}

/** Whether the search for a fix has ended by itself. */
function hasSearchEnded({ timings }: PowerModel, awaited: AwaitedGps | null, timeMs: number): boolean {
  return awaited !== null && timeMs - awaited.timeMs >= timings.fixSearchEnds;
}

function isCutShort(
  { timings }: PowerModel,
  awaited: AwaitedGps | null,
  { timeMs }: OrderedUplink,
): awaited is AwaitedGps {
  if (awaited === null) return false;
  const after = timeMs - awaited.timeMs;
  return after >= 0 && after < timings.fixSearchEnds;
}

function reportMissing(reason: string, awaited: AwaitedGps, one: OrderedUplink, broken: Breach[]): void {
  const message =
    `The lock closed the connection ${describeSpan(one.timeMs - awaited.timeMs)} after its cellular ping ${reason}, ` +
    'without a GPS ping and before the search for a fix ends.';
  broken.push({ rule: 'gps-missing', fromSequence: awaited.sequence, fromMs: awaited.timeMs, message });
}

/** The third case of motion-unlikely: two positions that are too far from each other. */
function judgePosition({ bounds }: PowerModel, context: OrderContext, one: OrderedUplink, broken: Breach[]): void {
  const { position } = one;
  const before = context.position;
  if (position === null) return;
  const { latitudeDegrees, longitudeDegrees, uncertaintyMeters } = position;
  const { timeMs, sequence } = one;
  if (before !== null && Math.abs(timeMs - before.timeMs) < bounds.jumpWithin) {
    const meters = metersBetween(before, position);
    const beyond = meters - before.uncertaintyMeters - uncertaintyMeters;
    // Two positions of the same second may be as far apart as a second allows.
    const seconds = Math.max(1, Math.abs(timeMs - before.timeMs) / 1000);
    if (beyond > bounds.jumpOverSpeed * seconds) {
      const span = describeSpan(Math.abs(timeMs - before.timeMs));
      const message = `The lock was ${Math.round(meters)} m from its position of ${span} before.`;
      broken.push({ rule: 'motion-unlikely', fromSequence: before.sequence, fromMs: before.timeMs, message });
    }
  }
  if (before === null) context.position = { latitudeDegrees, longitudeDegrees, uncertaintyMeters, timeMs, sequence };
  else {
    // In place: the hot path makes no object for each ping.
    before.latitudeDegrees = latitudeDegrees;
    before.longitudeDegrees = longitudeDegrees;
    before.uncertaintyMeters = uncertaintyMeters;
    before.timeMs = timeMs;
    before.sequence = sequence;
  }
}

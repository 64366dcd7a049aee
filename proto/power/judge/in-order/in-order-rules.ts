/**
 * The in-order rules (protocol.md §3, "In order"). They compare an uplink with the uplinks before it in its
 * *stretch*, a series of uplinks without a missing sequence number. These are change-untold, gps-before-cellular,
 * gps-missing, cadence-too-fast between GPS pings, refresh-missing, clock-back, motion-unlikely, and ack-untrue for
 * unlock and lock.
 *
 * NEVER is a time later than every other one. `context` is what is known from the uplinks before; `breaches` receives
 * the rules that the uplink breaks. No I/O: changes nothing else. Uplinks that are not known break no rule, so an
 * earlier uplink that arrives late can only add evidence.
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

/** Judges the next uplink of the stretch that `context` belongs to, and adds the uplink to the context. */
export function judgeInOrder(
  model: PowerModel,
  context: OrderContext,
  uplink: OrderedUplink,
  breaches: Breach[],
): void {
  // Doubtful: its time is no date, or its sequence number came with two contents. So it is no evidence.
  if (uplink.isDoubtful) {
    forgetContext(context);
    // The uplink still has its place in the stretch: if its time is a date, none of the uplinks made later is missing.
    if (isDatable(uplink.timeMs)) context.fromMs = uplink.timeMs + 1;
    return;
  }
  const { sequence, timeMs } = uplink;
  // NEVER: no earlier uplink is known, so the context starts with this one.
  if (context.fromMs === NEVER) context.fromMs = timeMs;
  judgeClock(model, context, uplink, breaches);
  endRunIfOver(model, context, timeMs);
  if (hasSearchEnded(model, context.awaitedState, timeMs)) context.awaitedState = null;
  if (hasSearchEnded(model, context.awaitedPeriod, timeMs)) context.awaitedPeriod = null;
  if (uplink.kind !== 'ack') context.batteryPercent = uplink.batteryPercent;
  const isBatteryKnown = context.batteryPercent >= 0;
  // The model's row for the effective state in which the uplink was made. An acknowledgement reports no battery level,
  // so without an earlier level it does not show the state.
  const row = stateRow(model, uplink.power, isBatteryKnown ? context.batteryPercent : null);
  if (row.state !== context.state && (isBatteryKnown || uplink.kind !== 'ack')) {
    context.state = row.state;
    if (context.run !== null) context.run.isSteady = false;
  }
  // An acknowledgement of a command that is not known may be about a reset.
  if (uplink.kind === 'ack') context.isReset = uplink.answer === 'reset' || uplink.answer === 'unknown';
  else judgePing(model, context, row, uplink, breaches);
  if (uplink.answer === 'unlock' || uplink.answer === 'lock') {
    context.promised = uplink.answer === 'lock' ? 'locked' : 'unlocked';
    context.promisedSequence = sequence;
  }
  context.lastMs = timeMs;
}

function judgeClock({ bounds }: PowerModel, { lastMs }: OrderContext, uplink: OrderedUplink, breaches: Breach[]): void {
  const wentBackBy = lastMs - uplink.timeMs;
  if (lastMs === NEVER || wentBackBy <= bounds.clockBackOver) return;
  const [from, to] = [describeTime(lastMs), describeTime(uplink.timeMs)];
  const message = `The lock’s clock went back by ${describeSpan(wentBackBy)}, from ${from} to ${to}.`;
  breaches.push({ rule: 'clock-back', fromSequence: uplink.sequence - 1, fromMs: uplink.timeMs, message });
}

function judgePing(
  model: PowerModel,
  context: OrderContext,
  row: StateRow,
  uplink: OrderedUplink,
  breaches: Breach[],
): void {
  judgeLockState(context, row, uplink, breaches);
  if (uplink.kind === 'close_connection') judgeClose(model, context, row, uplink, breaches);
  else if (uplink.kind === 'gps') judgeGps(model, context, uplink, breaches);
  else noteCellular(context, uplink);
  addToRun(model, context, uplink, breaches);
  if (uplink.position !== null) judgePosition(model, context, uplink, breaches);
  context.isReset = false;
  context.hasChangePings = row.stateChange;
  context.pingSequence = uplink.sequence;
  context.lockState = uplink.lockState;
}

/** change-untold, and ack-untrue for unlock and lock: both are about a lock state that no state ping has reported. */
function judgeLockState(context: OrderContext, row: StateRow, uplink: OrderedUplink, breaches: Breach[]): void {
  const { lockState } = uplink;
  const { lockState: before, promised, promisedSequence, pingSequence } = context;
  context.promised = 'unknown';
  if (lockState === 'unknown') return;
  const isStatePing = uplink.kind === 'cellular' && uplink.reason === 'REASON_STATE_PING';
  if (promised !== 'unknown' && promised !== lockState && !isStatePing) {
    const message =
      `The acknowledgement before it says that the command to ${promised === 'locked' ? 'lock' : 'unlock'} was ` +
      `carried out, but this ping says ${lockState}.`;
    breaches.push({ rule: 'ack-untrue', fromSequence: promisedSequence, fromMs: uplink.timeMs, message });
  }
  if (before === 'unknown' || before === lockState) return;
  if (context.run !== null) context.run.isSteady = false;
  forgetAwaitedOf(context, lockState);
  if (isStatePing || !context.hasChangePings || !row.stateChange) return;
  const message = `${uplink.reason} says ${lockState} and the ping before it ${before}, without a state ping between.`;
  breaches.push({ rule: 'change-untold', fromSequence: pingSequence, fromMs: uplink.timeMs, message });
}

/** After a change of the lock state, the GPS pings of earlier cellular pings are no longer due. */
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

/**
 * gps-before-cellular. A *trigger* (theft, state change, ride, daily ping) is what makes a lock send pings. The GPS
 * ping of a trigger also replaces those of the triggers that it outranks, so none of these is due any longer.
 */
function judgeGps({ bounds }: PowerModel, context: OrderContext, uplink: OrderedUplink, breaches: Breach[]): void {
  const { reason, timeMs } = uplink;
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
      // Its cellular ping has another reason, REASON_UNLOCKED_MOVEMENT, so it cannot break this rule: NEVER is always
      // recent enough.
      break;
    default:
      return;
  }
  context.awaitedPeriod = null;
  if (reason === 'REASON_THEFT' || reason === 'REASON_STATE_PING') context.awaitedState = null;
  const fromMs = timeMs - bounds.cellularBeforeGpsWithin;
  // If not all uplinks of that time are known, an unknown one may be the cellular ping.
  if (cellularMs >= fromMs || context.fromMs > fromMs) return;
  const message =
    `A GPS ping ${reason} was made without a cellular ping of that reason in the ` +
    `${describeSpan(bounds.cellularBeforeGpsWithin)} before.`;
  breaches.push({ rule: 'gps-before-cellular', fromSequence: -1, fromMs, message });
}

/**
 * gps-missing. A close-connection ping after a reset, or in LOW_BATTERY or AIRPLANE, may cut a search for a fix short.
 */
function judgeClose(
  model: PowerModel,
  context: OrderContext,
  row: StateRow,
  uplink: OrderedUplink,
  breaches: Breach[],
): void {
  const { awaitedState, awaitedPeriod } = context;
  context.awaitedState = null;
  context.awaitedPeriod = null;
  // In the two states without period pings, AIRPLANE and LOW_BATTERY, the close-connection ping announces the silence.
  if (context.isReset || !row.period) return;
  if (isCutShort(model, awaitedState, uplink)) reportMissing('REASON_STATE_PING', awaitedState, uplink, breaches);
  else if (isCutShort(model, awaitedPeriod, uplink))
    reportMissing('REASON_PERIOD_TRACKING', awaitedPeriod, uplink, breaches);
}

/** Whether the lock has given up its search for a fix by `timeMs`, so that the GPS ping is no longer due. */
function hasSearchEnded({ timings }: PowerModel, awaited: AwaitedGps | null, timeMs: number): boolean {
  return awaited !== null && timeMs - awaited.timeMs >= timings.fixSearchEnds;
}

/** Whether the uplink was made while the lock had to search for the fix of the awaited GPS ping. */
function isCutShort(
  { timings }: PowerModel,
  awaited: AwaitedGps | null,
  { timeMs }: OrderedUplink,
): awaited is AwaitedGps {
  if (awaited === null) return false;
  const after = timeMs - awaited.timeMs;
  return after >= 0 && after < timings.fixSearchEnds;
}

/** Adds a breach of gps-missing. */
function reportMissing(reason: string, awaited: AwaitedGps, uplink: OrderedUplink, breaches: Breach[]): void {
  const span = describeSpan(uplink.timeMs - awaited.timeMs);
  const message =
    `The lock closed the connection ${span} after its cellular ping ${reason}, ` +
    'without a GPS ping and before the search for a fix ends.';
  breaches.push({ rule: 'gps-missing', fromSequence: awaited.sequence, fromMs: awaited.timeMs, message });
}

/** The third case of motion-unlikely: two positions that are too far from each other. */
function judgePosition({ bounds }: PowerModel, context: OrderContext, uplink: OrderedUplink, breaches: Breach[]): void {
  const { position } = uplink;
  const before = context.position;
  if (position === null) return;
  const { latitudeDegrees, longitudeDegrees, uncertaintyMeters } = position;
  const { timeMs, sequence } = uplink;
  if (before !== null && Math.abs(timeMs - before.timeMs) < bounds.jumpWithin) {
    const meters = metersBetween(before, position);
    const certainMeters = meters - before.uncertaintyMeters - uncertaintyMeters;
    // Two positions of the same second may be as far apart as a lock can move in a second.
    const seconds = Math.max(1, Math.abs(timeMs - before.timeMs) / 1000);
    if (certainMeters > bounds.jumpOverSpeed * seconds) {
      const span = describeSpan(Math.abs(timeMs - before.timeMs));
      const message = `The lock was ${Math.round(meters)} m from its position of ${span} before.`;
      breaches.push({ rule: 'motion-unlikely', fromSequence: before.sequence, fromMs: before.timeMs, message });
    }
  }
  if (before === null) context.position = { latitudeDegrees, longitudeDegrees, uncertaintyMeters, timeMs, sequence };
  else {
    // Overwritten in place, because a new object for each ping would burden the garbage collector.
    before.latitudeDegrees = latitudeDegrees;
    before.longitudeDegrees = longitudeDegrees;
    before.uncertaintyMeters = uncertaintyMeters;
    before.timeMs = timeMs;
    before.sequence = sequence;
  }
}

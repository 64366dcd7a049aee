/**
 * Runs of GPS pings with REASON_THEFT or with REASON_UNLOCKED_PING, none over 2 min after the one before, and the rules
 * about them: cadence-too-fast, refresh-missing and the first two cases of motion-unlikely (protocol.md §3).
 */
import type { Position } from '../../../wire/ping.js';
import type { PowerModel } from '../../model.js';
import { describeSpan } from '../words.js';
import type { GpsRun, OrderContext, RunReason } from './context.js';
import { metersBetween } from './geodesy.js';
import type { Breach, OrderedUplink } from './ordered-uplink.js';

const CELLULAR_REASON = { REASON_THEFT: 'REASON_THEFT', REASON_UNLOCKED_PING: 'REASON_UNLOCKED_MOVEMENT' } as const;

/** Takes an uplink into the run: notes refreshes and changes, and judges a GPS ping of a theft or ride. */
export function addToRun(model: PowerModel, context: OrderContext, one: OrderedUplink, broken: Breach[]): void {
  const { run } = context;
  if (one.kind === 'gps' && (one.reason === 'REASON_THEFT' || one.reason === 'REASON_UNLOCKED_PING')) {
    if (run !== null && run.reason === one.reason) judgeNextPing(model, run, one, broken);
    else context.run = startRun(model, one.reason, one);
  } else if (run !== null && one.kind === 'cellular' && one.reason === CELLULAR_REASON[run.reason]) {
    run.refreshedMs = one.timeMs;
    run.refreshedSequence = one.sequence;
    run.isRefreshReported = false;
  }
}

/** Ends the run if its last ping is too long ago, or was made later than `timeMs`. */
export function endRunIfOver({ bounds }: PowerModel, context: OrderContext, timeMs: number): void {
  if (context.run === null) return;
  const gap = timeMs - context.run.lastMs;
  if (gap < 0 || gap > bounds.runGapOver) context.run = null;
}

function startRun(model: PowerModel, reason: RunReason, one: OrderedUplink): GpsRun {
  const { timeMs, sequence } = one;
  const run: GpsRun = {
    reason,
    startSequence: sequence,
    lastMs: timeMs,
    lastSequence: sequence,
    isSteady: true,
    refreshedMs: timeMs,
    refreshedSequence: sequence,
    isRefreshReported: false,
    still: null,
    isStillReported: false,
    frozenPings: 0,
    frozenSequence: sequence,
    frozenMs: timeMs,
    position: null,
  };
  noteMotion(model, run, one);
  return run;
}

function judgeNextPing(model: PowerModel, run: GpsRun, one: OrderedUplink, broken: Breach[]): void {
  const { bounds } = model;
  const after = one.timeMs - run.lastMs;
  const under = run.reason === 'REASON_THEFT' ? bounds.theftGpsUnder : bounds.rideGpsUnder;
  if (run.isSteady && after < under) {
    const message = `Two GPS pings ${run.reason} were made ${describeSpan(after)} apart.`;
    broken.push({ rule: 'cadence-too-fast', fromSequence: run.lastSequence, fromMs: run.lastMs, message });
  }
  run.isSteady = true;
  run.lastMs = one.timeMs;
  run.lastSequence = one.sequence;
  const unrefreshed = one.timeMs - run.refreshedMs;
  if (unrefreshed > bounds.refreshOver && !run.isRefreshReported) {
    run.isRefreshReported = true;
    const cellular = CELLULAR_REASON[run.reason];
    const span = describeSpan(unrefreshed);
    const message = `GPS pings ${run.reason} went on for ${span} without a cellular ping ${cellular}.`;
    broken.push({ rule: 'refresh-missing', fromSequence: run.refreshedSequence, fromMs: run.refreshedMs, message });
  }
  noteMotion(model, run, one);
  judgeMotion(model, run, one, broken);
}

/** Counts in how many pings the lock stands still, or moves without getting anywhere. */
function noteMotion({ bounds }: PowerModel, run: GpsRun, { timeMs, sequence, position, speed }: OrderedUplink): void {
  if (position === null || speed !== 0) {
    run.still = null;
    run.isStillReported = false;
  } else if (run.still === null || !isSamePlace(run.still.position, position)) {
    run.still = { timeMs, sequence, position };
    run.isStillReported = false;
  }
  if (position === null || speed <= bounds.frozenOverSpeed) run.frozenPings = 0;
  else if (run.frozenPings > 0 && run.position !== null && isSamePoint(run.position, position)) run.frozenPings += 1;
  else {
    run.frozenPings = 1;
    run.frozenSequence = sequence;
    run.frozenMs = timeMs;
  }
  run.position = position;
}

function judgeMotion({ bounds }: PowerModel, run: GpsRun, one: OrderedUplink, broken: Breach[]): void {
  if (run.still !== null && one.timeMs - run.still.timeMs > bounds.stillOver && !run.isStillReported) {
    run.isStillReported = true;
    const { sequence, timeMs } = run.still;
    const message = `GPS pings ${run.reason} say speed 0 at one place for ${describeSpan(one.timeMs - timeMs)}.`;
    broken.push({ rule: 'motion-unlikely', fromSequence: sequence, fromMs: timeMs, message });
  }
  if (run.frozenPings !== bounds.frozenPings) return;
  const pings = `${run.frozenPings} GPS pings ${run.reason} in a row`;
  const message = `${pings} say that the lock moves, and all give exactly one position.`;
  broken.push({ rule: 'motion-unlikely', fromSequence: run.frozenSequence, fromMs: run.frozenMs, message });
}

function isSamePlace(one: Position, other: Position): boolean {
  return metersBetween(one, other) <= one.uncertaintyMeters + other.uncertaintyMeters;
}

function isSamePoint(one: Position, other: Position): boolean {
  return one.latitudeDegrees === other.latitudeDegrees && one.longitudeDegrees === other.longitudeDegrees;
}

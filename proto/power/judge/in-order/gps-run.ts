/**
 * Runs of GPS pings with REASON_THEFT or with REASON_UNLOCKED_PING, each at most 2 min after the one before, and the
 * rules about them: cadence-too-fast, refresh-missing and the first two cases of motion-unlikely (protocol.md §3). The
 * cellular pings that a lock sends during a theft or ride *refresh* the run. No I/O: changes only the given context
 * (what is known from earlier uplinks) or run, and adds to `breaches` the rules that a ping breaks.
 */
import type { Position } from '../../../wire/ping.js';
import type { PowerModel } from '../../model.js';
import { describeSpan } from '../words.js';
import type { GpsRun, OrderContext, RunReason } from './context.js';
import { metersBetween } from './geodesy.js';
import type { Breach, OrderedUplink } from './ordered-uplink.js';

/** The reason of the cellular pings that refresh a run, by the reason of its GPS pings. */
const CELLULAR_REASON = { REASON_THEFT: 'REASON_THEFT', REASON_UNLOCKED_PING: 'REASON_UNLOCKED_MOVEMENT' } as const;

/** Adds a ping to the context's run: judges a GPS ping of a theft or ride, or starts a run with it; notes a refresh. */
export function addToRun(model: PowerModel, context: OrderContext, ping: OrderedUplink, breaches: Breach[]): void {
  const { run } = context;
  if (ping.kind === 'gps' && (ping.reason === 'REASON_THEFT' || ping.reason === 'REASON_UNLOCKED_PING')) {
    if (run !== null && run.reason === ping.reason) judgeNextPing(model, run, ping, breaches);
    else context.run = startRun(model, ping.reason, ping);
  } else if (run !== null && ping.kind === 'cellular' && ping.reason === CELLULAR_REASON[run.reason]) {
    run.refreshedMs = ping.timeMs;
    run.refreshedSequence = ping.sequence;
    run.isRefreshReported = false;
  }
}

/** Ends the run if its last ping is too long ago, or was made later than `timeMs`. */
export function endRunIfOver({ bounds }: PowerModel, context: OrderContext, timeMs: number): void {
  if (context.run === null) return;
  const gap = timeMs - context.run.lastMs;
  if (gap < 0 || gap > bounds.runGapOver) context.run = null;
}

function startRun(model: PowerModel, reason: RunReason, ping: OrderedUplink): GpsRun {
  const { timeMs, sequence } = ping;
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
  noteMotion(model, run, ping);
  return run;
}

function judgeNextPing(model: PowerModel, run: GpsRun, ping: OrderedUplink, breaches: Breach[]): void {
  const { bounds } = model;
  const sinceLast = ping.timeMs - run.lastMs;
  const tooFastUnder = run.reason === 'REASON_THEFT' ? bounds.theftGpsUnder : bounds.rideGpsUnder;
  // in-order-rules.ts clears `isSteady` when the lock state or the effective state changes: the lock may then start a
  // new series of pings, whose first may come early.
  if (run.isSteady && sinceLast < tooFastUnder) {
    const message = `Two GPS pings ${run.reason} were made ${describeSpan(sinceLast)} apart.`;
    breaches.push({ rule: 'cadence-too-fast', fromSequence: run.lastSequence, fromMs: run.lastMs, message });
  }
  run.isSteady = true;
  run.lastMs = ping.timeMs;
  run.lastSequence = ping.sequence;
  const sinceRefresh = ping.timeMs - run.refreshedMs;
  if (sinceRefresh > bounds.refreshOver && !run.isRefreshReported) {
    run.isRefreshReported = true;
    const cellular = CELLULAR_REASON[run.reason];
    const span = describeSpan(sinceRefresh);
    const message = `GPS pings ${run.reason} went on for ${span} without a cellular ping ${cellular}.`;
    breaches.push({ rule: 'refresh-missing', fromSequence: run.refreshedSequence, fromMs: run.refreshedMs, message });
  }
  noteMotion(model, run, ping);
  judgeMotion(model, run, ping, breaches);
}

/** Notes since which ping the lock stands still, and how many pings report motion at exactly one position. */
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

/** motion-unlikely: the lock stands still for too long, or moves at exactly one position for too many pings. */
function judgeMotion({ bounds }: PowerModel, run: GpsRun, ping: OrderedUplink, breaches: Breach[]): void {
  if (run.still !== null && ping.timeMs - run.still.timeMs > bounds.stillOver && !run.isStillReported) {
    run.isStillReported = true;
    const { sequence, timeMs } = run.still;
    const message = `GPS pings ${run.reason} say speed 0 at one place for ${describeSpan(ping.timeMs - timeMs)}.`;
    breaches.push({ rule: 'motion-unlikely', fromSequence: sequence, fromMs: timeMs, message });
  }
  // Reported once, at the ping that makes them too many.
  if (run.frozenPings !== bounds.frozenPings) return;
  const pings = `${run.frozenPings} GPS pings ${run.reason} in a row`;
  const message = `${pings} say that the lock moves, and all give exactly one position.`;
  breaches.push({ rule: 'motion-unlikely', fromSequence: run.frozenSequence, fromMs: run.frozenMs, message });
}

/** Whether two positions may be the same, given their uncertainty. */
function isSamePlace(a: Position, b: Position): boolean {
  return metersBetween(a, b) <= a.uncertaintyMeters + b.uncertaintyMeters;
}

/** Whether two positions have exactly the same coordinates. */
function isSamePoint(a: Position, b: Position): boolean {
  return a.latitudeDegrees === b.latitudeDegrees && a.longitudeDegrees === b.longitudeDegrees;
}

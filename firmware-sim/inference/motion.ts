/**
 * Infers when a lock moved, from the pings of its thefts and rides (protocol.md §2). A theft or ride starts with a
 * cellular ping. It ends 2 min after the last motion, when the close-connection ping follows, or earlier when the
 * shackle moves, which locks or unlocks. Motion that causes neither theft nor ride leaves no trace and is not inferred.
 * *Tracking* is what a lock does during a theft or a ride. Pure.
 */
import { Seconds } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow, keepsConnection } from '../../proto/power/step/reading.js';
import type { Ping } from '../../proto/wire/ping.js';
import { GPS_TOLERANCE_MS, type InferredEvent, isNear, TOLERANCE_MS } from './inferred-event.js';
import type { LockTrace, TracedUplink } from './lock-trace.js';
import { isSilentWith } from './switches.js';

// All in ms. `refreshEvery`: how often the cellular ping of a theft or ride is repeated.
const { theftAfterMotion, theftGpsEvery, rideGpsEvery, refreshEvery } = POWER_MODEL.timings;
/**
 * `STILL_BEFORE_END_MS`: a theft or ride ends when the lock has stood still for this long. `closeAfterIdle`: a
 * connection that nothing keeps open is closed this long after the last packet. `fixSearchEnds`: a search for a GPS fix
 * is given up after this long. `warmFixTakes`: how long a search takes soon after the last fix.
 */
const { theftEndsAfterStill: STILL_BEFORE_END_MS, closeAfterIdle, fixSearchEnds, warmFixTakes } = POWER_MODEL.timings;

/** How long before the first ping of a theft its motion started. A theft starts after more than 6 s of motion. */
const THEFT_PING_DELAY_MS = theftAfterMotion + 1;

type TrackingKind = 'theft' | 'ride';

/** The period in which a theft or ride was tracked. */
export interface TrackedSpan {
  readonly kind: TrackingKind;
  /** When the lock made the first ping of the theft or ride. */
  readonly fromMs: number;
  /** When the theft or ride ended for the lock. */
  readonly untilMs: number;
  /** When the lock stopped moving. */
  readonly stoppedMs: number;
}

/** The inferred starts and ends of motion, and the thefts and rides. */
export interface InferredMotion {
  readonly events: readonly InferredEvent[];
  readonly spans: readonly TrackedSpan[];
}

/** The theft or ride in progress, with the times and numbers of its cellular and GPS pings so far. */
interface Tracking {
  readonly kind: TrackingKind;
  readonly fromMs: number;
  lastCellMs: number;
  cellCount: number;
  /** The time of the last GPS ping; NaN before the first. */
  lastGpsMs: number;
  gpsCount: number;
}

/** Infers when the lock moved. @param untilMs when the trace ends */
export function inferMotion(trace: LockTrace, untilMs: number): InferredMotion {
  const motion = new MotionInference(trace);
  for (let index = 0; index < trace.uplinks.length; index++) motion.addUplink(index);
  motion.end(untilMs);
  return motion;
}

const TRACKING_REASONS: ReadonlySet<string> = new Set([
  'REASON_THEFT',
  'REASON_UNLOCKED_MOVEMENT',
  'REASON_UNLOCKED_PING',
]);

/**
 * Whether a ping belongs to a theft or a ride; null if to neither. The lock state decides which, since a lock with a
 * bug may give the wrong reason.
 */
function trackingKindOf({ body }: TracedUplink['uplink']): TrackingKind | null {
  if (body.kind === 'ack' || !TRACKING_REASONS.has(body.reason)) return null;
  return body.lockState === 'unlocked' ? 'ride' : 'theft';
}

class MotionInference implements InferredMotion {
  readonly events: InferredEvent[] = [];
  readonly spans: TrackedSpan[] = [];
  readonly #trace: LockTrace;
  readonly #header: LockTrace['header'];
  #tracking: Tracking | null = null;
  #moving = false;

  constructor(trace: LockTrace) {
    this.#trace = trace;
    this.#header = trace.header;
  }

  /** Takes the uplink with this index in the trace. */
  addUplink(index: number): void {
    const traced = this.#trace.uplinks[index] as TracedUplink;
    const before = this.#trace.uplinks[index - 1];
    const { uplink, madeMs } = traced;
    if (before !== undefined && before.uplink.boot < uplink.boot) this.#onBoot(madeMs - 1);
    if (uplink.body.kind === 'ack') return;
    const { kind, reason } = uplink.body;
    const trackingKind = trackingKindOf(uplink);
    if (kind === 'close_connection') this.#onClose(index);
    else if (kind === 'cellular' && reason === 'REASON_STATE_PING') this.#onShackleMoved(index, uplink.body);
    else if (trackingKind !== null && kind === 'cellular') this.#onCellularPing(trackingKind, traced, before);
    else if (trackingKind !== null) this.#onGpsPing(trackingKind, madeMs);
  }

  /** The trace ends: ends the theft or ride if it was over by then. */
  end(untilMs: number): void {
    const tracking = this.#tracking;
    if (tracking === null) return;
    const isOver = untilMs > tracking.lastCellMs + refreshEvery + TOLERANCE_MS;
    if (isOver || this.#missedGpsPing(tracking, untilMs))
      this.#stopTracking(this.#finalStopMs(tracking, untilMs), untilMs);
    else this.spans.push({ ...spanOf(tracking), untilMs, stoppedMs: untilMs });
  }

  #onBoot(latestMs: number): void {
    if (this.#tracking !== null) this.#stopTracking(this.#finalStopMs(this.#tracking, latestMs), latestMs);
  }

  #onCellularPing(kind: TrackingKind, { madeMs, uplink }: TracedUplink, before: TracedUplink | undefined): void {
    const tracking = this.#tracking;
    if (tracking?.kind === kind) {
      // A lock that falls silent in a theft says so with another cellular ping of the theft, before the next is due.
      const becomesSilent = before !== undefined && isSilentAfter(uplink) && !isSilentAfter(before.uplink);
      if (isNear(madeMs, tracking.lastCellMs + refreshEvery) || becomesSilent) {
        tracking.lastCellMs = madeMs;
        tracking.cellCount += 1;
        return;
      }
    }
    const motionStartMs = kind === 'theft' ? madeMs - THEFT_PING_DELAY_MS : madeMs;
    if (tracking !== null) {
      // The theft or ride before had ended when this motion started, so the lock had stood still for long enough.
      const latestMs = motionStartMs - STILL_BEFORE_END_MS;
      this.#stopTracking(this.#finalStopMs(tracking, latestMs, motionStartMs), motionStartMs);
    }
    this.#startTracking(kind, madeMs, motionStartMs);
  }

  #startTracking(kind: TrackingKind, fromMs: number, motionStartMs: number): void {
    if (!this.#moving) this.events.push({ atMs: motionStartMs, change: { type: 'motion', moving: true } });
    this.#moving = true;
    this.#tracking = { kind, fromMs, lastCellMs: fromMs, cellCount: 1, lastGpsMs: Number.NaN, gpsCount: 0 };
  }

  /** A short gap between GPS pings is a stop; in a longer one there was no GPS reception (sky.ts). */
  #onGpsPing(kind: TrackingKind, madeMs: number): void {
    if (this.#tracking?.kind !== kind) {
      if (this.#tracking !== null) this.#stopTracking(madeMs - 1, madeMs - 1);
      // The trace starts in the middle of the theft or ride.
      this.#startTracking(kind, madeMs, kind === 'theft' ? madeMs - THEFT_PING_DELAY_MS : madeMs);
    }
    const tracking = this.#tracking as Tracking;
    const intervalMs = gpsIntervalOf(kind);
    if (madeMs > tracking.lastGpsMs + intervalMs + GPS_TOLERANCE_MS) {
      const stoppedMs = this.#stoppedBefore(tracking, madeMs);
      if (stoppedMs !== null && madeMs - stoppedMs < STILL_BEFORE_END_MS) {
        this.events.push({ atMs: stoppedMs, change: { type: 'motion', moving: false } });
        this.events.push({ atMs: madeMs, change: { type: 'motion', moving: true } });
      }
    }
    tracking.lastGpsMs = madeMs;
    tracking.gpsCount += 1;
  }

  /** When a lock that moves again at `madeMs` had stopped; null if it moved all the time and only had no fix. */
  #stoppedBefore({ kind, lastGpsMs, lastCellMs }: Tracking, madeMs: number): number | null {
    const dueMs = lastGpsMs + gpsIntervalOf(kind);
    // The ping came after the end of the search. So the search found a fix before its end while the lock stood still:
    // the lock must have stopped before that fix. Each of the two ms keeps two events from being simultaneous.
    const searchEndsMs = Math.max(dueMs - 1, lastCellMs) + fixSearchEnds;
    if (madeMs > searchEndsMs) return searchEndsMs - warmFixTakes - 2;
    if (this.#hadNoReception(lastGpsMs, madeMs)) return this.#stoppedBeforeOtherFix(dueMs, madeMs);
    // Any time before the missing ping would do: half an interval after the last one, unless that stop would be so long
    // that it had ended the theft or ride.
    const stoppedMs = Math.max(lastGpsMs + gpsIntervalOf(kind) / 2, madeMs - STILL_BEFORE_END_MS + 1);
    return Math.min(stoppedMs, dueMs - 1);
  }

  /** A time just before the first fix for another trigger, since a moving lock would also have made a tracking ping. */
  #stoppedBeforeOtherFix(fromMs: number, untilMs: number): number | null {
    const otherFix = this.#trace.uplinks.find(({ madeMs, uplink }) => {
      return madeMs >= fromMs && madeMs < untilMs && uplink.body.kind === 'gps' && trackingKindOf(uplink) === null;
    });
    return otherFix === undefined ? null : otherFix.madeMs - 1;
  }

  /** Whether a Period Ping (the daily ping) in this span had to wait for its GPS fix: then there was no reception. */
  #hadNoReception(fromMs: number, untilMs: number): boolean {
    return this.#trace.uplinks.some((traced) => {
      const { madeMs, uplink } = traced;
      if (madeMs <= fromMs || madeMs >= untilMs || uplink.body.kind !== 'cellular') return false;
      return uplink.body.reason === 'REASON_PERIOD_TRACKING' && !hasImmediateFix(this.#trace, traced);
    });
  }

  /** The shackle ends a theft or ride. If the lock goes on moving, tracking of the other kind starts. */
  #onShackleMoved(index: number, ping: Ping): void {
    const tracking = this.#tracking;
    if (tracking === null) return;
    const { madeMs } = this.#trace.uplinks[index] as TracedUplink;
    if (this.#continuesMoving(index, ping.lockState === 'locked' ? 'theft' : 'ride')) {
      this.spans.push({ ...spanOf(tracking), untilMs: madeMs, stoppedMs: madeMs });
      this.#tracking = null;
      return;
    }
    this.#stopTracking(this.#finalStopMs(tracking, madeMs), madeMs);
  }

  /** Whether a theft or ride of the given kind follows at once, so that the lock must have gone on moving. */
  #continuesMoving(index: number, kind: TrackingKind): boolean {
    const { uplinks } = this.#trace;
    const { madeMs } = uplinks[index] as TracedUplink;
    const dueMs = kind === 'theft' ? madeMs + THEFT_PING_DELAY_MS : madeMs;
    for (let next = index + 1; next < uplinks.length; next++) {
      const { uplink, madeMs: nextMs } = uplinks[next] as TracedUplink;
      if (nextMs > dueMs + TOLERANCE_MS) return false;
      if (uplink.body.kind === 'cellular' && trackingKindOf(uplink) === kind && isNear(nextMs, dueMs)) return true;
    }
    return false;
  }

  /** The lock closed its connection, or announced silence: from this follows when the lock had stopped moving. */
  #onClose(index: number): void {
    const traced = this.#trace.uplinks[index] as TracedUplink;
    const before = this.#trace.uplinks[index - 1];
    const tracking = this.#tracking;
    if (tracking === null || this.#followsReset(before)) return;
    const { madeMs, uplink } = traced;
    const fellSilent = isSilentAfter(uplink) && this.#wasNotSilentBefore(index);
    // Airplane mode ends a theft or ride. A low battery ends a ride only.
    if (fellSilent && (tracking.kind === 'ride' || uplink.power.airplane)) {
      this.#stopTracking(this.#finalStopMs(tracking, madeMs), madeMs);
      return;
    }
    const stoppedMs = madeMs - STILL_BEFORE_END_MS;
    if (this.#wasKeptOnlyBy(tracking, traced, before))
      this.#stopTracking(clamp(stoppedMs, earliestStopMs(tracking), madeMs), madeMs);
    else this.#stopTracking(this.#finalStopMs(tracking, stoppedMs, madeMs), madeMs);
  }

  /**
   * Whether the lock was not silent at the previous ping. Acknowledgements are skipped: they carry the settings after
   * the command.
   */
  #wasNotSilentBefore(index: number): boolean {
    const { uplinks } = this.#trace;
    let last = index - 1;
    while (uplinks[last]?.uplink.body.kind === 'ack') last -= 1;
    const before = uplinks[last];
    return before !== undefined && !isSilentAfter(before.uplink);
  }

  /** Whether the theft or ride was the only reason that kept the connection open until this close. */
  #wasKeptOnlyBy(
    { lastCellMs }: Tracking,
    { madeMs, uplink }: TracedUplink,
    before: TracedUplink | undefined,
  ): boolean {
    // No, if the connection was closed as soon as it was idle for long enough, since then its last packet had kept it
    // open; or if the next cellular ping was overdue, since then the theft or ride had ended before. The last packet
    // was the uplink before, when it was made or, if it was buffered, when it was received.
    const trafficMs = Math.max(before?.madeMs ?? 0, before?.atMs ?? 0);
    if (madeMs - trafficMs <= closeAfterIdle + GPS_TOLERANCE_MS || madeMs > lastCellMs + refreshEvery + TOLERANCE_MS)
      return false;
    // The high window, in which a lock in HIGH stays connected, ends at a full minute. Its end may have caused the
    // close.
    if (uplink.power.mode === 'HIGH' && madeMs % Seconds(60) === 0) return false;
    return !this.#trace.uplinks.some(({ madeMs: atMs, uplink: { body } }) => {
      const startsSearch = body.kind === 'cellular' && SEARCH_REASONS.has(body.reason);
      return startsSearch && isNear(atMs + fixSearchEnds, madeMs);
    });
  }

  /** Whether the uplink before acknowledges a reset, after which the lock closes its connection in any case. */
  #followsReset(before: TracedUplink | undefined): boolean {
    const body = before?.uplink.body;
    if (body?.kind !== 'ack') return false;
    return this.#trace.commands.some(({ id, command }) => id === body.commandId && command.type === 'reset');
  }

  /**
   * When the lock finally stopped, if no uplink shows it.
   *
   * @param latestMs the latest possible stop
   * @param overMs when the theft or ride was certainly over
   */
  #finalStopMs(tracking: Tracking, latestMs: number, overMs = latestMs): number {
    const { kind, lastGpsMs, lastCellMs } = tracking;
    // The cellular ping was not repeated when it was due, so the theft or ride had ended by then.
    const isOver = overMs > lastCellMs + refreshEvery + GPS_TOLERANCE_MS;
    const latest = isOver ? Math.min(latestMs, lastCellMs + refreshEvery - STILL_BEFORE_END_MS) : latestMs;
    const earliestMs = earliestStopMs(tracking);
    const likeliestMs = this.#missedGpsPing(tracking, overMs) ? lastGpsMs + gpsIntervalOf(kind) / 2 : latest;
    // If nothing else keeps the connection open, an earlier stop would have closed it earlier. That limits the stop
    // only if the theft or ride was still on at `latestMs`.
    const isKept = this.#isConnectionKept(latestMs) || overMs !== latestMs || isOver;
    return clamp(likeliestMs, isKept ? earliestMs : Math.max(earliestMs, latestMs - STILL_BEFORE_END_MS + 1), latest);
  }

  /** Whether a GPS ping was due by `atMs` and did not come. */
  #missedGpsPing({ kind, lastGpsMs }: Tracking, atMs: number): boolean {
    return atMs > lastGpsMs + gpsIntervalOf(kind) + GPS_TOLERANCE_MS;
  }

  /** Whether the lock's mode kept the connection open at a moment. */
  #isConnectionKept(atMs: number): boolean {
    const power = this.#trace.uplinks.findLast(({ madeMs }) => madeMs <= atMs)?.uplink.power;
    if (power === undefined) return false;
    const window = this.#header?.highWindow ?? POWER_MODEL.highWindow;
    // The mode alone decides here, so the battery counts as full.
    return keepsConnection(effectiveRow(POWER_MODEL, power, 100), window, atMs);
  }

  #stopTracking(stoppedMs: number, untilMs: number): void {
    const tracking = this.#tracking;
    if (tracking === null) return;
    this.events.push({ atMs: Math.round(stoppedMs), change: { type: 'motion', moving: false } });
    this.spans.push({ ...spanOf(tracking), untilMs: Math.min(untilMs, stoppedMs + STILL_BEFORE_END_MS), stoppedMs });
    this.#tracking = null;
    this.#moving = false;
  }
}

/** Whether the GPS ping of the same reason followed this cellular ping at once, so that the lock already had a fix. */
export function hasImmediateFix({ uplinks }: LockTrace, { madeMs, uplink }: TracedUplink): boolean {
  const { body } = uplink;
  return uplinks.some((other) => {
    const { body: otherBody } = other.uplink;
    const isSameReason = otherBody.kind === 'gps' && body.kind !== 'ack' && otherBody.reason === body.reason;
    return isSameReason && other.madeMs >= madeMs && other.madeMs <= madeMs + GPS_TOLERANCE_MS;
  });
}

/** The reasons of cellular pings that start a search for a fix. */
const SEARCH_REASONS: ReadonlySet<string> = new Set(['REASON_STATE_PING', 'REASON_PERIOD_TRACKING']);

function spanOf({ kind, fromMs }: Tracking): Pick<TrackedSpan, 'kind' | 'fromMs'> {
  return { kind, fromMs };
}

function gpsIntervalOf(kind: TrackingKind): number {
  return kind === 'theft' ? theftGpsEvery : rideGpsEvery;
}

/**
 * The earliest possible stop. Tracking was still on at its last cellular ping, and the lock moved at all its GPS pings
 * except the first.
 */
function earliestStopMs({ fromMs, lastCellMs, cellCount, lastGpsMs, gpsCount }: Tracking): number {
  const refreshed = cellCount > 1 ? lastCellMs - STILL_BEFORE_END_MS + 1 : fromMs;
  return Math.max(fromMs + 1, refreshed, gpsCount > 1 ? lastGpsMs + 1 : fromMs);
}

function clamp(value: number, minimum: number, maximum: number): number {
  return Math.min(Math.max(value, minimum), Math.max(maximum, minimum));
}

/**
 * Whether an uplink shows that the lock is now silent. An acknowledgement has no battery, so only airplane mode counts.
 */
function isSilentAfter({ power, body }: TracedUplink['uplink']): boolean {
  return body.kind === 'ack' ? power.airplane : isSilentWith(power, body.batteryPercent);
}

/**
 * Infers when a lock moved, from its thefts and rides (protocol.md §2). These start with a cellular ping. They end 2
 * min after the last motion, which is when the close-connection ping follows, or earlier with the shackle. Motion that
 * causes neither theft nor ride leaves no trace and is not inferred.
 */
import { Seconds } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow, keepsConnection } from '../../proto/power/step/reading.js';
import type { Ping } from '../../proto/wire/ping.js';
import { GPS_TOLERANCE, type InferredEvent, isNear, TOLERANCE } from './inferred-event.js';
import type { LockTrace, TracedUplink } from './lock-trace.js';
import { isSilentWith } from './switches.js';

const { theftAfterMotion, theftGpsEvery, rideGpsEvery, refreshEvery } = POWER_MODEL.timings;
const { theftEndsAfterStill: ENDS_AFTER_STILL, closeAfterIdle, fixSearchEnds, warmFixTakes } = POWER_MODEL.timings;

/** "For more than 6 s": how long before its first ping the motion of a theft started. */
const THEFT_AFTER = theftAfterMotion + 1;

type Kind = 'theft' | 'ride';

/** The period in which a theft or ride was tracked. */
export interface TrackedSpan {
  readonly kind: Kind;
  /** When its first ping was made. */
  readonly fromMs: number;
  /** When the lock considered it over. */
  readonly untilMs: number;
  /** When it stopped moving. */
  readonly stoodMs: number;
}

export interface InferredMotion {
  readonly events: readonly InferredEvent[];
  readonly spans: readonly TrackedSpan[];
}

interface Tracking {
  readonly kind: Kind;
  readonly fromMs: number;
  cellMs: number;
  cells: number;
  /** Of the last GPS ping; NaN before the first. */
  gpsMs: number;
  gpses: number;
}

/** Infers when the lock moved. @param untilMs when the trace ends */
export function inferMotion(trace: LockTrace, untilMs: number): InferredMotion {
  const motion = new MotionInference(trace);
  for (let index = 0; index < trace.uplinks.length; index++) motion.take(index);
  motion.end(untilMs);
  return motion;
}

const TRACKED: ReadonlySet<string> = new Set(['REASON_THEFT', 'REASON_UNLOCKED_MOVEMENT', 'REASON_UNLOCKED_PING']);

/**
 * The kind of tracking that a ping belongs to, or null. It follows from the shackle, whatever reason a lock with a bug
 * gives.
 */
function kindOf({ body }: TracedUplink['uplink']): Kind | null {
  if (body.kind === 'ack' || !TRACKED.has(body.reason)) return null;
  return body.lockState === 'unlocked' ? 'ride' : 'theft';
}

class MotionInference implements InferredMotion {
  readonly events: InferredEvent[] = [];
  readonly spans: TrackedSpan[] = [];
  readonly #trace: LockTrace;
  readonly #windowAt: LockTrace['header'];
  #tracking: Tracking | null = null;
  #moving = false;

  constructor(trace: LockTrace) {
    this.#trace = trace;
    this.#windowAt = trace.header;
  }

  take(index: number): void {
    const traced = this.#trace.uplinks[index] as TracedUplink;
    const before = this.#trace.uplinks[index - 1];
    const { uplink, madeMs } = traced;
    if (before !== undefined && before.uplink.boot < uplink.boot) this.#booted(madeMs - 1);
    if (uplink.body.kind === 'ack') return;
    const { kind, reason } = uplink.body;
    const tracked = kindOf(uplink);
    if (kind === 'close_connection') this.#closed(index);
    else if (kind === 'cellular' && reason === 'REASON_STATE_PING') this.#shackleMoved(index, uplink.body);
    else if (tracked !== null && kind === 'cellular') this.#cell(tracked, traced, before);
    else if (tracked !== null) this.#gps(tracked, madeMs);
  }

  end(untilMs: number): void {
    const tracking = this.#tracking;
    if (tracking === null) return;
    const isOver = untilMs > tracking.cellMs + refreshEvery + TOLERANCE;
    if (isOver || this.#fellSilent(tracking, untilMs)) this.#stop(this.#stillFrom(tracking, untilMs), untilMs);
    else this.spans.push({ ...spanOf(tracking), untilMs, stoodMs: untilMs });
  }

  #booted(latestMs: number): void {
    if (this.#tracking !== null) this.#stop(this.#stillFrom(this.#tracking, latestMs), latestMs);
  }

  #cell(kind: Kind, { madeMs, uplink }: TracedUplink, before: TracedUplink | undefined): void {
    const tracking = this.#tracking;
    if (tracking?.kind === kind) {
      const isTold = before !== undefined && silentAfter(uplink) && !silentAfter(before.uplink);
      if (isNear(madeMs, tracking.cellMs + refreshEvery) || isTold) {
        tracking.cellMs = madeMs;
        tracking.cells += 1;
        return;
      }
    }
    const movesMs = kind === 'theft' ? madeMs - THEFT_AFTER : madeMs;
    if (tracking !== null) {
      const latestMs = movesMs - ENDS_AFTER_STILL;
      this.#stop(this.#stillFrom(tracking, latestMs, movesMs), movesMs);
    }
    this.#begin(kind, madeMs, movesMs);
  }

  #begin(kind: Kind, fromMs: number, movesMs: number): void {
    if (!this.#moving) this.events.push({ atMs: movesMs, change: { type: 'motion', moving: true } });
    this.#moving = true;
    this.#tracking = { kind, fromMs, cellMs: fromMs, cells: 1, gpsMs: Number.NaN, gpses: 0 };
  }

  /** A short gap between GPS pings is a stop; in a longer one there was no GPS reception (sky.ts). */
  #gps(kind: Kind, madeMs: number): void {
    if (this.#tracking?.kind !== kind) {
      if (this.#tracking !== null) this.#stop(madeMs - 1, madeMs - 1);
      // The trace starts in the middle of it.
      this.#begin(kind, madeMs, kind === 'theft' ? madeMs - THEFT_AFTER : madeMs);
    }
    const tracking = this.#tracking as Tracking;
    const every = gpsEvery(kind);
    if (madeMs > tracking.gpsMs + every + GPS_TOLERANCE) {
      const stoodMs = this.#stoodFrom(tracking, madeMs);
      if (stoodMs !== null && madeMs - stoodMs < ENDS_AFTER_STILL) {
        this.events.push({ atMs: stoodMs, change: { type: 'motion', moving: false } });
        this.events.push({ atMs: madeMs, change: { type: 'motion', moving: true } });
      }
    }
    tracking.gpsMs = madeMs;
    tracking.gpses += 1;
  }

  /** Since when a lock stood still that moves again with this GPS ping; null where it was only waiting for a fix. */
  #stoodFrom({ kind, gpsMs, cellMs }: Tracking, madeMs: number): number | null {
    const dueMs = gpsMs + gpsEvery(kind);
    // A search that has ended finds nothing: it had a fix before its end, and the lock stood still by then.
    const searchEndsMs = Math.max(dueMs - 1, cellMs) + fixSearchEnds;
    if (madeMs > searchEndsMs) return searchEndsMs - warmFixTakes - 2;
    if (this.#isBlindAfter(gpsMs, madeMs)) return this.#fixedBetween(dueMs, madeMs);
    const soonestMs = Math.max(gpsMs + gpsEvery(kind) / 2, madeMs - ENDS_AFTER_STILL + 1);
    return Math.min(soonestMs, dueMs - 1);
  }

  /** Just before the first fix of another trigger: a moving lock would have made its own ping with it, too. */
  #fixedBetween(fromMs: number, untilMs: number): number | null {
    const fixed = this.#trace.uplinks.find(({ madeMs, uplink }) => {
      return madeMs >= fromMs && madeMs < untilMs && uplink.body.kind === 'gps' && kindOf(uplink) === null;
    });
    return fixed === undefined ? null : fixed.madeMs - 1;
  }

  /** Whether a Period Ping in between had to wait for its fix: then there was no GPS reception. */
  #isBlindAfter(fromMs: number, untilMs: number): boolean {
    return this.#trace.uplinks.some((traced) => {
      const { madeMs, uplink } = traced;
      if (madeMs <= fromMs || madeMs >= untilMs || uplink.body.kind !== 'cellular') return false;
      return uplink.body.reason === 'REASON_PERIOD_TRACKING' && !isLocatedAtOnce(this.#trace, traced);
    });
  }

  /** The shackle ends theft and ride. If the lock moves on, the other one starts. */
  #shackleMoved(index: number, ping: Ping): void {
    const tracking = this.#tracking;
    if (tracking === null) return;
    const { madeMs } = this.#trace.uplinks[index] as TracedUplink;
    if (this.#movesOn(index, ping.lockState === 'locked' ? 'theft' : 'ride')) {
      this.spans.push({ ...spanOf(tracking), untilMs: madeMs, stoodMs: madeMs });
      this.#tracking = null;
      return;
    }
    this.#stop(this.#stillFrom(tracking, madeMs), madeMs);
  }

  #movesOn(index: number, kind: Kind): boolean {
    const { uplinks } = this.#trace;
    const { madeMs } = uplinks[index] as TracedUplink;
    const dueMs = kind === 'theft' ? madeMs + THEFT_AFTER : madeMs;
    for (let next = index + 1; next < uplinks.length; next++) {
      const { uplink, madeMs: nextMs } = uplinks[next] as TracedUplink;
      if (nextMs > dueMs + TOLERANCE) return false;
      if (uplink.body.kind === 'cellular' && kindOf(uplink) === kind && isNear(nextMs, dueMs)) return true;
    }
    return false;
  }

  #closed(index: number): void {
    const traced = this.#trace.uplinks[index] as TracedUplink;
    const before = this.#trace.uplinks[index - 1];
    const tracking = this.#tracking;
    if (tracking === null || this.#isReset(before)) return;
    const { madeMs, uplink } = traced;
    const fellSilent = silentAfter(uplink) && this.#wasLoudBefore(index);
    if (fellSilent && (tracking.kind === 'ride' || uplink.power.airplane)) {
      this.#stop(this.#stillFrom(tracking, madeMs), madeMs);
      return;
    }
    const stoodMs = madeMs - ENDS_AFTER_STILL;
    if (this.#isHeldBy(tracking, traced, before)) this.#stop(clamped(stoodMs, earliest(tracking), madeMs), madeMs);
    else this.#stop(this.#stillFrom(tracking, stoodMs, madeMs), madeMs);
  }

  /**
   * Whether the lock was not silent at the ping before. Acknowledgements are skipped: they carry the settings that the
   * command made.
   */
  #wasLoudBefore(index: number): boolean {
    const { uplinks } = this.#trace;
    let last = index - 1;
    while (uplinks[last]?.uplink.body.kind === 'ack') last -= 1;
    const before = uplinks[last];
    return before !== undefined && !silentAfter(before.uplink);
  }

  /** Whether only the theft or ride kept the connection open until its close. */
  #isHeldBy({ cellMs }: Tracking, { madeMs, uplink }: TracedUplink, before: TracedUplink | undefined): boolean {
    const trafficMs = Math.max(before?.madeMs ?? 0, before?.atMs ?? 0);
    if (madeMs - trafficMs <= closeAfterIdle + GPS_TOLERANCE || madeMs > cellMs + refreshEvery + TOLERANCE)
      return false;
    if (uplink.power.mode === 'HIGH' && madeMs % Seconds(60) === 0) return false;
    return !this.#trace.uplinks.some(({ madeMs: atMs, uplink: { body } }) => {
      const searches = body.kind === 'cellular' && SEARCHES.has(body.reason);
      return searches && isNear(atMs + fixSearchEnds, madeMs);
    });
  }

  #isReset(before: TracedUplink | undefined): boolean {
    const body = before?.uplink.body;
    if (body?.kind !== 'ack') return false;
    return this.#trace.commands.some(({ id, command }) => id === body.commandId && command.type === 'reset');
  }

  /** When the lock finally stopped, if no uplink shows it: at `latestMs` at the latest. */
  #stillFrom(tracking: Tracking, latestMs: number, overMs = latestMs): number {
    const { kind, gpsMs, cellMs } = tracking;
    // A cellular ping that was not repeated shows that it was over by then.
    const isOver = overMs > cellMs + refreshEvery + GPS_TOLERANCE;
    const latest = isOver ? Math.min(latestMs, cellMs + refreshEvery - ENDS_AFTER_STILL) : latestMs;
    const soonest = earliest(tracking);
    const wanted = this.#fellSilent(tracking, overMs) ? gpsMs + gpsEvery(kind) / 2 : latest;
    // Where nothing else keeps the connection, an earlier end would have closed it earlier.
    const isKept = this.#isKept(latestMs) || overMs !== latestMs || isOver;
    return clamped(wanted, isKept ? soonest : Math.max(soonest, latestMs - ENDS_AFTER_STILL + 1), latest);
  }

  /** Whether GPS pings were due by then and did not come. */
  #fellSilent({ kind, gpsMs }: Tracking, atMs: number): boolean {
    return atMs > gpsMs + gpsEvery(kind) + GPS_TOLERANCE;
  }

  #isKept(atMs: number): boolean {
    const power = this.#trace.uplinks.findLast(({ madeMs }) => madeMs <= atMs)?.uplink.power;
    if (power === undefined) return false;
    const window = this.#windowAt?.highWindow ?? POWER_MODEL.highWindow;
    return keepsConnection(effectiveRow(POWER_MODEL, power, 100), window, atMs);
  }

  #stop(stoodMs: number, untilMs: number): void {
    const tracking = this.#tracking;
    if (tracking === null) return;
    this.events.push({ atMs: Math.round(stoodMs), change: { type: 'motion', moving: false } });
    this.spans.push({ ...spanOf(tracking), untilMs: Math.min(untilMs, stoodMs + ENDS_AFTER_STILL), stoodMs });
    this.#tracking = null;
    this.#moving = false;
  }
}

/** Whether the GPS ping of the same reason followed this cellular ping at once, so that there was a fix already. */
export function isLocatedAtOnce({ uplinks }: LockTrace, { madeMs, uplink }: TracedUplink): boolean {
  const { body } = uplink;
  return uplinks.some((other) => {
    const { body: its } = other.uplink;
    const isSame = its.kind === 'gps' && body.kind !== 'ack' && its.reason === body.reason;
    return isSame && other.madeMs >= madeMs && other.madeMs <= madeMs + GPS_TOLERANCE;
  });
}

const SEARCHES: ReadonlySet<string> = new Set(['REASON_STATE_PING', 'REASON_PERIOD_TRACKING']);

function spanOf({ kind, fromMs }: Tracking): Pick<TrackedSpan, 'kind' | 'fromMs'> {
  return { kind, fromMs };
}

function gpsEvery(kind: Kind): number {
  return kind === 'theft' ? theftGpsEvery : rideGpsEvery;
}

/**
 * The earliest end: tracking was still on at its last cellular ping, and its GPS pings but the first were made in
 * motion.
 */
function earliest({ fromMs, cellMs, cells, gpsMs, gpses }: Tracking): number {
  const refreshed = cells > 1 ? cellMs - ENDS_AFTER_STILL + 1 : fromMs;
  return Math.max(fromMs + 1, refreshed, gpses > 1 ? gpsMs + 1 : fromMs);
}

function clamped(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), Math.max(most, least));
}

function silentAfter({ power, body }: TracedUplink['uplink']): boolean {
  return body.kind === 'ack' ? power.airplane : isSilentWith(power, body.batteryPercent);
}

/**
 * When a lock moved, made out from its thefts and rides (protocol.md §2). They begin with a cellular ping; they end 2
 * min after the last motion, of which the close-connection ping tells, or earlier with the shackle. What moves a lock
 * without a theft or a ride leaves no trace, and so is none of our business.
 */
import { Seconds } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { effectiveRow, keepsConnection } from '../../proto/power/step/reading.js';
import type { Ping } from '../../proto/wire/ping.js';
import { GPS_TOLERANCE, type InferredEvent, isNear, TOLERANCE } from './inferred-event.js';
import { isSilentWith } from './switches.js';
import type { Heard, LockRecord } from './trace-records.js';

const { theftAfterMotion, theftGpsEvery, rideGpsEvery, refreshEvery } = POWER_MODEL.timings;
const { theftEndsAfterStill: ENDS_AFTER_STILL, closeAfterIdle, fixSearchEnds, warmFixTakes } = POWER_MODEL.timings;

/** "For more than 6 s": how long before its first ping a theft's motion began. */
const THEFT_AFTER = theftAfterMotion + 1;

type Kind = 'theft' | 'ride';

/** A theft or a ride: when it was tracked. */
export interface TrackedSpan {
  readonly kind: Kind;
  /** When its first ping was made. */
  readonly fromMs: number;
  /** When the lock took it to be over. */
  readonly untilMs: number;
  /** When it last moved. */
  readonly stoodMs: number;
}

export interface InferredMotion {
  readonly clues: readonly InferredEvent[];
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

/** Makes out when the lock moved. @param untilMs when the trace ends */
export function inferMotion(record: LockRecord, untilMs: number): InferredMotion {
  const motion = new Motion(record);
  for (let index = 0; index < record.uplinks.length; index++) motion.take(index);
  motion.end(untilMs);
  return motion;
}

const TRACKED: ReadonlySet<string> = new Set(['REASON_THEFT', 'REASON_UNLOCKED_MOVEMENT', 'REASON_UNLOCKED_PING']);

/** What a ping is of; null where it is of neither. The shackle says which, whatever a lock that errs calls it. */
function kindOf({ body }: Heard['uplink']): Kind | null {
  if (body.kind === 'ack' || !TRACKED.has(body.reason)) return null;
  return body.lockState === 'unlocked' ? 'ride' : 'theft';
}

class Motion implements InferredMotion {
  readonly clues: InferredEvent[] = [];
  readonly spans: TrackedSpan[] = [];
  readonly #record: LockRecord;
  readonly #windowAt: LockRecord['named'];
  #tracking: Tracking | null = null;
  #moving = false;

  constructor(record: LockRecord) {
    this.#record = record;
    this.#windowAt = record.named;
  }

  take(index: number): void {
    const heard = this.#record.uplinks[index] as Heard;
    const before = this.#record.uplinks[index - 1];
    const { uplink, madeMs } = heard;
    if (before !== undefined && before.uplink.boot < uplink.boot) this.#booted(madeMs - 1);
    if (uplink.body.kind === 'ack') return;
    const { kind, reason } = uplink.body;
    const tracked = kindOf(uplink);
    if (kind === 'close_connection') this.#closed(index);
    else if (kind === 'cellular' && reason === 'REASON_STATE_PING') this.#shackleMoved(index, uplink.body);
    else if (tracked !== null && kind === 'cellular') this.#cell(tracked, heard, before);
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

  #cell(kind: Kind, { madeMs, uplink }: Heard, before: Heard | undefined): void {
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
    if (!this.#moving) this.clues.push({ atMs: movesMs, change: { type: 'motion', moving: true } });
    this.#moving = true;
    this.#tracking = { kind, fromMs, cellMs: fromMs, cells: 1, gpsMs: Number.NaN, gpses: 0 };
  }

  /** A gap in the GPS pings that is short enough is a stop; in a longer one GPS could not see (sky.ts). */
  #gps(kind: Kind, madeMs: number): void {
    if (this.#tracking?.kind !== kind) {
      if (this.#tracking !== null) this.#stop(madeMs - 1, madeMs - 1);
      // The trace begins in the midst of it.
      this.#begin(kind, madeMs, kind === 'theft' ? madeMs - THEFT_AFTER : madeMs);
    }
    const tracking = this.#tracking as Tracking;
    const every = gpsEvery(kind);
    if (madeMs > tracking.gpsMs + every + GPS_TOLERANCE) {
      const stoodMs = this.#stoodFrom(tracking, madeMs);
      if (stoodMs !== null && madeMs - stoodMs < ENDS_AFTER_STILL) {
        this.clues.push({ atMs: stoodMs, change: { type: 'motion', moving: false } });
        this.clues.push({ atMs: madeMs, change: { type: 'motion', moving: true } });
      }
    }
    tracking.gpsMs = madeMs;
    tracking.gpses += 1;
  }

  /** Since when the lock stood that moves again with this GPS ping; null where all that it wanted was a fix. */
  #stoodFrom({ kind, gpsMs, cellMs }: Tracking, madeMs: number): number | null {
    const dueMs = gpsMs + gpsEvery(kind);
    // A search that is over finds nothing: it had a fix before its end, and stood by then.
    const searchEndsMs = Math.max(dueMs - 1, cellMs) + fixSearchEnds;
    if (madeMs > searchEndsMs) return searchEndsMs - warmFixTakes - 2;
    if (this.#isBlindAfter(gpsMs, madeMs)) return this.#fixedBetween(dueMs, madeMs);
    const soonestMs = Math.max(gpsMs + gpsEvery(kind) / 2, madeMs - ENDS_AFTER_STILL + 1);
    return Math.min(soonestMs, dueMs - 1);
  }

  /** Just before the first fix that another trigger had: a lock in motion would have told it by its own ping, too. */
  #fixedBetween(fromMs: number, untilMs: number): number | null {
    const fixed = this.#record.uplinks.find(({ madeMs, uplink }) => {
      return madeMs >= fromMs && madeMs < untilMs && uplink.body.kind === 'gps' && kindOf(uplink) === null;
    });
    return fixed === undefined ? null : fixed.madeMs - 1;
  }

  /** Whether a Period Ping in between had to wait for its fix: then GPS could not see. */
  #isBlindAfter(fromMs: number, untilMs: number): boolean {
    return this.#record.uplinks.some((heard) => {
      const { madeMs, uplink } = heard;
      if (madeMs <= fromMs || madeMs >= untilMs || uplink.body.kind !== 'cellular') return false;
      return uplink.body.reason === 'REASON_PERIOD_TRACKING' && !isLocatedAtOnce(this.#record, heard);
    });
  }

  /** The shackle ends theft and ride. If the lock moves on, the other of them begins. */
  #shackleMoved(index: number, ping: Ping): void {
    const tracking = this.#tracking;
    if (tracking === null) return;
    const { madeMs } = this.#record.uplinks[index] as Heard;
    if (this.#movesOn(index, ping.lockState === 'locked' ? 'theft' : 'ride')) {
      this.spans.push({ ...spanOf(tracking), untilMs: madeMs, stoodMs: madeMs });
      this.#tracking = null;
      return;
    }
    this.#stop(this.#stillFrom(tracking, madeMs), madeMs);
  }

  #movesOn(index: number, kind: Kind): boolean {
    const { uplinks } = this.#record;
    const { madeMs } = uplinks[index] as Heard;
    const dueMs = kind === 'theft' ? madeMs + THEFT_AFTER : madeMs;
    for (let next = index + 1; next < uplinks.length; next++) {
      const { uplink, madeMs: nextMs } = uplinks[next] as Heard;
      if (nextMs > dueMs + TOLERANCE) return false;
      if (uplink.body.kind === 'cellular' && kindOf(uplink) === kind && isNear(nextMs, dueMs)) return true;
    }
    return false;
  }

  #closed(index: number): void {
    const heard = this.#record.uplinks[index] as Heard;
    const before = this.#record.uplinks[index - 1];
    const tracking = this.#tracking;
    if (tracking === null || this.#isReset(before)) return;
    const { madeMs, uplink } = heard;
    const fellSilent = silentAfter(uplink) && this.#wasLoudBefore(index);
    if (fellSilent && (tracking.kind === 'ride' || uplink.power.airplane)) {
      this.#stop(this.#stillFrom(tracking, madeMs), madeMs);
      return;
    }
    const stoodMs = madeMs - ENDS_AFTER_STILL;
    if (this.#isHeldBy(tracking, heard, before)) this.#stop(clamped(stoodMs, earliest(tracking), madeMs), madeMs);
    else this.#stop(this.#stillFrom(tracking, stoodMs, madeMs), madeMs);
  }

  /** Whether the ping before was not silent: an acknowledgement tells the settings that it brought about. */
  #wasLoudBefore(index: number): boolean {
    const { uplinks } = this.#record;
    let last = index - 1;
    while (uplinks[last]?.uplink.body.kind === 'ack') last -= 1;
    const before = uplinks[last];
    return before !== undefined && !silentAfter(before.uplink);
  }

  /** Whether nothing but theft or ride kept the connection open until its close. */
  #isHeldBy({ cellMs }: Tracking, { madeMs, uplink }: Heard, before: Heard | undefined): boolean {
    const trafficMs = Math.max(before?.madeMs ?? 0, before?.atMs ?? 0);
    if (madeMs - trafficMs <= closeAfterIdle + GPS_TOLERANCE || madeMs > cellMs + refreshEvery + TOLERANCE)
      return false;
    if (uplink.power.mode === 'HIGH' && madeMs % Seconds(60) === 0) return false;
    return !this.#record.uplinks.some(({ madeMs: atMs, uplink: { body } }) => {
      const searches = body.kind === 'cellular' && SEARCHES.has(body.reason);
      return searches && isNear(atMs + fixSearchEnds, madeMs);
    });
  }

  #isReset(before: Heard | undefined): boolean {
    const body = before?.uplink.body;
    if (body?.kind !== 'ack') return false;
    return this.#record.commands.some(({ id, command }) => id === body.commandId && command.type === 'reset');
  }

  /** When the lock stood still at last, if nothing tells it: `latestMs` at the latest. */
  #stillFrom(tracking: Tracking, latestMs: number, overMs = latestMs): number {
    const { kind, gpsMs, cellMs } = tracking;
    // A cellular ping that was not sent anew tells that it was over by then.
    const isOver = overMs > cellMs + refreshEvery + GPS_TOLERANCE;
    const latest = isOver ? Math.min(latestMs, cellMs + refreshEvery - ENDS_AFTER_STILL) : latestMs;
    const soonest = earliest(tracking);
    const wanted = this.#fellSilent(tracking, overMs) ? gpsMs + gpsEvery(kind) / 2 : latest;
    // Where nothing else keeps the connection, its close would have told of an earlier end.
    const isKept = this.#isKept(latestMs) || overMs !== latestMs || isOver;
    return clamped(wanted, isKept ? soonest : Math.max(soonest, latestMs - ENDS_AFTER_STILL + 1), latest);
  }

  /** Whether GPS pings should have come by then, and did not. */
  #fellSilent({ kind, gpsMs }: Tracking, atMs: number): boolean {
    return atMs > gpsMs + gpsEvery(kind) + GPS_TOLERANCE;
  }

  #isKept(atMs: number): boolean {
    const power = this.#record.uplinks.findLast(({ madeMs }) => madeMs <= atMs)?.uplink.power;
    if (power === undefined) return false;
    const window = this.#windowAt?.highWindow ?? POWER_MODEL.highWindow;
    return keepsConnection(effectiveRow(POWER_MODEL, power, 100), window, atMs);
  }

  #stop(stoodMs: number, untilMs: number): void {
    const tracking = this.#tracking;
    if (tracking === null) return;
    this.clues.push({ atMs: Math.round(stoodMs), change: { type: 'motion', moving: false } });
    this.spans.push({ ...spanOf(tracking), untilMs: Math.min(untilMs, stoodMs + ENDS_AFTER_STILL), stoodMs });
    this.#tracking = null;
    this.#moving = false;
  }
}

/** Whether the GPS ping that follows a cellular one of the same reason came with it, so that there was a fix. */
export function isLocatedAtOnce({ uplinks }: LockRecord, { madeMs, uplink }: Heard): boolean {
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

/** It was tracked when it last spoke, and its GPS pings but the first were made in motion. */
function earliest({ fromMs, cellMs, cells, gpsMs, gpses }: Tracking): number {
  const refreshed = cells > 1 ? cellMs - ENDS_AFTER_STILL + 1 : fromMs;
  return Math.max(fromMs + 1, refreshed, gpses > 1 ? gpsMs + 1 : fromMs);
}

function clamped(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), Math.max(most, least));
}

function silentAfter({ power, body }: Heard['uplink']): boolean {
  return body.kind === 'ack' ? power.airplane : isSilentWith(power, body.batteryPercent);
}

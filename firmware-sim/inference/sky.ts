/**
 * Infers where GPS had no reception: a fix was wanted and came late, or not at all (protocol.md §2: the search for a
 * fix takes 30 s, 5 s when the last one is under 2 h old, and ends after 120 s). The state of the receiver is followed
 * from ping to ping.
 */
import { POWER_MODEL } from '../../proto/power/model.js';
import { NEVER } from '../../proto/power/step/reading.js';
import { GPS_TOLERANCE, type InferredEvent, TOLERANCE } from './inferred-event.js';
import type { LockTrace, TracedUplink } from './lock-trace.js';
import { type InferredMotion, isLocatedAtOnce, type TrackedSpan } from './motion.js';
import { isSilentWith } from './switches.js';

const { theftGpsEvery, rideGpsEvery, warmFixTakes, coldFixTakes, warmFixWithin, fixSearchEnds } = POWER_MODEL.timings;

/** The detail of an acknowledgement where GPS found no position. */
const NO_FIX = 'no fix';

/** Infers when the sky was closed. @param untilMs when the trace ends */
export function inferSky(trace: LockTrace, motion: InferredMotion, untilMs: number): InferredEvent[] {
  const receiver = new ReceiverModel(trace, motion);
  for (const traced of trace.uplinks) receiver.take(traced);
  receiver.passTo(untilMs);
  return receiver.events;
}

type Search = { readonly sinceMs: number; readonly takesMs: number };

class ReceiverModel {
  readonly events: InferredEvent[] = [];
  readonly #trace: LockTrace;
  readonly #spans: readonly TrackedSpan[];
  readonly #stopsMs: readonly number[];
  #skyOpen = true;
  #mode: 'off' | 'searching' | 'fixed' = 'off';
  #search: Search = { sinceMs: NEVER, takesMs: coldFixTakes };
  /** When the last unsuccessful search ended, as far as is known. */
  #gaveUpMs = NEVER;
  /** The time of the last fix, ms since the epoch. */
  #fixMs = NEVER;
  /** Until when a state change, and until when a Period Ping, waits for its GPS ping. */
  #stateUntilMs = NEVER;
  #periodUntilMs = NEVER;
  /** Until when a theft or ride searches. */
  #trackUntilMs = NEVER;
  /** The time of the last GPS ping of the theft or ride. */
  #trackedMs = NEVER;
  #tracks: TrackedSpan | null = null;
  #boot = -1;

  constructor(trace: LockTrace, { spans, events }: InferredMotion) {
    this.#trace = trace;
    this.#spans = spans;
    this.#stopsMs = events.flatMap(({ atMs, change }) => (change.type === 'motion' && !change.moving ? [atMs] : []));
  }

  take(traced: TracedUplink): void {
    const { uplink, madeMs } = traced;
    this.passTo(madeMs);
    if (uplink.boot !== this.#boot) this.#restart(uplink.boot);
    const { body, power } = uplink;
    if (body.kind === 'ack') {
      if (body.detail === NO_FIX) this.#close(madeMs - fixSearchEnds - 1);
      return;
    }
    if (isSilentWith(power, body.batteryPercent)) this.#forgetOneFix();
    if (body.kind === 'gps') this.#found(body.reason, madeMs);
    else if (body.kind === 'cellular') {
      const isOneFix = body.reason === 'REASON_STATE_PING' || body.reason === 'REASON_PERIOD_TRACKING';
      if (isOneFix && this.#mode === 'fixed' && !isLocatedAtOnce(this.#trace, traced)) this.#loseFix(madeMs - 1);
      this.#wants(body.reason, madeMs, power.rideTracking);
    }
    this.#switchOffIfUnused(madeMs);
  }

  /** Advances time without an uplink: a ping that should have come by now shows that there was no reception. */
  passTo(nowMs: number): void {
    const tracks = this.#tracks;
    if (tracks !== null && nowMs > tracks.untilMs) {
      this.#passIn(tracks.untilMs);
      this.#tracks = null;
      this.#switchOffIfUnused(tracks.untilMs);
    }
    this.#passIn(nowMs);
  }

  #passIn(nowMs: number): void {
    if (this.#mode === 'fixed') this.#checkMissedPing(nowMs);
    if (this.#mode !== 'searching') return;
    const { sinceMs, takesMs } = this.#search;
    const endsMs = Math.max(this.#stateUntilMs, this.#periodUntilMs, this.#trackUntilMs);
    if (sinceMs + takesMs + TOLERANCE < Math.min(nowMs, endsMs)) this.#close(sinceMs - 1);
    if (endsMs >= nowMs) return;
    this.#forgetOneFix();
    this.#mode = 'off';
    this.#gaveUpMs = endsMs;
  }

  /** Detects a missing GPS ping of a theft or ride while the lock moved. */
  #checkMissedPing(nowMs: number): void {
    const tracks = this.#tracks;
    if (tracks === null || this.#trackedMs === NEVER) return;
    const dueMs = this.#trackedMs + (tracks.kind === 'theft' ? theftGpsEvery : rideGpsEvery);
    if (dueMs + GPS_TOLERANCE >= Math.min(nowMs, tracks.stoodMs)) return;
    // If another trigger had a fix after that, the lock stood still by then.
    const stoodByMs = Math.max(dueMs, this.#fixMs);
    if (this.#stopsMs.some((atMs) => atMs > this.#trackedMs && atMs <= stoodByMs)) return;
    // As late as possible: from then on there are 120 s of search.
    this.#loseFix(dueMs - 1);
  }

  #loseFix(lostMs: number): void {
    this.#close(lostMs);
    this.#fixMs = lostMs;
    this.#mode = 'searching';
    this.#search = { sinceMs: lostMs, takesMs: warmFixTakes };
    this.#trackUntilMs = this.#tracks === null ? NEVER : lostMs + fixSearchEnds;
  }

  #wants(reason: string, madeMs: number, tracksRides: boolean): void {
    if (reason === 'REASON_STATE_PING') this.#stateUntilMs = madeMs + fixSearchEnds;
    else if (reason === 'REASON_PERIOD_TRACKING') this.#periodUntilMs = madeMs + fixSearchEnds;
    else if (reason === 'REASON_THEFT' || (reason === 'REASON_UNLOCKED_MOVEMENT' && tracksRides)) this.#track(madeMs);
    else return;
    if (this.#mode !== 'off') return;
    this.#mode = 'searching';
    this.#search = { sinceMs: madeMs, takesMs: this.#takesMs(madeMs) };
  }

  #track(madeMs: number): void {
    const span = this.#spans.find(({ fromMs, untilMs }) => fromMs <= madeMs && madeMs <= untilMs) ?? null;
    if (span !== this.#tracks) this.#trackedMs = NEVER;
    this.#tracks = span;
    this.#trackUntilMs = madeMs + fixSearchEnds;
  }

  #takesMs(madeMs: number): number {
    return madeMs - this.#fixMs < warmFixWithin ? warmFixTakes : coldFixTakes;
  }

  #found(reason: string, madeMs: number): void {
    if (!this.#skyOpen) {
      const takesMs = this.#mode === 'searching' ? this.#search.takesMs : this.#takesMs(madeMs);
      this.#skyOpen = true;
      // A theft or ride whose GPS ping comes after the search ended had its fix before, and stood still.
      const isFromBefore = this.#mode === 'off' && this.#tracks !== null && this.#gaveUpMs !== NEVER;
      const fixedMs = isFromBefore ? this.#gaveUpMs - 1 : madeMs;
      this.events.push({ atMs: fixedMs - takesMs, change: { type: 'sky', open: true } });
    }
    if (this.#mode === 'searching') this.#mode = 'fixed';
    this.#fixMs = madeMs;
    if (reason === 'REASON_STATE_PING') this.#stateUntilMs = NEVER;
    else if (reason === 'REASON_PERIOD_TRACKING') this.#periodUntilMs = NEVER;
    else if (reason !== 'REASON_GPS_PING') this.#trackedMs = madeMs;
  }

  /** Switches the receiver off when no trigger wants it any more. */
  #switchOffIfUnused(nowMs: number): void {
    const isWanted = this.#tracks !== null || this.#stateUntilMs !== NEVER || this.#periodUntilMs !== NEVER;
    if (isWanted || this.#mode === 'off') return;
    if (this.#mode === 'fixed') this.#fixMs = nowMs;
    this.#mode = 'off';
    this.#trackUntilMs = NEVER;
  }

  #forgetOneFix(): void {
    this.#stateUntilMs = NEVER;
    this.#periodUntilMs = NEVER;
  }

  #restart(boot: number): void {
    this.#boot = boot;
    this.#forgetOneFix();
    this.#mode = 'off';
    this.#tracks = null;
    this.#fixMs = NEVER;
  }

  #close(atMs: number): void {
    if (!this.#skyOpen) return;
    this.#skyOpen = false;
    this.events.push({ atMs: Math.max(atMs, this.#fixMs), change: { type: 'sky', open: false } });
  }
}

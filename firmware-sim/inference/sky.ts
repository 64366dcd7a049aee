/**
 * Infers when a lock had no GPS reception (when its *sky* was closed): the lock searched for a fix that came late, or
 * not at all (protocol.md §2: a search takes 30 s, or 5 s if the last fix is under 2 h old, and ends after 120 s). A
 * model of the GPS receiver is updated with each ping. {@link NEVER} is the time of what has not happened, before all
 * other times. Pure.
 */
import { POWER_MODEL } from '../../proto/power/model.js';
import { NEVER } from '../../proto/power/step/reading.js';
import { GPS_TOLERANCE_MS, type InferredEvent, TOLERANCE_MS } from './inferred-event.js';
import type { LockTrace, TracedUplink } from './lock-trace.js';
import { hasImmediateFix, type InferredMotion, type TrackedSpan } from './motion.js';
import { isSilentWith } from './switches.js';

const { theftGpsEvery, rideGpsEvery, warmFixTakes, coldFixTakes, warmFixWithin, fixSearchEnds } = POWER_MODEL.timings;

/** The detail of an acknowledgement if GPS found no position. */
const NO_FIX = 'no fix';

/** Infers when GPS reception was lost and returned (`sky` events). @param untilMs when the trace ends */
export function inferSky(trace: LockTrace, motion: InferredMotion, untilMs: number): InferredEvent[] {
  const receiver = new ReceiverModel(trace, motion);
  for (const traced of trace.uplinks) receiver.addUplink(traced);
  receiver.advanceTo(untilMs);
  return receiver.events;
}

/** A search for a fix: when it started, and how long it takes with reception. */
type Search = { readonly sinceMs: number; readonly takesMs: number };

/** What the GPS receiver of the lock must have done, as far as the pings show it. */
class ReceiverModel {
  readonly events: InferredEvent[] = [];
  readonly #trace: LockTrace;
  /** The thefts and rides, and when the lock stopped moving. */
  readonly #spans: readonly TrackedSpan[];
  readonly #stopsMs: readonly number[];
  #skyOpen = true;
  #mode: 'off' | 'searching' | 'fixed' = 'off';
  #search: Search = { sinceMs: NEVER, takesMs: coldFixTakes };
  /** When the last unsuccessful search ended. */
  #failedSearchEndMs = NEVER;
  /** The time of the last fix, ms since the epoch. */
  #lastFixMs = NEVER;
  /** Until when the GPS ping of a state change, and that of a Period Ping (the daily ping), wait for a fix. */
  #stateUntilMs = NEVER;
  #periodUntilMs = NEVER;
  /** Until when a theft or ride searches for a fix. */
  #trackUntilMs = NEVER;
  /** The time of the last GPS ping of the theft or ride. */
  #lastTrackingPingMs = NEVER;
  /** The theft or ride in progress. */
  #trackedSpan: TrackedSpan | null = null;
  /** The boot number of the last uplink; −1 before the first. A boot switches the receiver off. */
  #boot = -1;

  constructor(trace: LockTrace, { spans, events }: InferredMotion) {
    this.#trace = trace;
    this.#spans = spans;
    this.#stopsMs = events.flatMap(({ atMs, change }) => (change.type === 'motion' && !change.moving ? [atMs] : []));
  }

  addUplink(traced: TracedUplink): void {
    const { uplink, madeMs } = traced;
    this.advanceTo(madeMs);
    if (uplink.boot !== this.#boot) this.#restart(uplink.boot);
    const { body, power } = uplink;
    if (body.kind === 'ack') {
      if (body.detail === NO_FIX) this.#closeSky(madeMs - fixSearchEnds - 1);
      return;
    }
    if (isSilentWith(power, body.batteryPercent)) this.#cancelSingleFixes();
    if (body.kind === 'gps') this.#onGpsPing(body.reason, madeMs);
    else if (body.kind === 'cellular') {
      const isSingleFix = body.reason === 'REASON_STATE_PING' || body.reason === 'REASON_PERIOD_TRACKING';
      if (isSingleFix && this.#mode === 'fixed' && !hasImmediateFix(this.#trace, traced)) this.#loseFix(madeMs - 1);
      this.#startSearchFor(body.reason, madeMs, power.rideTracking);
    }
    this.#switchOffIfUnused(madeMs);
  }

  /** Advances time without an uplink. If a ping should have come and did not, there was no reception. */
  advanceTo(nowMs: number): void {
    const span = this.#trackedSpan;
    if (span !== null && nowMs > span.untilMs) {
      this.#advanceWithinSpan(span.untilMs);
      this.#trackedSpan = null;
      this.#switchOffIfUnused(span.untilMs);
    }
    this.#advanceWithinSpan(nowMs);
  }

  #advanceWithinSpan(nowMs: number): void {
    if (this.#mode === 'fixed') this.#checkMissedPing(nowMs);
    if (this.#mode !== 'searching') return;
    const { sinceMs, takesMs } = this.#search;
    const endsMs = Math.max(this.#stateUntilMs, this.#periodUntilMs, this.#trackUntilMs);
    if (sinceMs + takesMs + TOLERANCE_MS < Math.min(nowMs, endsMs)) this.#closeSky(sinceMs - 1);
    if (endsMs >= nowMs) return;
    this.#cancelSingleFixes();
    this.#mode = 'off';
    this.#failedSearchEndMs = endsMs;
  }

  /** Detects a missing GPS ping of a theft or ride while the lock moved. */
  #checkMissedPing(nowMs: number): void {
    const span = this.#trackedSpan;
    if (span === null || this.#lastTrackingPingMs === NEVER) return;
    const dueMs = this.#lastTrackingPingMs + (span.kind === 'theft' ? theftGpsEvery : rideGpsEvery);
    if (dueMs + GPS_TOLERANCE_MS >= Math.min(nowMs, span.stoppedMs)) return;
    // If another trigger had a fix after the due time, the lock stood still by then.
    const stoodStillByMs = Math.max(dueMs, this.#lastFixMs);
    if (this.#stopsMs.some((atMs) => atMs > this.#lastTrackingPingMs && atMs <= stoodStillByMs)) return;
    // As late as possible, since the search for a new fix then lasts 120 s.
    this.#loseFix(dueMs - 1);
  }

  /** The receiver lost its fix and searches again. */
  #loseFix(lostMs: number): void {
    this.#closeSky(lostMs);
    this.#lastFixMs = lostMs;
    this.#mode = 'searching';
    this.#search = { sinceMs: lostMs, takesMs: warmFixTakes };
    this.#trackUntilMs = this.#trackedSpan === null ? NEVER : lostMs + fixSearchEnds;
  }

  #startSearchFor(reason: string, madeMs: number, tracksRides: boolean): void {
    if (reason === 'REASON_STATE_PING') this.#stateUntilMs = madeMs + fixSearchEnds;
    else if (reason === 'REASON_PERIOD_TRACKING') this.#periodUntilMs = madeMs + fixSearchEnds;
    else if (reason === 'REASON_THEFT' || (reason === 'REASON_UNLOCKED_MOVEMENT' && tracksRides))
      this.#startTracking(madeMs);
    else return;
    if (this.#mode !== 'off') return;
    this.#mode = 'searching';
    this.#search = { sinceMs: madeMs, takesMs: this.#searchDurationMs(madeMs) };
  }

  #startTracking(madeMs: number): void {
    const span = this.#spans.find(({ fromMs, untilMs }) => fromMs <= madeMs && madeMs <= untilMs) ?? null;
    if (span !== this.#trackedSpan) this.#lastTrackingPingMs = NEVER;
    this.#trackedSpan = span;
    this.#trackUntilMs = madeMs + fixSearchEnds;
  }

  #searchDurationMs(madeMs: number): number {
    return madeMs - this.#lastFixMs < warmFixWithin ? warmFixTakes : coldFixTakes;
  }

  #onGpsPing(reason: string, madeMs: number): void {
    if (!this.#skyOpen) {
      const takesMs = this.#mode === 'searching' ? this.#search.takesMs : this.#searchDurationMs(madeMs);
      this.#skyOpen = true;
      // The GPS ping of a theft or ride came after the search ended. So the fix came earlier, while the lock stood
      // still.
      const hadFixBefore = this.#mode === 'off' && this.#trackedSpan !== null && this.#failedSearchEndMs !== NEVER;
      const fixedMs = hadFixBefore ? this.#failedSearchEndMs - 1 : madeMs;
      this.events.push({ atMs: fixedMs - takesMs, change: { type: 'sky', open: true } });
    }
    if (this.#mode === 'searching') this.#mode = 'fixed';
    this.#lastFixMs = madeMs;
    if (reason === 'REASON_STATE_PING') this.#stateUntilMs = NEVER;
    else if (reason === 'REASON_PERIOD_TRACKING') this.#periodUntilMs = NEVER;
    else if (reason !== 'REASON_GPS_PING') this.#lastTrackingPingMs = madeMs;
  }

  /** Switches the receiver off when no trigger needs it any more. */
  #switchOffIfUnused(nowMs: number): void {
    const isWanted = this.#trackedSpan !== null || this.#stateUntilMs !== NEVER || this.#periodUntilMs !== NEVER;
    if (isWanted || this.#mode === 'off') return;
    if (this.#mode === 'fixed') this.#lastFixMs = nowMs;
    this.#mode = 'off';
    this.#trackUntilMs = NEVER;
  }

  /** Gives up the searches for the one fix of a state change or Period Ping. Thefts and rides need fixes all along. */
  #cancelSingleFixes(): void {
    this.#stateUntilMs = NEVER;
    this.#periodUntilMs = NEVER;
  }

  #restart(boot: number): void {
    this.#boot = boot;
    this.#cancelSingleFixes();
    this.#mode = 'off';
    this.#trackedSpan = null;
    this.#lastFixMs = NEVER;
  }

  /** Reception ended at this time, or at the last fix if that is later. */
  #closeSky(atMs: number): void {
    if (!this.#skyOpen) return;
    this.#skyOpen = false;
    this.events.push({ atMs: Math.max(atMs, this.#lastFixMs), change: { type: 'sky', open: false } });
  }
}

/**
 * Where GPS could not see: a fix was wanted and came late, or not at all (protocol.md §2: the search for a fix takes 30
 * s, 5 s when the last one is under 2 h old, and ends after 120 s). The receiver is followed from ping to ping.
 */
import { POWER_MODEL } from '../../proto/power/model.js';
import { NEVER } from '../../proto/power/step/reading.js';
import { GPS_TOLERANCE, type InferredEvent, TOLERANCE } from './inferred-event.js';
import { type InferredMotion, isLocatedAtOnce, type TrackedSpan } from './motion.js';
import { isSilentWith } from './switches.js';
import type { Heard, LockRecord } from './trace-records.js';

const { theftGpsEvery, rideGpsEvery, warmFixTakes, coldFixTakes, warmFixWithin, fixSearchEnds } = POWER_MODEL.timings;

/** What an acknowledgement says of a place that GPS could not find. */
const NO_FIX = 'no fix';

/** Makes out when the sky was closed. @param untilMs when the trace ends */
export function inferSky(record: LockRecord, motion: InferredMotion, untilMs: number): InferredEvent[] {
  const receiver = new Receiver(record, motion);
  for (const heard of record.uplinks) receiver.take(heard);
  receiver.passTo(untilMs);
  return receiver.clues;
}

type Search = { readonly sinceMs: number; readonly takesMs: number };

class Receiver {
  readonly clues: InferredEvent[] = [];
  readonly #record: LockRecord;
  readonly #spans: readonly TrackedSpan[];
  readonly #stopsMs: readonly number[];
  #skyOpen = true;
  #mode: 'off' | 'searching' | 'fixed' = 'off';
  #search: Search = { sinceMs: NEVER, takesMs: coldFixTakes };
  /** When the last search ended that found nothing, as far as is known. */
  #gaveUpMs = NEVER;
  /** Of the last fix, ms since the epoch. */
  #fixMs = NEVER;
  /** Until when each of them waits for its GPS ping. */
  #stateUntilMs = NEVER;
  #periodUntilMs = NEVER;
  /** Until when theft or ride searches. */
  #trackUntilMs = NEVER;
  /** Of the last GPS ping of the theft or ride. */
  #trackedMs = NEVER;
  #tracks: TrackedSpan | null = null;
  #boot = -1;

  constructor(record: LockRecord, { spans, clues }: InferredMotion) {
    this.#record = record;
    this.#spans = spans;
    this.#stopsMs = clues.flatMap(({ atMs, change }) => (change.type === 'motion' && !change.moving ? [atMs] : []));
  }

  take(heard: Heard): void {
    const { uplink, madeMs } = heard;
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
      if (isOneFix && this.#mode === 'fixed' && !isLocatedAtOnce(this.#record, heard)) this.#lose(madeMs - 1);
      this.#wants(body.reason, madeMs, power.rideTracking);
    }
    this.#settle(madeMs);
  }

  /** Time passed, and no uplink came: what should have come by now tells of the sky. */
  passTo(nowMs: number): void {
    const tracks = this.#tracks;
    if (tracks !== null && nowMs > tracks.untilMs) {
      this.#passIn(tracks.untilMs);
      this.#tracks = null;
      this.#settle(tracks.untilMs);
    }
    this.#passIn(nowMs);
  }

  #passIn(nowMs: number): void {
    if (this.#mode === 'fixed') this.#looseFix(nowMs);
    if (this.#mode !== 'searching') return;
    const { sinceMs, takesMs } = this.#search;
    const endsMs = Math.max(this.#stateUntilMs, this.#periodUntilMs, this.#trackUntilMs);
    if (sinceMs + takesMs + TOLERANCE < Math.min(nowMs, endsMs)) this.#close(sinceMs - 1);
    if (endsMs >= nowMs) return;
    this.#forgetOneFix();
    this.#mode = 'off';
    this.#gaveUpMs = endsMs;
  }

  /** A GPS ping of the theft or ride is missing, and the lock moved. */
  #looseFix(nowMs: number): void {
    const tracks = this.#tracks;
    if (tracks === null || this.#trackedMs === NEVER) return;
    const dueMs = this.#trackedMs + (tracks.kind === 'theft' ? theftGpsEvery : rideGpsEvery);
    if (dueMs + GPS_TOLERANCE >= Math.min(nowMs, tracks.stoodMs)) return;
    // Where another trigger had a fix after that it stood by then.
    const stoodByMs = Math.max(dueMs, this.#fixMs);
    if (this.#stopsMs.some((atMs) => atMs > this.#trackedMs && atMs <= stoodByMs)) return;
    // As late as it can be: from then on it is searched for 120 s.
    this.#lose(dueMs - 1);
  }

  #lose(lostMs: number): void {
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
      // A ride or theft that tells its place when nobody searches any more had its fix before, and stood.
      const isFromBefore = this.#mode === 'off' && this.#tracks !== null && this.#gaveUpMs !== NEVER;
      const fixedMs = isFromBefore ? this.#gaveUpMs - 1 : madeMs;
      this.clues.push({ atMs: fixedMs - takesMs, change: { type: 'sky', open: true } });
    }
    if (this.#mode === 'searching') this.#mode = 'fixed';
    this.#fixMs = madeMs;
    if (reason === 'REASON_STATE_PING') this.#stateUntilMs = NEVER;
    else if (reason === 'REASON_PERIOD_TRACKING') this.#periodUntilMs = NEVER;
    else if (reason !== 'REASON_GPS_PING') this.#trackedMs = madeMs;
  }

  /** Nobody wants the receiver any more. */
  #settle(nowMs: number): void {
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
    this.clues.push({ atMs: Math.max(atMs, this.#fixMs), change: { type: 'sky', open: false } });
  }
}

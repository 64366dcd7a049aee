/**
 * Collects what truly happened to the locks of a virtual run, from the trace's `world` events, and decides whether that
 * explains a warning of the judge. A warning is explained if the lock was cut off within the time that the rule looks
 * at, or if the lock could not announce its state. Must not use code of the judge, whose findings this file tests.
 */
import { Hours, Minutes, Seconds } from '../../../proto/clock.js';
import type { RuleName } from '../../../proto/power/rules.js';
import type { TraceHeader, TraceWorld } from '../../../proto/trace/trace.js';
import type { Mac } from '../../../proto/wire/mac.js';

/**
 * How long a lock may take to reconnect after a cut: its longest retry interval, 6 min (protocol.md §2), and a margin.
 */
const MAX_RECONNECT_MS = Minutes(7);
/** A battery below this percentage is low (specification, Limits). */
const LOW_PERCENT = 10;
/** A cut and the disconnect that the gateway sees are at most this far apart. */
const SAME_MOMENT_MS = Seconds(1);

/** A time in which a state lasts, ms since the epoch; `toMs` is Infinity while it lasts. */
interface Span {
  readonly fromMs: number;
  toMs: number;
}

/** The true states of one lock as spans, and its events. */
class LockTruth {
  readonly uncovered: Span[] = [];
  /** Spans in which the lock is silent except for thefts: airplane mode switched on at the lock, or a low battery. */
  readonly airplane: Span[] = [];
  readonly low: Span[] = [];
  /** Boots and restarts of the modem. */
  readonly cuts: number[] = [];
}

/** What truly happened to all locks of a run. */
export class WorldTruth {
  readonly #locks = new Map<Mac, LockTruth>();

  constructor({ locks }: TraceHeader, startMs: number) {
    for (const [mac, { power }] of locks) {
      const truth = new LockTruth();
      if (power.airplane) openSpan(truth.airplane, startMs);
      this.#locks.set(mac, truth);
    }
  }

  /** Adds a `world` event, in order of time. @throws Error if it names a lock that is not in the header */
  add({ mac, atMs, members }: TraceWorld): void {
    const truth = mac === null ? undefined : this.#locks.get(mac);
    if (truth === undefined) throw new Error('a world event names a lock that is not in the header');
    if (members.coverage !== undefined) setState(truth.uncovered, members.coverage === false, atMs);
    if (typeof members.battery_percent === 'number') setState(truth.low, members.battery_percent < LOW_PERCENT, atMs);
    if (members.boot !== undefined || members.modem_reset !== undefined) truth.cuts.push(atMs);
    const power = members.power as { airplane?: boolean } | undefined;
    if (power?.airplane !== undefined) setState(truth.airplane, power.airplane, atMs);
  }

  /** The event of the world that caused the warning; null if there is none. */
  explain(mac: Mac, rule: RuleName, atMs: number): string | null {
    const truth = this.#locks.get(mac);
    if (truth === undefined) return null;
    switch (rule) {
      case 'not-closed':
        return cutWithin(truth, atMs - SAME_MOMENT_MS, atMs) ? 'its connection was cut' : null;
      case 'window-offline':
      case 'recovery-offline':
        // Both rules allow 10 min.
        return cutWithin(truth, atMs - Minutes(10) - MAX_RECONNECT_MS, atMs) ? 'cut off' : silenceReason(truth, atMs);
      case 'period-overdue':
        // The rule allows an hour after the daily ping was due.
        return overlaps(truth.uncovered, atMs - Hours(1) - MAX_RECONNECT_MS, atMs)
          ? 'cut off'
          : silenceReason(truth, atMs);
      default:
        return null;
    }
  }
}

/** Whether the lock had no coverage, booted or restarted its modem at some moment of this time. */
function cutWithin({ uncovered, cuts }: LockTruth, fromMs: number, toMs: number): boolean {
  return overlaps(uncovered, fromMs, toMs) || cuts.some((atMs) => atMs >= fromMs && atMs <= toMs);
}

/** Why the lock was silent at `atMs` without being able to announce it; null if it was not. */
function silenceReason({ airplane, low, uncovered }: LockTruth, atMs: number): string | null {
  for (const [reason, spans] of [
    ['airplane', airplane],
    ['low battery', low],
  ] as const) {
    const span = spans.find(({ fromMs, toMs }) => fromMs <= atMs && toMs >= atMs);
    // The lock could not announce the state if it had no coverage when the state began.
    if (span !== undefined && overlaps(uncovered, span.fromMs, span.fromMs))
      return `${reason} that it could not announce`;
  }
  return null;
}

function overlaps(spans: readonly Span[], fromMs: number, toMs: number): boolean {
  return spans.some((span) => span.fromMs <= toMs && span.toMs >= fromMs);
}

/** Opens or closes the last span, depending on whether the state holds from now on. */
function setState(spans: Span[], holds: boolean, atMs: number): void {
  const last = spans.at(-1);
  const isOpen = last?.toMs === Number.POSITIVE_INFINITY;
  if (holds && !isOpen) openSpan(spans, atMs);
  else if (!holds && isOpen && last !== undefined) last.toMs = atMs;
}

function openSpan(spans: Span[], atMs: number): void {
  spans.push({ fromMs: atMs, toMs: Number.POSITIVE_INFINITY });
}

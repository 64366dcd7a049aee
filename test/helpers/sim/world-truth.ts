/**
 * What truly happened around the locks of a virtual run, from the trace's `world` events, and whether it explains a
 * warning. It uses nothing of the judge: a warning is explained where the world cut the lock off, or kept it from
 * announcing its state, within the span of the rule.
 */
import { Hours, type Milliseconds, Minutes, Seconds } from '../../../proto/clock.js';
import type { RuleName } from '../../../proto/power/rules.js';
import type { TraceHeader, TraceWorld } from '../../../proto/trace/trace.js';
import type { Mac } from '../../../proto/wire/mac.js';

/** How long a lock may take to reconnect after a cut: its longest wait of 6 min (protocol.md §2), and some more. */
const BACK_WITHIN = Minutes(7);
/** The cut of a connection and what the gateway sees of it happen at the same moment. */
const AT_ONCE = Seconds(1);

interface Span {
  readonly fromMs: number;
  toMs: number;
}

/** States of a lock with their duration, and events at a moment. */
class LockTruth {
  readonly uncovered: Span[] = [];
  /** Airplane mode switched on by hand, or the battery below 10 %: the lock is silent, except for thefts. */
  readonly airplane: Span[] = [];
  readonly low: Span[] = [];
  /** Boots and restarts of the modem. */
  readonly cuts: number[] = [];
}

export class WorldTruth {
  readonly #locks = new Map<Mac, LockTruth>();

  constructor({ locks }: TraceHeader, startMs: number) {
    for (const [mac, { power }] of locks) {
      const truth = new LockTruth();
      if (power.airplane) open(truth.airplane, startMs);
      this.#locks.set(mac, truth);
    }
  }

  note({ mac, atMs, members }: TraceWorld): void {
    const truth = mac === null ? undefined : this.#locks.get(mac);
    if (truth === undefined) throw new Error('something happened to a lock that the header does not name');
    if (members.coverage !== undefined) set(truth.uncovered, members.coverage === false, atMs);
    if (typeof members.battery_percent === 'number') set(truth.low, members.battery_percent < 10, atMs);
    if (members.boot !== undefined || members.modem_reset !== undefined) truth.cuts.push(atMs);
    const power = members.power as { airplane?: boolean } | undefined;
    if (power?.airplane !== undefined) set(truth.airplane, power.airplane, atMs);
  }

  /** What in the world caused the warning; null where nothing did. */
  explain(mac: Mac, rule: RuleName, atMs: number): string | null {
    const truth = this.#locks.get(mac);
    if (truth === undefined) return null;
    switch (rule) {
      case 'not-closed':
        return cutWithin(truth, atMs - AT_ONCE, atMs) ? 'its connection was cut' : null;
      case 'window-offline':
      case 'recovery-offline':
        return cutWithin(truth, atMs - Minutes(10) - BACK_WITHIN, atMs) ? 'cut off' : silent(truth, atMs);
      case 'period-overdue':
        return within(truth.uncovered, atMs - Hours(1) - BACK_WITHIN, atMs) ? 'cut off' : silent(truth, atMs);
      default:
        return null;
    }
  }
}

function cutWithin({ uncovered, cuts }: LockTruth, fromMs: number, toMs: number): boolean {
  return within(uncovered, fromMs, toMs) || cuts.some((atMs) => atMs >= fromMs && atMs <= toMs);
}

/** It fell silent where it could not announce it. */
function silent({ airplane, low, uncovered }: LockTruth, atMs: number): string | null {
  for (const [why, spans] of [
    ['airplane', airplane],
    ['low battery', low],
  ] as const) {
    const span = spans.find(({ fromMs, toMs }) => fromMs <= atMs && toMs >= atMs);
    if (span !== undefined && within(uncovered, span.fromMs, span.fromMs)) return `${why} that it could not announce`;
  }
  return null;
}

function within(spans: readonly Span[], fromMs: number, toMs: Milliseconds): boolean {
  return spans.some((span) => span.fromMs <= toMs && span.toMs >= fromMs);
}

function set(spans: Span[], holds: boolean, atMs: number): void {
  const last = spans.at(-1);
  const isOpen = last?.toMs === Number.POSITIVE_INFINITY;
  if (holds && !isOpen) open(spans, atMs);
  else if (!holds && isOpen && last !== undefined) last.toMs = atMs;
}

function open(spans: Span[], atMs: number): void {
  spans.push({ fromMs: atMs, toMs: Number.POSITIVE_INFINITY });
}

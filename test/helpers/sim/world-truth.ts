/**
 * What truly happened around the locks of a virtual run, from the trace's `world` events, and whether it explains a
 * warning. Nothing of the judge is in it: a warning is explained where the world cut the lock off, or kept it from
 * saying what it was in, within the span that the rule speaks of.
 */
import { Hours, type Milliseconds, Minutes, Seconds } from '../../../proto/clock.js';
import type { RuleName } from '../../../proto/power/rules.js';
import type { TraceHeader, TraceWorld } from '../../../proto/trace/trace.js';
import type { Mac } from '../../../proto/wire/mac.js';

/** How long after a cut a lock may be on its way back: its longest wait of 6 min (protocol.md §2), and some. */
const BACK_WITHIN = Minutes(7);
/** What cuts a connection and what the gateway sees of it happen at one moment. */
const AT_ONCE = Seconds(1);

interface Span {
  readonly fromMs: number;
  toMs: number;
}

/** What holds of a lock for a while, and what befalls it at a moment. */
class LockTruth {
  readonly uncovered: Span[] = [];
  /** Airplane on by hand, or the battery below 10 %: it is silent, but for thieves. */
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

  /** What the world did that the warning comes from; null where it did nothing. */
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

/** It fell silent where it could not say so. */
function silent({ airplane, low, uncovered }: LockTruth, atMs: number): string | null {
  for (const [why, spans] of [
    ['airplane', airplane],
    ['low battery', low],
  ] as const) {
    const span = spans.find(({ fromMs, toMs }) => fromMs <= atMs && toMs >= atMs);
    if (span !== undefined && within(uncovered, span.fromMs, span.fromMs)) return `${why} that it could not tell of`;
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

/**
 * Compares the uplinks of a real lock with those of its shadow, a simulated lock that runs with the same events around
 * it. Firmware may differ in timing from the model's defaults (how long a fix takes, at which second a series starts),
 * so uplinks are matched by what they say and by about when they were made. Pure.
 */
import { type Milliseconds, Minutes, Seconds } from '../../../proto/clock.js';
import type { CommandAck, Ping, Uplink } from '../../../proto/wire/ping.js';

/** An uplink and when it was made, ms since the epoch by the clock of receipt. */
export interface DatedUplink {
  readonly uplink: Uplink;
  readonly madeMs: number;
}

/**
 * The uplinks without a counterpart, in order of time: those that only the real lock made (`sent`), and those that only
 * the simulated lock made (`owed`).
 */
export interface Unmatched<Real extends DatedUplink> {
  readonly sent: readonly Real[];
  readonly owed: readonly DatedUplink[];
}

/** The times of two matching uplinks may differ by this much. */
const MATCH_WITHIN = Seconds(90);
/** A daily ping may be made at another minute: rule period-too-soon allows an hour. */
const PERIOD_MATCH_WITHIN = Minutes(60);
/** An answer may wait for a search for a fix, which takes up to 120 s. */
const ACK_MATCH_WITHIN = Minutes(4);

/** After a reconnect, the network pings of every 15 min may be out of phase. */
const NETWORK_MATCH_WITHIN = Minutes(16);

/** A kind of ping that a lock repeats during a theft, a ride or a kept connection: in a *run*. */
interface Series {
  /** By how many pings a run of the real lock may be longer or shorter than a run of the simulated lock. */
  readonly allowance: number;
  /** Unmatched pings further apart than this belong to two runs. */
  readonly runGap: Milliseconds;
}

/** The series by the kind of ping. A theft makes 9 pings in {@link MATCH_WITHIN}, a ride 3. */
const SERIES: Readonly<Record<string, Series>> = {
  'gps REASON_THEFT': { allowance: 9, runGap: Minutes(2) },
  'gps REASON_UNLOCKED_PING': { allowance: 3, runGap: Minutes(2) },
  'cellular REASON_NETWORK_PING': { allowance: 1, runGap: Minutes(60) },
};

/** The part of an uplink's content that must be equal for a match. */
export function kindOf({ body }: Uplink): string {
  return body.kind === 'ack' ? `ack ${body.commandId}` : pingKindOf(body);
}

function pingKindOf(body: Exclude<Ping, CommandAck>): string {
  // Only state-change pings are compared by their lock state: the lock may change it between two other uplinks.
  if (body.kind === 'close_connection') return body.kind;
  const state = body.reason === 'REASON_STATE_PING' && body.kind === 'cellular' ? ` ${body.lockState}` : '';
  return `${body.kind} ${body.reason}${state}`;
}

/** By how much the times of two uplinks of a kind may differ. */
export function matchWithin(kind: string): number {
  if (kind.startsWith('ack')) return ACK_MATCH_WITHIN;
  if (kind.endsWith('REASON_NETWORK_PING')) return NETWORK_MATCH_WITHIN;
  return kind.endsWith('REASON_PERIOD_TRACKING') ? PERIOD_MATCH_WITHIN : MATCH_WITHIN;
}

/** Finds the uplinks without a counterpart. */
export function unmatchedUplinks<Real extends DatedUplink>(
  real: readonly Real[],
  simulated: readonly DatedUplink[],
): Unmatched<Real> {
  const sent: Real[] = [];
  const owed: DatedUplink[] = [];
  const realByKind = byKind(real);
  const simulatedByKind = byKind(simulated);
  for (const kind of new Set([...realByKind.keys(), ...simulatedByKind.keys()])) {
    const realOfKind = realByKind.get(kind) ?? [];
    const simulatedOfKind = simulatedByKind.get(kind) ?? [];
    const unmatched = matchInOrder(realOfKind, simulatedOfKind, matchWithin(kind));
    sent.push(...withoutAllowed(unmatched.sent, simulatedOfKind, kind));
    owed.push(...withoutAllowed(unmatched.owed, realOfKind, kind));
  }
  return { sent: sent.sort(byTime), owed: owed.sort(byTime) };
}

function byTime(a: DatedUplink, b: DatedUplink): number {
  return a.madeMs - b.madeMs;
}

function byKind<Item extends DatedUplink>(items: readonly Item[]): Map<string, Item[]> {
  const kinds = new Map<string, Item[]>();
  for (const item of items) {
    const kind = kindOf(item.uplink);
    const ofKind = kinds.get(kind);
    if (ofKind === undefined) kinds.set(kind, [item]);
    else ofKind.push(item);
  }
  for (const ofKind of kinds.values()) ofKind.sort(byTime);
  return kinds;
}

/** Pairs two lists of one kind, both in order of time. */
function matchInOrder<Real extends DatedUplink>(
  real: readonly Real[],
  simulated: readonly DatedUplink[],
  within: number,
): Unmatched<Real> {
  const sent: Real[] = [];
  const owed: DatedUplink[] = [];
  let [realIndex, simulatedIndex] = [0, 0];
  while (realIndex < real.length || simulatedIndex < simulated.length) {
    const nextReal = real[realIndex];
    const nextSimulated = simulated[simulatedIndex];
    if (nextReal === undefined || (nextSimulated !== undefined && nextSimulated.madeMs < nextReal.madeMs - within)) {
      // It exists: the loop goes on only while one of the two lists has an uplink left.
      owed.push(nextSimulated as DatedUplink);
      simulatedIndex += 1;
    } else if (nextSimulated === undefined || nextReal.madeMs < nextSimulated.madeMs - within) {
      sent.push(nextReal);
      realIndex += 1;
    } else {
      realIndex += 1;
      simulatedIndex += 1;
    }
  }
  return { sent, owed };
}

/**
 * Leaves out unmatched pings of a series if the other side has such pings at about the time, as many as are allowed.
 */
function withoutAllowed<Item extends DatedUplink>(
  unmatched: readonly Item[],
  otherSide: readonly DatedUplink[],
  kind: string,
): Item[] {
  const series = SERIES[kind];
  if (series === undefined) return [...unmatched];
  let used = 0;
  let lastMs = Number.NEGATIVE_INFINITY;
  return unmatched.filter(({ madeMs }) => {
    if (madeMs - lastMs > series.runGap) used = 0;
    lastMs = madeMs;
    const hasOtherNearby = otherSide.some((other) => Math.abs(other.madeMs - madeMs) <= matchWithin(kind));
    if (!hasOtherNearby || used >= series.allowance) return true;
    used += 1;
    return false;
  });
}

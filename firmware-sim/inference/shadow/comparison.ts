/**
 * Compares what a real lock sent with what its simulated shadow made in the inferred world. Firmware may differ in
 * timing from the model's defaults (how long a fix takes, at which second a series starts), so uplinks are matched by
 * what they say and by about when they were made. Pure.
 */
import { type Milliseconds, Minutes, Seconds } from '../../../proto/clock.js';
import type { CommandAck, Ping, Uplink } from '../../../proto/wire/ping.js';

/** An uplink and when it was made, ms since the epoch by the clock of receipt. */
export interface DatedUplink {
  readonly uplink: Uplink;
  readonly madeMs: number;
}

/** What has no counterpart on the other side, in the order of time. */
export interface Unmatched<Real extends DatedUplink> {
  readonly sent: readonly Real[];
  readonly owed: readonly DatedUplink[];
}

/** By how much the times of two uplinks may differ that count as the same. */
const MATCH_WITHIN = Seconds(90);
/** A daily ping may be made at another minute: rule period-too-soon allows an hour. */
const PERIOD_MATCH_WITHIN = Minutes(60);
/** An answer may wait for a search for a fix, which takes up to 120 s. */
const ACK_MATCH_WITHIN = Minutes(4);

/** After a reconnect, the network pings of every 15 min may be out of phase. */
const NETWORK_MATCH_WITHIN = Minutes(16);

/** A series of pings that a lock repeats. */
interface Series {
  /** By how many pings a run may be longer or shorter than the model's. */
  readonly allowance: number;
  /** Unmatched pings further apart than this belong to two runs. */
  readonly runGap: Milliseconds;
}

const SERIES: Readonly<Record<string, Series>> = {
  'gps REASON_THEFT': { allowance: 9, runGap: Minutes(2) },
  'gps REASON_UNLOCKED_PING': { allowance: 3, runGap: Minutes(2) },
  'cellular REASON_NETWORK_PING': { allowance: 1, runGap: Minutes(60) },
};

/** What an uplink says, as far as the model determines it. */
export function kindOf({ body }: Uplink): string {
  return body.kind === 'ack' ? `ack ${body.commandId}` : pingKindOf(body);
}

function pingKindOf(body: Exclude<Ping, CommandAck>): string {
  // What a close-connection ping and an acknowledgement say about the shackle is the business of other pings.
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
    const ofReal = realByKind.get(kind) ?? [];
    const ofSimulated = simulatedByKind.get(kind) ?? [];
    const left = matchInOrder(ofReal, ofSimulated, matchWithin(kind));
    sent.push(...withoutAllowed(left.sent, ofSimulated, kind));
    owed.push(...withoutAllowed(left.owed, ofReal, kind));
  }
  return { sent: sent.sort(byTime), owed: owed.sort(byTime) };
}

function byTime(one: DatedUplink, other: DatedUplink): number {
  return one.madeMs - other.madeMs;
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
  let [next, other] = [0, 0];
  while (next < real.length || other < simulated.length) {
    const one = real[next];
    const two = simulated[other];
    if (one === undefined || (two !== undefined && two.madeMs < one.madeMs - within)) {
      owed.push(two as DatedUplink);
      other += 1;
    } else if (two === undefined || one.madeMs < two.madeMs - within) {
      sent.push(one);
      next += 1;
    } else {
      next += 1;
      other += 1;
    }
  }
  return { sent, owed };
}

/** Leaves out the unmatched pings of a series that both sides have, as many in a run as the series allows. */
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
    const isShared = otherSide.some((other) => Math.abs(other.madeMs - madeMs) <= matchWithin(kind));
    if (!isShared || used >= series.allowance) return true;
    used += 1;
    return false;
  });
}

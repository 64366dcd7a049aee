/** Compares the pings of a traced lock with the pings of the simulated lock that was made from the trace. Pure. */
import { fieldValue, type Ping, type PingUplink } from '../../proto/wire/ping.js';
import { PING_FIELD_ROWS } from '../../proto/wire/ping-fields.js';

/** The first difference between two lists. `trace` or `simulated` is undefined if that list is shorter. */
export interface FirstDifference {
  /** From 0. */
  readonly index: number;
  readonly trace: PingUplink | undefined;
  readonly simulated: PingUplink | undefined;
}

/** How often a reason occurs in each list. */
export interface ReasonCount {
  readonly reason: string;
  trace: number;
  simulated: number;
}

/** The fields that must be equal. Times, places and sensor values may differ. */
const REPRODUCED_FIELDS = PING_FIELD_ROWS.flatMap(([property, { isReproduced }]) => (isReproduced ? [property] : []));

/** The first pings that differ in type or in a field that must be equal; null if there are none. */
export function firstDifference(
  trace: readonly PingUplink[],
  simulated: readonly PingUplink[],
): FirstDifference | null {
  const longest = Math.max(trace.length, simulated.length);
  for (let index = 0; index < longest; index++) {
    const [ofTrace, ofSimulation] = [trace[index], simulated[index]];
    if (ofTrace === undefined || ofSimulation === undefined || !isEquivalent(ofTrace.body, ofSimulation.body))
      return { index, trace: ofTrace, simulated: ofSimulation };
  }
  return null;
}

function isEquivalent(a: Ping, b: Ping): boolean {
  return (
    a.kind === b.kind && REPRODUCED_FIELDS.every((property) => fieldValue(a, property) === fieldValue(b, property))
  );
}

/** Counts by reason, in alphabetical order. */
export function countReasons(trace: Iterable<PingUplink>, simulated: Iterable<PingUplink>): ReasonCount[] {
  const counts = new Map<string, ReasonCount>();
  const countOf = ({ body: { reason } }: PingUplink): ReasonCount => {
    let count = counts.get(reason);
    if (count === undefined) {
      count = { reason, trace: 0, simulated: 0 };
      counts.set(reason, count);
    }
    return count;
  };
  for (const uplink of trace) countOf(uplink).trace += 1;
  for (const uplink of simulated) countOf(uplink).simulated += 1;
  return [...counts.values()].sort((a, b) => (a.reason < b.reason ? -1 : 1));
}

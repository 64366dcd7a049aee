// What-if runs (firmware-sim/what-if/README.md) replay a recorded trace with other settings of the locks. A week of a
// fleet in MID, replayed in HIGH, agrees with a simulation of the same fleet that was in HIGH from its start. A replay
// with unchanged settings is exact.
import t from 'tap';
import { parseMix } from '../../firmware-sim/fleet/mix.js';
import { VirtualTrace } from '../../firmware-sim/fleet/virtual-trace.js';
import { locksFromTrace } from '../../firmware-sim/inference/from-trace.js';
import { LockTraceReader, type LockTraces } from '../../firmware-sim/inference/lock-trace.js';
import { WireSize } from '../../firmware-sim/link/wire-size.js';
import type { WhatIfSettings } from '../../firmware-sim/what-if/settings.js';
import { type SettingsOutcome, SettingsRun } from '../../firmware-sim/what-if/settings-run.js';
import { TraceReader } from '../../proto/trace/reader.js';
import { eachLine } from '../helpers/sim/each-line.js';

/**
 * The accuracy that docs/traces.md states, of totals and of the pings of one reason. Fewer events cause the latter, so
 * they vary more.
 */
const TOLERANCE = { total: 0.05, reason: 0.1 };
/** Reasons with fewer pings are not compared, since their numbers vary too much. */
const MIN_PINGS = 100;

/** The trace of a fleet whose locks start with these settings, with `world` events, which say what truly happened. */
function fleetTrace(mix: string): LockTraces {
  const reader = new TraceReader();
  let traces: LockTraceReader | undefined;
  const startMs = Date.UTC(2026, 0, 5);
  const options = { seed: 'what-if', locks: 40, days: 7, startMs, note: '', hasWorldEvents: true, mix: parseMix(mix) };
  const run = new VirtualTrace(
    options,
    eachLine((line) => {
      const event = reader.read(line);
      if (!event.ok) throw new Error(event.error.message);
      if (reader.header !== null) traces ??= new LockTraceReader(reader.header);
      if (event.value !== null) traces?.add(event.value);
    }),
  );
  run.advance(run.endMs);
  if (traces === undefined) throw new Error('the trace has no header');
  return traces.end();
}

/** Replays the trace with these settings. */
function outcomeOf(traces: LockTraces, settings: WhatIfSettings): SettingsOutcome {
  const { fromMs, untilMs } = traces;
  // The commands of the trace are sent to the locks again.
  const locks = locksFromTrace(traces, { commandReplay: 'sent' });
  const run = new SettingsRun({ locks, settings, fromMs, untilMs, wire: new WireSize() });
  run.advance(untilMs);
  return run.finish();
}

function pingsOf({ pings }: SettingsOutcome): number {
  return [...pings.values()].reduce((sum, count) => sum + count, 0);
}

const mid = fleetTrace('mid=2,mid+ride=1');
const high = fleetTrace('high=2,high+ride=1');
const trueHigh = outcomeOf(high, {});

t.test('without a change each lock makes the pings of the trace', async (t) => {
  const recorded = new Map<string, number>();
  for (const { uplinks } of high.locks) {
    for (const { uplink } of uplinks) {
      if (uplink.body.kind !== 'ack') recorded.set(uplink.body.reason, (recorded.get(uplink.body.reason) ?? 0) + 1);
    }
  }
  t.same([...trueHigh.pings].sort(), [...recorded].sort());
  t.ok((trueHigh.pings.get('REASON_NETWORK_PING') ?? 0) > 1000, 'the fleet is in HIGH');
});

t.test('MID to HIGH agrees with a fleet that was in HIGH from the start', async (t) => {
  const changed = outcomeOf(mid, { mode: 'HIGH' });
  const checkNear = (name: string, actual: number, expected: number, tolerance = TOLERANCE.total): void => {
    t.ok(Math.abs(actual - expected) <= tolerance * expected, `${name}: ${actual}, in HIGH from the start ${expected}`);
  };
  for (const [reason, expected] of trueHigh.pings)
    if (expected >= MIN_PINGS) checkNear(reason, changed.pings.get(reason) ?? 0, expected, TOLERANCE.reason);
  checkNear('all pings', pingsOf(changed), pingsOf(trueHigh));
  checkNear('connections', changed.connections, trueHigh.connections);
  checkNear('bytes up', changed.bytesUp, trueHigh.bytesUp);
  checkNear('bytes down', changed.bytesDown, trueHigh.bytesDown);
  checkNear('mAh a day', changed.battery?.mahPerDay ?? 0, trueHigh.battery?.mahPerDay ?? 0);
  const unchanged = outcomeOf(mid, {});
  t.equal(unchanged.pings.get('REASON_NETWORK_PING'), undefined);
  t.ok((unchanged.battery?.days ?? 0) > 4 * (changed.battery?.days ?? 0), 'HIGH empties the battery much sooner');
});

t.test('a longer window, ride tracking and recovery have their effects', async (t) => {
  const highWindow = { fromMinute: 0, toMinute: 0, utcOffsetMinutes: 0 };
  const allDay = outcomeOf(high, { highWindow });
  const networkPings = (outcome: SettingsOutcome): number => outcome.pings.get('REASON_NETWORK_PING') ?? 0;
  // The default window has 12 h a day, so an open connection all day has nearly twice as many network pings.
  t.ok(
    networkPings(allDay) > 1.6 * networkPings(trueHigh),
    `${networkPings(allDay)} network pings, before ${networkPings(trueHigh)}`,
  );
  const untracked = outcomeOf(mid, { rideTracking: false });
  t.equal(untracked.pings.get('REASON_UNLOCKED_PING'), undefined);
  // In recovery, too, each lock keeps its connection all day.
  t.ok(networkPings(outcomeOf(mid, { recovery: true })) > networkPings(allDay) / 2);
  t.equal(outcomeOf(mid, { airplane: true }).pings.get('REASON_STATE_PING'), undefined);
});

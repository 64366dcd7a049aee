// Comparing two traces, as `lockgate trace diff` does: the pings that only one of them has, by lock and reason,
// earliest first.
import t from 'tap';
import { VirtualTrace } from '../../../firmware-sim/fleet/virtual-trace.js';
import { Minutes, Seconds } from '../../../proto/clock.js';
import { type DiffOptions, TraceDiff } from '../../../proto/trace/diff/trace-diff.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import type { TraceEvent } from '../../../proto/trace/trace.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { eachLine } from '../../helpers/sim/each-line.js';

const DEFAULTS: DiffOptions = { toleranceMs: Seconds(5), pairs: new Map(), values: true };

/** The trace that the tests compare with changed versions of itself. The event with index 0 is in line 2. */
const events: TraceEvent[] = [];
const reader = new TraceReader();
const options = { seed: 'diff', locks: 3, days: 2, startMs: Date.UTC(2026, 0, 5), note: '', hasWorldEvents: false };
const run = new VirtualTrace(
  options,
  eachLine((line) => {
    const event = reader.read(line);
    if (event.ok && event.value !== null) events.push(event.value);
  }),
);
run.advance(run.endMs);

/** Compares two traces. The events of both are added together in order of time, each with its line. */
function diffOf(a: readonly TraceEvent[], b: readonly TraceEvent[], changes: Partial<DiffOptions> = {}): TraceDiff {
  const diff = new TraceDiff({ ...DEFAULTS, ...changes });
  let [nextA, nextB] = [0, 0];
  while (nextA < a.length || nextB < b.length) {
    const [ofA, ofB] = [a[nextA], b[nextB]];
    if (ofA !== undefined && (ofB === undefined || ofA.atMs <= ofB.atMs)) diff.add('a', ofA, ++nextA + 1);
    else if (ofB !== undefined) diff.add('b', ofB, ++nextB + 1);
  }
  diff.finish();
  return diff;
}

/** The events with all times later. */
function shiftedBy(shiftMs: number): TraceEvent[] {
  return events.map((event): TraceEvent => {
    const shifted = { ...event, atMs: event.atMs + shiftMs };
    return 'uplink' in shifted
      ? ({ ...shifted, uplink: { ...shifted.uplink, timeMs: shifted.uplink.timeMs + shiftMs } } as TraceEvent)
      : shifted;
  });
}

const isPing = (reason: string) => (event: TraceEvent) => event.event === 'ping' && event.uplink.body.reason === reason;

t.test('equal traces, and traces within the tolerance, do not differ', async (t) => {
  t.same(diffOf(events, events).differences(), []);
  t.same(diffOf(events, shiftedBy(Seconds(3))).differences(), []);
  t.not(diffOf(events, shiftedBy(Seconds(6))).differences().length, 0, 'over the tolerance');
  t.same(diffOf(events, shiftedBy(Seconds(6)), { toleranceMs: Seconds(7) }).differences(), []);
});

t.test('a missing ping is named with its lock and reason, the earliest first', async (t) => {
  const stateIndex = events.findLastIndex(isPing('REASON_STATE_PING'));
  const periodIndex = events.findIndex(isPing('REASON_PERIOD_TRACKING'));
  t.ok(periodIndex >= 0 && periodIndex < stateIndex);
  const shorter = events.filter((_, index) => index !== stateIndex && index !== periodIndex);
  const diff = diffOf(events, shorter);
  t.match(diff.differences(), [
    { kind: 'only-a', what: 'REASON_PERIOD_TRACKING', lineA: periodIndex + 2, lineB: null },
    { kind: 'only-a', what: 'REASON_STATE_PING', lineA: stateIndex + 2, lineB: null },
  ]);
  t.match(diff.rows().slice(0, 2), [
    { what: 'REASON_PERIOD_TRACKING', onlyA: 1, onlyB: 0 },
    { what: 'REASON_STATE_PING', onlyA: 1, onlyB: 0 },
  ]);
  t.match(diffOf(shorter, events).rows()[0], { onlyA: 0, onlyB: 1 });
});

t.test('a ping received late is no difference; other values are one unless values are not compared', async (t) => {
  const index = events.findIndex(isPing('REASON_STATE_PING'));
  const latePing = events[index] as Extract<TraceEvent, { event: 'ping' }>;
  const delayed = events.filter((event) => event !== latePing);
  delayed.push({ ...latePing, atMs: (events.at(-1)?.atMs ?? 0) + Minutes(1) });
  t.same(diffOf(events, delayed).differences(), []);
  const { body } = latePing.uplink;
  const withOtherBattery = { ...latePing, uplink: { ...latePing.uplink, body: { ...body, batteryPercent: 1 } } };
  const changed = events.map((event) => (event === latePing ? withOtherBattery : event));
  t.match(diffOf(events, changed).differences(), [
    { kind: 'values', values: { battery_percent: [body.batteryPercent, 1] }, lineA: index + 2, lineB: index + 2 },
  ]);
  t.same(diffOf(events, changed, { values: false }).differences(), []);
});

t.test('paired locks are compared with each other', async (t) => {
  const [mac] = events.flatMap((event) => (event.event === 'connect' ? [event.mac] : []));
  const otherMac = 'A4C138000001' as Mac;
  const renamed = events.map((event) => ('mac' in event && event.mac === mac ? { ...event, mac: otherMac } : event));
  t.not(diffOf(events, renamed as TraceEvent[]).differences().length, 0);
  t.same(diffOf(events, renamed as TraceEvent[], { pairs: new Map([[mac as Mac, otherMac]]) }).differences(), []);
});

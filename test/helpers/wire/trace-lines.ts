// Lines of traces (recorded events of locks, one JSON object a line) for the tests of their format (protocol.md §4):
// members to write lines with, a reader, and random uplinks (messages of locks).
import fc from 'fast-check';
import { TraceReader } from '../../../proto/trace/reader.js';
import type { TraceEvent } from '../../../proto/trace/trace.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import { cellular, START_MS } from '../pair/judged-uplinks.js';

/** The first line of a trace, without settings of locks. */
export const HEADER = '{"trace":"lockgate","version":1,"locks":{}}';
/** The member with the time. */
export const AT = '"at":"2026-11-20T06:00:00.000Z"';
/** The members with the time and the lock, which most lines start with. */
export const OF_LOCK = `${AT},"mac":"A4:C1:38:F0:E1:D2"`;
/** The members that each cellular ping needs. */
export const BODY = '"ping_type":"cellular","reason":"REASON_RESET","lock_state":"locked","battery_percent":81';

/** The events of the given lines. A header is added if the first line is not one. */
export function readEvents(...lines: string[]): TraceEvent[] {
  const reader = new TraceReader();
  const events: TraceEvent[] = [];
  for (const line of lines[0]?.includes('"trace"') ? lines : [HEADER, ...lines]) {
    const event = reader.read(line);
    if (!event.ok) throw new Error(`${event.error.line}: ${event.error.message}`);
    if (event.value !== null) events.push(event.value);
  }
  return events;
}

/** Random bodies of uplinks: pings with each kind of value, also implausible ones, and answers to commands. */
export const bodies = fc.oneof(
  fc.constantFrom<Uplink['body']>(
    cellular(),
    cellular({ position: { latitudeDegrees: 52.3702157, longitudeDegrees: -0.0000001, uncertaintyMeters: 30 } }),
    cellular({ reason: 'REASON_UNRECOGNIZED_99', ebikeVolts: 36.512, tetherState: 'attached', lockState: 'unknown' }),
    { kind: 'close_connection', reason: 'REASON_CLOSE_CONNECTION', lockState: 'unlocked', batteryPercent: 3 },
    { kind: 'ack', commandId: 7, result: 'rejected', detail: 'tilted', highWindow: null },
    {
      kind: 'ack',
      commandId: 8,
      result: 'ok',
      detail: '',
      highWindow: { fromMinute: 61, toMinute: 1439, utcOffsetMinutes: -330 },
    },
    {
      kind: 'gps',
      reason: 'REASON_THEFT',
      lockState: 'locked',
      batteryPercent: 255,
      ebikeVolts: null,
      tetherState: 'detached',
      position: { latitudeDegrees: 90.0000001, longitudeDegrees: -180, uncertaintyMeters: -4 },
      speedMetersPerSecond: -0.01,
      directionDegrees: 359.99,
    },
  ),
);
/** Random uplinks, with numbers up to the largest that the wire can carry. */
export const uplinks: fc.Arbitrary<Uplink> = fc.record({
  boot: fc.nat({ max: 2 ** 32 - 1 }),
  sequence: fc.nat({ max: 2 ** 32 - 1 }),
  // Also the first and the last millisecond of the years 1970–9999, and those next to them.
  timeMs: fc.oneof(fc.constantFrom(0, -1, 253402300799999, 253402300800000), fc.nat({ max: START_MS })),
  power: fc.record({
    mode: fc.constantFrom('MID' as const, 'HIGH' as const),
    rideTracking: fc.boolean(),
    airplane: fc.boolean(),
    recovery: fc.boolean(),
  }),
  kept: fc.nat({ max: 256 }),
  dropped: fc.nat({ max: 9 }),
  body: bodies,
});

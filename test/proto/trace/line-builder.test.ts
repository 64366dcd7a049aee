// Lines that are built as bytes are those of JSON.stringify: numbers, texts and dates of all kinds, and each kind of
// line of a trace.
import fc from 'fast-check';
import t from 'tap';
import { LineBuilder } from '../../../proto/trace/line-builder.js';
import { TraceLines } from '../../../proto/trace/line-writer.js';
import { traceEventLine } from '../../../proto/trace/writer.js';
import { macFromWire } from '../../../proto/wire/mac.js';
import type { Ping, PingUplink } from '../../../proto/wire/ping.js';

const built = (write: (builder: LineBuilder) => void): string => {
  const builder = new LineBuilder();
  write(builder);
  return builder.bytes.toString('utf8', 0, builder.length);
};

t.test('values are written as JSON.stringify writes them', async (t) => {
  const decimals = fc.tuple(fc.integer({ min: -4e15, max: 4e15 }), fc.integer({ min: 0, max: 8 }));
  const numbers = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    decimals.map(([digits, power]) => digits / 10 ** power),
    fc.constantFrom(0, -0, 1e-6, 9.99e-7, 1e-7, 2 ** 31 - 1, 2 ** 31, 2 ** 53, 0.1 + 0.2, 52.3702, -4.8952001, 1e21),
  );
  fc.assert(
    fc.property(numbers, (value) => built((line) => line.number(value)) === JSON.stringify(value)),
    {
      numRuns: 3000,
    },
  );
  const texts = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('"', '\\', '\u0000', '\ud800', 'é'),
  );
  fc.assert(fc.property(texts, (text) => built((line) => line.text(text)) === JSON.stringify(text)));
  const dates = fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true });
  fc.assert(
    fc.property(dates, dates, (first, second) => {
      const text = built((line) => [first, second].map((date) => line.date(date.getTime())));
      return text === first.toISOString() + second.toISOString();
    }),
  );
  t.equal(
    built((line) => line.text('x'.repeat(100_000))),
    JSON.stringify('x'.repeat(100_000)),
    'a text longer than the buffer',
  );
});

t.test('lines of pings, connects and disconnects are those of traceEventLine', async (t) => {
  const mac = macFromWire('A6C138F0E1D2');
  if (mac === undefined) throw new Error('the MAC is invalid');
  const atMs = Date.UTC(2026, 1, 28, 23, 59, 59, 7);
  const common = { lockState: 'locked', batteryPercent: 71, ebikeVolts: null, tetherState: 'unknown' } as const;
  const position = { latitudeDegrees: -52.3702001, longitudeDegrees: 4.9, uncertaintyMeters: 7 };
  const bodies: Ping[] = [
    { kind: 'cellular', reason: 'REASON_THEFT', ...common, firmwareVersion: '2.4.1 "é"', position: null },
    { kind: 'cellular', reason: 'REASON_UNRECOGNIZED_99', ...common, firmwareVersion: '', ebikeVolts: 36.5, position },
    { kind: 'gps', reason: 'PHONE', ...common, position, speedMetersPerSecond: 4.25, directionDegrees: 359.99 },
    { kind: 'close_connection', reason: 'REASON_CLOSE_CONNECTION', lockState: 'unknown', batteryPercent: 0 },
  ];
  const power = { mode: 'HIGH', rideTracking: true, airplane: false, recovery: false } as const;
  const uplinks: PingUplink[] = bodies.flatMap((body) => [
    { boot: 1, sequence: 2, timeMs: atMs, power, kept: 0, dropped: 0, body },
    { boot: 2 ** 32 - 1, sequence: 2 ** 31, timeMs: -1, power, kept: 3, dropped: 300, body },
  ]);
  for (const uplink of uplinks) {
    const lines = new TraceLines();
    lines.ping(mac, atMs, uplink);
    const expected = traceEventLine({ event: 'ping', atMs, mac, source: 'lock', uplink });
    t.equal(lines.builder.bytes.toString('utf8', 0, lines.builder.length), `${expected}\n`);
  }
  const lines = new TraceLines();
  lines.connect(mac, atMs);
  lines.disconnect(mac, atMs, 'takeover');
  const expected = [
    traceEventLine({ event: 'connect', atMs, mac, source: 'lock' }),
    traceEventLine({ event: 'disconnect', atMs, mac, source: 'lock', cause: 'takeover' }),
  ];
  t.equal(lines.builder.bytes.toString('utf8', 0, lines.builder.length), `${expected.join('\n')}\n`);
});

// Checks that written lines of a trace read back the same (protocol.md §4). A canonical line has exactly the spelling
// that lockgate writes; the reader has a fast path for such lines, which must read the same as the slow path.
import fc from 'fast-check';
import t from 'tap';
import { CanonicalLine } from '../../../proto/trace/canonical-line.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import type { TraceEvent, TraceHeader } from '../../../proto/trace/trace.js';
import { traceEventLine, traceHeaderLine } from '../../../proto/trace/writer.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import { type Mac, parseMac } from '../../../proto/wire/mac.js';
import type { GpsPing, PingUplink, Uplink } from '../../../proto/wire/ping.js';
import { pingFromJson, uplinkFromJson } from '../../../proto/wire/ping-from-json.js';
import { ackUplinkToJson, pingToJson, pingUplinkToJson } from '../../../proto/wire/ping-json.js';
import { quickOrLong } from '../../helpers/house/test-length.js';
import { cellular, START_MS, uplink } from '../../helpers/pair/judged-uplinks.js';
import { AT, BODY, HEADER, OF_LOCK, readEvents, uplinks } from '../../helpers/wire/trace-lines.js';

const SOMEWHERE = { latitudeDegrees: -0.0370215, longitudeDegrees: 104.8951679, uncertaintyMeters: 8 };
const GPS: GpsPing = {
  kind: 'gps',
  reason: 'REASON_THEFT',
  lockState: 'locked',
  batteryPercent: 100,
  ebikeVolts: null,
  tetherState: 'detached',
  position: SOMEWHERE,
  speedMetersPerSecond: 4.25,
  directionDegrees: 0,
};

t.test('a written line reads back to the same event, with and without raw bytes', async (t) => {
  const mac = parseMac('A4C138F0E1D2');
  if (!mac.ok) throw new Error('unreachable');
  fc.assert(
    fc.property(uplinks, fc.boolean(), (sample, withBytes) => {
      const event = {
        event: sample.body.kind === 'ack' ? 'ack' : 'ping',
        atMs: START_MS,
        mac: mac.value,
        source: 'lock',
      };
      const written = { ...event, uplink: sample } as TraceEvent;
      const line = traceEventLine(written, withBytes ? encodeUplink(sample) : undefined);
      t.same(readEvents(line), [written]);
    }),
    { numRuns: 500, seed: 5 },
  );
  const header: TraceHeader = {
    note: 'a note',
    locks: new Map([
      [
        mac.value,
        {
          power: { mode: 'HIGH', rideTracking: true, airplane: false, recovery: true },
          highWindow: { fromMinute: 1320, toMinute: 300, utcOffsetMinutes: 60 },
          lockState: 'locked',
          connected: true,
          lastPeriodMs: START_MS,
        },
      ],
    ]),
  };
  const reader = new TraceReader();
  t.ok(reader.read(traceHeaderLine(header)).ok);
  t.same(reader.header, header);
  const otherLines = [
    `{${OF_LOCK},"event":"connect","source":"phone"}`,
    `{${OF_LOCK},"event":"disconnect","source":"lock","cause":"keepalive"}`,
    `{${OF_LOCK},"event":"command","command":{"id":4,"type":"siren","seconds":9}}`,
    `{${OF_LOCK},"event":"command","command":{"id":5,"type":"set-power","airplane":true}}`,
    `{${OF_LOCK},"event":"command","command":{"id":6,"type":"lock","expires":"2026-11-21T06:00:00.000Z"}}`,
    `{${AT},"event":"tick"}`,
    `{${AT},"event":"gateway","state":"stop"}`,
    `{${OF_LOCK},"event":"world","motion":{"speed":3}}`,
  ];
  t.same(
    readEvents(...otherLines).map((event) => traceEventLine(event)),
    otherLines,
  );
});

/** A connect and a disconnect of each cause, as the writer writes them. */
function connectionLines(mac: Mac): string[] {
  const ofLock = { atMs: START_MS, mac, source: 'lock' } as const;
  const causes = ['closed', 'dropped', 'keepalive', 'takeover', 'gateway'] as const;
  const disconnects = causes.map((cause) => traceEventLine({ event: 'disconnect', ...ofLock, cause }));
  return [traceEventLine({ event: 'connect', ...ofLock }), ...disconnects];
}

/** Texts that the test inserts at each position of a line, also in place of a character; the last one is empty. */
const INSERTIONS = ' |0|1|-|.|.0|e5|E|"|\\|,|}|\r|ä|9999999999|null|'.split('|');

/** At each position only every so many of these texts are inserted. */
const EVERY_INSERTION = quickOrLong(3, 1);

t.test(
  'the fast path for canonical lines reads the same as the slow path, also for slightly changed lines',
  async (t) => {
    const mac = parseMac('A4C138F0E1D2');
    if (!mac.ok) throw new Error('unreachable');
    const lineOf = (sample: Uplink, atMs: number) =>
      traceEventLine({ event: 'ping', atMs, mac: mac.value, source: 'lock', uplink: sample } as TraceEvent);
    const results = (method: 'read' | 'readBytes', line: string): string => {
      const reader = new TraceReader();
      reader.read(HEADER);
      // The line is in the middle of a buffer, as in a file that is read in blocks.
      const bytes = Buffer.from(`xx${line}\n${line}`);
      const first = method === 'read' ? reader.read(line) : reader.readBytes(bytes, 2, 2 + Buffer.byteLength(line));
      // The defaults of the next line show what the reader has remembered of this one.
      const next = `{"at":"9999-12-31T23:59:59.999Z","mac":"A4C138F0E1D2","event":"ping","ping":{${BODY}}}`;
      return JSON.stringify([first, reader.read(next)]);
    };
    const isSame = (line: string) => results('readBytes', line) === results('read', line);

    const samples: Uplink[] = [
      uplink({ sequence: 120, body: cellular({ batteryPercent: 0 }) }),
      uplink({ kept: 3, dropped: 2, body: cellular({ position: SOMEWHERE, ebikeVolts: 36.5 }) }),
      uplink({ timeMs: START_MS - 1500, dropped: 2, body: GPS }),
      uplink({
        body: { kind: 'close_connection', reason: 'REASON_CLOSE_CONNECTION', lockState: 'locked', batteryPercent: 9 },
      }),
    ];
    const lines = [...samples.map((sample) => lineOf(sample, START_MS)), ...connectionLines(mac.value)];
    const different: string[] = [];
    for (const line of lines) {
      const bytes = Buffer.from(line);
      const canonical = new CanonicalLine();
      const isCanonical = canonical.read(bytes, 0, bytes.length) !== undefined || canonical.connection !== null;
      t.ok(isCanonical, 'a line of the writer is canonical');
      for (let position = 0; position <= line.length; position++) {
        for (const [index, inserted] of INSERTIONS.entries()) {
          if ((position + index) % EVERY_INSERTION !== 0) continue;
          for (const removed of [0, 1]) {
            const changed = line.slice(0, position) + inserted + line.slice(position + removed);
            if (!isSame(changed)) different.push(changed);
          }
        }
      }
    }
    t.same(different, []);

    // Only times that can be the line's `at`: in the years 1970–9999, less the offset below.
    const pings = uplinks.filter(
      (sample) => sample.body.kind !== 'ack' && sample.timeMs >= 0 && sample.timeMs < 253402300799000,
    );
    fc.assert(
      fc.property(pings, fc.nat({ max: 99 }), (sample, offsetMs) => isSame(lineOf(sample, sample.timeMs + offsetMs))),
      { numRuns: quickOrLong(400, 1000), seed: 12 },
    );
  },
);

t.test('an uplink’s JSON reads back to the same uplink', async (t) => {
  fc.assert(
    fc.property(uplinks, (sample) => {
      // The check of the kind does not narrow the uplink's type, hence the casts.
      const json =
        sample.body.kind === 'ack' ? ackUplinkToJson(sample as never) : pingUplinkToJson(sample as PingUplink);
      t.same(uplinkFromJson(json), { ok: true, value: sample });
    }),
    { numRuns: 100, seed: 6 },
  );
  t.same(pingFromJson(pingToJson(cellular())), { ok: true, value: cellular() });
  t.match(pingFromJson(null), { ok: false, error: { message: 'ping is null: expected an object' } });
  t.match(uplinkFromJson({ ...pingUplinkToJson(uplink() as PingUplink), boot: undefined }), {
    ok: false,
    error: { message: /^boot is missing/ },
  });
});

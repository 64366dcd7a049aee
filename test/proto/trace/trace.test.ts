// Checks the trace format (protocol.md §4): the defaults of omitted members, the errors for wrong lines, and that
// written lines read back the same. Also checks the small classes that reading and judging a trace use.
import fc from 'fast-check';
import t from 'tap';
import { parseDate } from '../../../proto/date.js';
import { Deadlines, type Due } from '../../../proto/deadlines.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { CanonicalLine } from '../../../proto/trace/canonical-line.js';
import { TraceCheck } from '../../../proto/trace/check.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import type { TraceEvent, TraceHeader } from '../../../proto/trace/trace.js';
import { traceEventLine, traceHeaderLine } from '../../../proto/trace/writer.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import { fingerprintOf } from '../../../proto/wire/fingerprint.js';
import { type Mac, parseMac } from '../../../proto/wire/mac.js';
import type { GpsPing, PingUplink, Uplink } from '../../../proto/wire/ping.js';
import { pingFromJson, uplinkFromJson } from '../../../proto/wire/ping-from-json.js';
import { ackUplinkToJson, pingToJson, pingUplinkToJson } from '../../../proto/wire/ping-json.js';
import { SeenUplinks, SeenUplinksLimit } from '../../../proto/wire/seen-uplinks.js';
import { byLength } from '../../helpers/house/test-length.js';
import { cellular, START_MS, uplink } from '../../helpers/pair/judged-uplinks.js';

const HEADER = '{"trace":"lockgate","version":1,"locks":{}}';
const AT = '"at":"2026-11-20T06:00:00.000Z"';
/** The members with the time and the lock, which most lines start with. */
const OF_LOCK = `${AT},"mac":"A4:C1:38:F0:E1:D2"`;
/** The members that each cellular ping needs. */
const BODY = '"ping_type":"cellular","reason":"REASON_RESET","lock_state":"locked","battery_percent":81';

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

/** The events of the given lines. A header is added if the first line is not one. */
function readEvents(...lines: string[]): TraceEvent[] {
  const reader = new TraceReader();
  const events: TraceEvent[] = [];
  for (const line of lines[0]?.includes('"trace"') ? lines : [HEADER, ...lines]) {
    const event = reader.read(line);
    if (!event.ok) throw new Error(`${event.error.line}: ${event.error.message}`);
    if (event.value !== null) events.push(event.value);
  }
  return events;
}

/** The line number and error of the first wrong line. */
function errorOf(...lines: string[]): string {
  const reader = new TraceReader();
  for (const line of lines) {
    const event = reader.read(line);
    if (!event.ok) return `${event.error.line}: ${event.error.message}`;
  }
  const end = reader.end();
  return end.ok ? 'nothing is wrong' : `${end.error.line}: ${end.error.message}`;
}

const uplinkOf = (event: TraceEvent | undefined): Uplink => {
  if (event?.event !== 'ping' && event?.event !== 'ack') throw new Error('expected an uplink');
  return event.uplink;
};

t.test('members that a ping omits get their defaults', async (t) => {
  const ping = (members = '') => `{${OF_LOCK},"event":"ping","ping":{${BODY}${members}}}`;
  const uplinks = readEvents(
    '{"trace":"lockgate","version":1,"locks":{"a4c1.38f0.e1d2":{"power":{"mode":"HIGH"}}}}',
    ping(),
    ping(',"boot":41,"sequence":12'),
    ping(),
    ping(',"sequence":5'),
    ping(),
    ping(',"boot":42'),
    ping(',"boot":41'),
    ping(',"power":{"mode":"MID","ride_tracking":true,"airplane":false,"recovery":false}'),
    ping(),
  ).map(uplinkOf);
  t.same(
    uplinks.map((sample) => `${sample.boot}/${sample.sequence}`),
    ['1/1', '41/12', '41/13', '41/5', '41/14', '42/1', '41/15', '41/16', '41/17'],
    'the default is the last boot, and one more than its greatest sequence',
  );
  t.equal(uplinks[0]?.timeMs, START_MS, 'the default of `date` is `at`');
  t.same(uplinks[0]?.power, { mode: 'HIGH', rideTracking: false, airplane: false, recovery: false });
  t.equal(uplinks[8]?.power.mode, 'HIGH', 'the power of one ping is not the default for the next');
  t.match(uplinks[0], { kept: 0, dropped: 0, body: { firmwareVersion: '', ebikeVolts: null, tetherState: 'unknown' } });
});

t.test('the default power is that of the last successful set-power', async (t) => {
  const ping = `{${OF_LOCK},"event":"ping","ping":{${BODY}}}`;
  const command = (id: number, members: string) => `{${OF_LOCK},"event":"command","command":{"id":${id},${members}}}`;
  const ack = (id: number, members = '"result":"ok"') => `{${OF_LOCK},"event":"ack","ack":{"id":${id},${members}}}`;
  const window = '"high_window":{"from":"22:00","to":"05:30","utc_offset_minutes":-330}';
  const events = readEvents(
    command(7, `"type":"set-power","mode":"HIGH",${window}`),
    ping,
    ack(7),
    ping,
    command(8, '"type":"set-power","recovery":true'),
    ack(8, '"result":"rejected"'),
    ping,
    command(9, '"type":"siren","seconds":3'),
    ack(9),
    ping,
    command(10, '"type":"set-power","recovery":true'),
    ack(10).replace('"event"', '"source":"phone","event"'),
    ping,
  );
  const modes = events
    .filter((event) => event.event === 'ping')
    .map((event) => `${uplinkOf(event).power.mode} ${uplinkOf(event).power.recovery}`);
  t.same(modes, ['MID false', 'HIGH false', 'HIGH false', 'HIGH false', 'HIGH false']);
  t.match(uplinkOf(events[2]), {
    sequence: 2,
    power: { mode: 'HIGH' },
    body: { highWindow: { fromMinute: 1320, toMinute: 330, utcOffsetMinutes: -330 } },
  });
});

t.test('the error for a wrong line has its number, the wrong member and what was expected', async (t) => {
  const ping = (members: string) => `{${OF_LOCK},"event":"ping","ping":{${members}}}`;
  const cases: [string[], RegExp][] = [
    [[], /^1: there is no header: expected a header such as/],
    [['{"trace":"other","version":1}'], /^1: trace is "other": expected a header/],
    [['{"trace":"lockgate","version":2}'], /^1: version is 2: expected 1/],
    [['{"trace":"lockgate","version":1,"locks":{"nonsense":{}}}'], /^1: .*"nonsense" is no MAC/],
    [['{"trace":"lockgate","version":1,"locks":{"a4c138f0e1d2":{},"A4C138F0E1D2":{}}}'], /^1: .*twice/],
    [
      ['{"trace":"lockgate","version":1,"locks":{"a4c138f0e1d2":{"lock_state":"open"}}}'],
      /locks.a4c138f0e1d2.lock_state/,
    ],
    [[HEADER, '{'], /^2: the line is no JSON \(.*\): expected an event such as/],
    [[HEADER, '[1]'], /^2: the line is no JSON object/],
    [[HEADER, `{${AT},"event":"explode"}`], /^2: event is "explode": expected one of connect, /],
    [[HEADER, '{"event":"tick"}'], /^2: at is missing: expected a date such as/],
    [[HEADER, '{"at":"2026-02-30T06:00:00.000Z","event":"tick"}'], /^2: at is "2026-02-30/],
    [
      [HEADER, '', `{${AT},"event":"tick"}`, '{"at":"2026-11-20T05:59:59.999Z","event":"tick"}'],
      /^4: at .* never goes back/,
    ],
    [[HEADER, `{${AT},"event":"connect"}`], /^2: mac is missing/],
    [[HEADER, `{${AT},"mac":"A4","event":"connect"}`], /^2: "A4" is no MAC: expected 12 hex digits/],
    [[HEADER, `{${OF_LOCK},"event":"connect","source":"cloud"}`], /^2: source is "cloud": expected one of lock, phone/],
    [[HEADER, `{${OF_LOCK},"event":"disconnect"}`], /^2: cause is missing: expected one of closed, dropped, keepalive/],
    [[HEADER, `{${AT},"event":"gateway","state":"up"}`], /^2: state is "up"/],
    [[HEADER, `{${OF_LOCK},"event":"ping"}`], /^2: ping is missing: expected an object/],
    [[HEADER, ping('"ping_type":"cellular"')], /^2: ping.lock_state is missing/],
    [[HEADER, ping(BODY.replace('81', '"full"'))], /^2: ping.battery_percent is "full": expected a whole number/],
    [[HEADER, ping(BODY.replace('RESET', 'NOPE'))], /^2: ping.reason is "REASON_NOPE": expected a reason/],
    [[HEADER, ping(BODY.replace('cellular', 'gps'))], /^2: ping.latitude is missing: expected a number/],
    [[HEADER, ping(`${BODY},"latitude":1`)], /^2: ping.longitude is missing/],
    [[HEADER, ping(`${BODY},"power":{"mode":"LOW"}`)], /^2: ping.power.mode is "LOW": expected one of MID, HIGH/],
    [[HEADER, ping(`${BODY},"sequence":-1`)], /^2: ping.sequence is -1: expected a whole number, 0 to 4294967295/],
    [[HEADER, ping(`${BODY},"date":"noon"`)], /^2: ping.date is "noon"/],
    [[HEADER, `{${OF_LOCK},"event":"command","command":{"id":1,"type":"dance"}}`], /^2: command.type is "dance"/],
    [
      [HEADER, `{${OF_LOCK},"event":"command","command":{"id":1,"type":"lock","expires":"noon"}}`],
      /^2: command.expires is "noon"/,
    ],
    [[HEADER, `{${OF_LOCK},"event":"ack","ack":{"id":1,"result":"maybe"}}`], /^2: ack.result is "maybe"/],
    [[HEADER, `{"at":${JSON.stringify('x'.repeat(5000))},"event":"tick"}`], /^2: at is "x{59}…: expected/],
  ];
  for (const [lines, expected] of cases) t.match(errorOf(...lines), expected);
});

t.test('after a wrong line, all further lines give the same error', async (t) => {
  const reader = new TraceReader();
  for (const line of [HEADER, 'nonsense', `{${AT},"event":"tick"}`]) reader.read(line);
  const afterWrongLine = reader.read(`{${AT},"event":"tick"}`);
  t.match(afterWrongLine, { ok: false, error: { line: 2 } });
  t.match(reader.end(), { ok: false, error: { line: 2 } });
});

t.test('the reader never throws, whatever the lines contain', async (t) => {
  const json = fc.oneof(
    fc.string(),
    fc.json(),
    fc.jsonValue().map((value) => JSON.stringify({ ...Object(value) })),
  );
  const members = fc.dictionary(
    fc.constantFrom(
      'at',
      'mac',
      'event',
      'ping',
      'ack',
      'command',
      'source',
      'cause',
      'state',
      'raw',
      'locks',
      'trace',
    ),
    fc.oneof(fc.jsonValue(), fc.constantFrom('2026-11-20T06:00:00.000Z', 'A4C138F0E1D2', 'ping', 'ack', 'command')),
  );
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          json,
          members.map((sample) => JSON.stringify(sample)),
        ),
      ),
      (lines) => {
        for (const first of [[], [HEADER]]) {
          const reader = new TraceReader();
          for (const line of [...first, ...lines]) reader.read(line);
          reader.end();
        }
      },
    ),
    { numRuns: byLength(1000, 3000), seed: 3 },
  );
  t.pass('3000 traces were read');
});

const bodies = fc.oneof(
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
const uplinks: fc.Arbitrary<Uplink> = fc.record({
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
const EVERY_INSERTION = byLength(3, 1);

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
      { numRuns: byLength(400, 1000), seed: 12 },
    );
  },
);

t.test('an uplink may be given as raw bytes, and JSON members that differ from them are an error', async (t) => {
  const sample = uplink({ sequence: 12, body: cellular({ batteryPercent: 80 }) });
  const raw = Buffer.from(encodeUplink(sample)).toString('base64');
  const line = (members: string) => `{${OF_LOCK},"event":"ping","ping":{"raw":"${raw}"${members}}}`;
  t.same(uplinkOf(readEvents(line(''))[0]), sample, 'only raw bytes');
  t.same(uplinkOf(readEvents(`{${OF_LOCK},"event":"ping","raw":"${raw}"}`)[0]), sample, 'raw is a member of the event');
  t.same(uplinkOf(readEvents(line(',"battery_percent":80,"sequence":12'))[0]), sample, 'raw and some JSON members');
  t.match(
    errorOf(HEADER, line(',"battery_percent":81')),
    /ping.battery_percent is 81, but raw has 80: expected the same/,
  );
  t.match(errorOf(HEADER, line(',"sequence":13')), /ping.sequence is 13, but raw has 12/);
  t.match(errorOf(HEADER, line(',"latitude":1,"longitude":2')), /ping.latitude is 1, but raw has undefined/);
  t.match(errorOf(HEADER, line(',"time_ms":4')), /ping.date is "1970-01-01T00:00:00.004Z", but raw has/);
  t.match(errorOf(HEADER, line('').replace(raw, '////')), /ping.raw can't be read/);
  t.match(errorOf(HEADER, line('').replace(raw, 'no!')), /ping.raw is "no!": expected the base64 of an uplink/);
  const ack = Buffer.from(
    encodeUplink(uplink({ body: { kind: 'ack', commandId: 1, result: 'ok', detail: '', highWindow: null } })),
  ).toString('base64');
  t.match(errorOf(HEADER, line('').replace(raw, ack)), /ping.raw is an acknowledgement/);
});

t.test('an uplink’s JSON reads back to the same uplink', async (t) => {
  fc.assert(
    fc.property(uplinks, (sample) => {
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

t.test('RFC 3339 dates are parsed, and other texts are rejected', async (t) => {
  // From the start of the year 0 to the end of the year 9999.
  fc.assert(
    fc.property(fc.integer({ min: -62167219200000, max: 253402300799999 }), (timeMs) => {
      const text = new Date(timeMs).toISOString();
      t.equal(parseDate(text), timeMs, text);
    }),
    { numRuns: byLength(1000, 3000), seed: 9 },
  );
  for (const text of [
    '2026-11-20T06:00:00Z',
    '2026-11-20t06:00:00.5z',
    '2026-11-20T06:00:00.123456789+05:30',
    '2024-02-29T23:59:59-00:30',
  ])
    t.equal(parseDate(text), Math.floor(Date.parse(text.toUpperCase().replace(/(\.\d{3})\d+/, '$1'))), text);
  for (const text of [
    '2026-11-20',
    '2026-13-20T06:00:00.000Z',
    '2026-02-29T06:00:00.000Z',
    '2026-11-20T24:00:00.000Z',
    '2026-11-20T06:60:00.000Z',
    '2026-11-20T06:00:0x.000Z',
    '2026-11-20T06:00:00.00/Z',
    '2026-11-20 06:00:00.000Z',
    '2026-11-20T06:00:00.000',
    '2026-11-20T06:00:00+24:00',
    '',
  ])
    t.ok(Number.isNaN(parseDate(text)), text);
});

t.test('an uplink is new, a repeat or a conflict, by its key and content', async (t) => {
  const seen = new SeenUplinks(new SeenUplinksLimit());
  // 2³² − 1, the greatest sequence number.
  const sample = uplink({ boot: 4, sequence: 4294967295 });
  t.equal(seen.note(sample, 5), 'new');
  t.equal(seen.note(uplink({ boot: 4, sequence: 0 }), 6), 'new');
  t.equal(seen.note(structuredClone(sample), 7), 'repeat');
  t.equal(seen.note({ ...sample, dropped: 1 }, 8), 'conflict');
  t.equal(seen.note({ ...sample, dropped: 1 }, 9), 'repeat', 'a repeat of the second content');
  t.equal(seen.note({ ...sample, dropped: 2 }, 10), 'conflict');
  t.equal(seen.note(sample, 11), 'repeat');
  for (let kept = 1; kept <= 1000; kept++) seen.note({ ...sample, kept }, 12);
  t.equal(seen.note({ ...sample, dropped: 2 }, 13), 'conflict', 'after a thousand further contents it is forgotten');
  t.equal(seen.lineOf(4, 4294967295), 5);
  t.equal(seen.lineOf(4, 1), undefined);
  t.equal(seen.lineOf(5, 0), undefined);
  const digests = new Set<number>();
  let count = 0;
  fc.assert(
    fc.property(uplinks, (drawn) => {
      const content = { ...drawn, boot: 0, sequence: count };
      const changed = { ...content, timeMs: content.timeMs + 1 };
      count += 1;
      digests.add(fingerprintOf(content));
      return (
        fingerprintOf(content) !== fingerprintOf(changed) &&
        fingerprintOf(content) === fingerprintOf(structuredClone(content))
      );
    }),
    { numRuns: 2000, seed: 10 },
  );
  // Some drawn uplinks are equal; nearly all others must have different fingerprints.
  t.ok(digests.size > 1500);
});

t.test('items are taken in the order of their due times, and each item once at its last time', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat({ max: 9 }), fc.nat({ max: 50 })), { maxLength: 60 }), (moves) => {
      const items: (Due & { name: number })[] = Array.from({ length: 10 }, (_, name) => ({ name, dueMs: -1 }));
      const deadlines = new Deadlines<Due & { name: number }>();
      for (const [name, dueMs] of moves) deadlines.set(items[name] as Due & { name: number }, dueMs);
      const taken: [number, number][] = [];
      for (let item = deadlines.take(40); item !== undefined; item = deadlines.take(40)) {
        taken.push([item.dueMs, item.name]);
        item.dueMs = -1;
      }
      const last = new Map(moves);
      const due = [...last].map(([name, dueMs]) => [dueMs, name]).filter(([dueMs]) => (dueMs as number) < 40);
      return (
        JSON.stringify([...taken].sort()) === JSON.stringify(due.sort()) &&
        taken.every(([dueMs], index) => index === 0 || (taken[index - 1] as [number, number])[0] <= dueMs)
      );
    }),
    { numRuns: 1000, seed: 11 },
  );
  t.pass('1000 random series of changes were in order');
});

t.test('changing due times again and again does not fill the queue with stale entries', async (t) => {
  const items = Array.from({ length: 100 }, (_, name) => ({ name, dueMs: -1 }));
  const deadlines = new Deadlines<(typeof items)[number]>();
  let maxEntries = 0;
  for (let change = 0; change < 50_000; change++) {
    // The times repeat, so an item’s stale time may become its time again. The factors are prime, to mix the order.
    deadlines.set(items[(change * 7) % 100] as (typeof items)[number], (change * 7919) % 503);
    maxEntries = Math.max(maxEntries, deadlines.entries);
  }
  t.ok(maxEntries < 2000, `at most ${maxEntries} entries`);
  const expected = items.map(({ name, dueMs }) => [dueMs, name]);
  const taken: number[][] = [];
  for (let item = deadlines.take(1000); item !== undefined; item = deadlines.take(1000)) {
    taken.push([item.dueMs, item.name]);
    item.dueMs = -1;
  }
  const inOrder = (all: number[][]): number[][] => [...all].sort(([a = 0, b = 0], [c = 0, d = 0]) => a - c || b - d);
  t.same(inOrder(taken), inOrder(expected), 'each item is taken once, at its last time');
  t.ok(taken.every(([dueMs = 0], index) => index === 0 || (taken[index - 1]?.[0] ?? 0) <= dueMs));
});

t.test('a lock that only the header names is also judged at a tick', async (t) => {
  const lock = '{"power":{"mode":"MID","recovery":true},"connected":true}';
  const reader = new TraceReader();
  reader.read(`{"trace":"lockgate","version":1,"locks":{"A4C138F0E1D2":${lock},"A4C138F0E1D3":${lock}}}`);
  const check = new TraceCheck(POWER_MODEL, reader.header as TraceHeader, true);
  const lines = [
    `{${AT},"event":"gateway","state":"start"}`,
    `{${AT},"event":"gateway","state":"stop"}`,
    `{${AT},"event":"gateway","state":"start"}`,
    `{"at":"2026-11-20T06:11:00.000Z","event":"tick"}`,
    `{"at":"2026-11-20T06:12:00.000Z","event":"tick"}`,
  ];
  for (const line of lines) {
    const event = reader.read(line);
    if (event.ok && event.value !== null) check.judge(event.value, reader.line);
  }
  // After 10 min without a connection, in the line of the first tick.
  t.same(
    check.findings().map(({ line, mac, rule }) => [line, mac, rule]),
    [
      [5, 'A4:C1:38:F0:E1:D2', 'recovery-offline'],
      [5, 'A4:C1:38:F0:E1:D3', 'recovery-offline'],
    ],
  );
  t.equal(check.locks, 2);
  t.equal(check.pings, 0);
  t.ok((check.coverage() ?? []).every((cell) => cell.isAllowed && cell.pings === 0));
});

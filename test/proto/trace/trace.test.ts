// Checks the trace format (protocol.md §4): the defaults of omitted members, and the errors for wrong lines.
import fc from 'fast-check';
import t from 'tap';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { TraceCheck } from '../../../proto/trace/check.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import type { TraceEvent, TraceHeader } from '../../../proto/trace/trace.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import { quickOrLong } from '../../helpers/house/test-length.js';
import { cellular, START_MS, uplink } from '../../helpers/pair/judged-uplinks.js';
import { AT, BODY, HEADER, OF_LOCK, readEvents } from '../../helpers/wire/trace-lines.js';

// In the lines below, AT is the member `at`, OF_LOCK that and `mac`, BODY the members of a cellular ping.

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
  // The mode, and whether recovery is on.
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

/** How many random traces the next test reads. */
const TRACES = quickOrLong(1000, 3000);

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
    { numRuns: TRACES, seed: 3 },
  );
  t.pass(`${TRACES} traces were read`);
});

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

t.test('a lock that only the header names is also judged at a tick', async (t) => {
  const lock = '{"power":{"mode":"MID","recovery":true},"connected":true}';
  const reader = new TraceReader();
  reader.read(`{"trace":"lockgate","version":1,"locks":{"A4C138F0E1D2":${lock},"A4C138F0E1D3":${lock}}}`);
  const withCoverage = true;
  const check = new TraceCheck(POWER_MODEL, reader.header as TraceHeader, withCoverage);
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

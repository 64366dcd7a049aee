// Text recordings: logs of mosquitto_sub, Mosquitto and modems, and CSV files with a map of columns. Events are
// compared as short lines: seconds since the first event, the last digits of the MAC, and the event. Each reason for
// skipping is followed by the number of its line. Some recordings are read in chunks of few bytes, the last argument of
// `readRecording`.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { AtRecording } from '../../../cli/recordings/at-log/at-recording.js';
import { readColumnMap } from '../../../cli/recordings/csv/column-map.js';
import { CsvRecording } from '../../../cli/recordings/csv/csv-recording.js';
import { TRACCAR_MAP } from '../../../cli/recordings/csv/traccar-map.js';
import { MosquittoRecording } from '../../../cli/recordings/mosquitto/mosquitto-recording.js';
import { parseRecordedTime } from '../../../cli/recordings/recorded-time.js';
import type { RecordingOptions } from '../../../cli/recordings/recording.js';
import { Hours } from '../../../proto/clock.js';
import { encodeDownlink } from '../../../proto/wire/codec.js';
import { isPingUplink } from '../../../proto/wire/ping.js';
import { testBytes } from '../../helpers/gateway/test-gateway.js';
import { root } from '../../helpers/house/our-files.js';
import { eventLines, readRecording } from '../../helpers/recordings/read-recording.js';

/** Options without --mac and --utc-offset. */
const NO_OPTIONS: RecordingOptions = { mac: null, utcOffsetMs: 0 };
const LOCK = 'A4C138F0E1D2';
const sample = (name: string): string => readFileSync(join(root, 'test/recordings', name), 'utf8');
/** The bytes of a ping, made at 2026-11-20T08:00:00Z. */
const hex = (sequence: number): string =>
  Buffer.from(testBytes(sequence, { boot: 1, timeMs: 1_795_161_600_000 })).toString('hex');
/** The bytes of a command that expires a day later. */
const COMMAND = Buffer.from(
  encodeDownlink({ id: 7, expiresMs: 1_795_248_000_000, command: { type: 'unlock' } }),
).toString('hex');

t.test('times in the formats of other programs are parsed', async (t) => {
  const atMs = Date.UTC(2026, 10, 20, 6);
  for (const [text, expected] of [
    ['2026-11-20T06:00:00Z', atMs],
    ['2026-11-20T07:00:00+0100', atMs],
    ['2026-11-20T07:00:00.123456+01:00', atMs + 123],
    ['2026-11-20 06:00:00,5', atMs + 500],
    [`${atMs / 1000}`, atMs],
    [`${atMs / 1000}.930996255`, atMs + 930],
    [`${atMs}`, atMs],
    ['2026-11-20T06:00', Number.NaN],
    ['2026-02-30T06:00:00Z', Number.NaN],
    ['2026-11-20T06:00:00+25:00', Number.NaN],
    ['999999999999999', Number.NaN],
    ['', Number.NaN],
  ] as const)
    t.same(parseRecordedTime(text, 0), expected, text);
  t.equal(parseRecordedTime('2026-11-20 07:00:00', Hours(1)), atMs);
});

t.test('mosquitto_sub shows no sender; Mosquitto’s log names the sender, in either order of the files', async (t) => {
  const [messages, log] = [sample('mosquitto-sub.txt'), sample('mosquitto-broker.txt')];
  const logLast = await readRecording(new MosquittoRecording(NO_OPTIONS), [messages, log]);
  const logFirst = await readRecording(new MosquittoRecording(NO_OPTIONS), [
    log,
    sample('mosquitto-sub-unix-time.txt'),
  ]);
  // Without the times, which the two files have in different precision.
  const withoutTimes = (lines: string[]): string[] => lines.map((line) => line.replace(/^\S+ /, '')).sort();
  t.same(withoutTimes(eventLines(logFirst.events)), withoutTimes(eventLines(logLast.events)));
  t.equal(logLast.events.filter(({ event }) => event.event === 'ping').length, 8);
  for (const mac of ['D2', 'D3']) {
    t.ok(
      eventLines(logLast.events).some((line) => line.endsWith(`${mac} connect`)),
      `${mac} connects`,
    );
    t.ok(
      eventLines(logLast.events).some((line) => line.endsWith(`${mac} disconnect dropped`)),
      `${mac} is dropped`,
    );
  }
  const withoutLog = await readRecording(new MosquittoRecording(NO_OPTIONS), [messages]);
  t.same(withoutLog.events, []);
  t.equal(withoutLog.skipped.filter((reason) => /unknown lock/.test(reason)).length, 8, 'and all are counted');
});

t.test('a topic or --mac names the lock of mosquitto_sub’s lines, and other lines are counted', async (t) => {
  const lines = [
    `2026-11-20T06:00:00+0000 bikes/a4:c1:38:f0:e1:d2/up ${hex(1)}`,
    `2026-11-20T06:00:01+0000 up ${hex(2).toUpperCase()}`,
    `1795154402.5 bikes/phone-${LOCK}-1/up ${hex(3)}`,
    `2026-11-20T06:00:03+0000 ${LOCK}/down ${COMMAND}`,
    `2026-11-20T06:00:04+0000 ${LOCK}/up 08`,
    `2026-11-20T06:00:05+0000 ${LOCK}/up`,
    '2026-11-20T06:00:06+0000 weather 3132',
    'what is this',
    'x'.repeat(100_000),
    '2026-11-20T06:00:07+0000 up xyz',
  ].join('\r\n');
  const read = await readRecording(
    new MosquittoRecording({ mac: 'A4C138F0E1D9' as never, utcOffsetMs: 0 }),
    [lines],
    99,
  );
  t.same(eventLines(read.events), ['0 D2 ping 1/1', '1 D9 ping 1/2', '2.5 D2 phone ping 1/3', '3 D2 command 7 unlock']);
  t.equal(read.skipped.length, 6);
  t.match(read.skipped, [
    /uplink .* 5/,
    /uplink .* 6/,
    /another topic .* 7/,
    /neither .* 8/,
    /64 KiB 9/,
    /another topic .* 10/,
  ]);
});

t.test('a line of Mosquitto’s log gives the cause of a disconnect', async (t) => {
  const client = (what: string): string => `1795154401: Client ${LOCK} ${what}`;
  const connect = `1795154400: New client connected from 127.0.0.1:1 as ${LOCK} (p2, c1, k300, u'${LOCK}').`;
  for (const [line, cause] of [
    [client('disconnected.'), 'closed'],
    [client('closed its connection.'), 'dropped'],
    [client('has exceeded timeout, disconnecting.'), 'keepalive'],
    [client('already connected, closing old connection.'), 'takeover'],
    [client('disconnected, not authorised.'), 'gateway'],
    [`1795154401: Socket error on client ${LOCK}, disconnecting.`, 'dropped'],
    ['1795154401: mosquitto version 2.0.11 terminating', 'gateway'],
  ] as const) {
    const read = await readRecording(new MosquittoRecording(NO_OPTIONS), [`${connect}\n${line}\n`]);
    t.match(eventLines(read.events), ['0 D2 connect', new RegExp(`D2 disconnect ${cause}$`)], line);
  }
});

t.test('a modem’s log gives connects, sent uplinks, commands and the causes of disconnects', async (t) => {
  const recording = await readRecording(new AtRecording(NO_OPTIONS), [sample('modem-at.txt')]);
  const kinds = recording.events.map(({ event }) => event.event);
  t.same(
    ['connect', 'ping', 'ack', 'command', 'disconnect'].map((kind) => kinds.filter((each) => each === kind).length),
    [1, 28, 7, 7, 1],
  );
  // The third number of +QMTPUB and +QMTPUBEX, and the second of +QMTCONN, is 0 for success, 1 for a repetition and 2
  // for a failure. Error 2 of +QMTSTAT is a PINGREQ without an answer.
  const lines = [
    `[2026-11-20T06:00:00.000Z] TX: AT+QMTCONN=0,"${LOCK}","${LOCK}","a,b"`,
    '[2026-11-20T06:00:00.400Z] RX: +QMTCONN: 0,1,1',
    '[2026-11-20T06:00:00.500Z] RX: +QMTCONN: 0,0,0',
    `[2026-11-20T06:00:01.000Z] TX: AT+QMTPUBEX=0,1,1,0,"up",44`,
    '[2026-11-20T06:00:01.100Z] RX: >',
    `[2026-11-20T06:00:01.200Z] TX: ${hex(1)}`,
    '[2026-11-20T06:00:01.300Z] RX: +QMTPUBEX: 0,1,1,1',
    '[2026-11-20T06:00:01.500Z] RX: +QMTPUBEX: 0,1,0',
    `1795154402.0 -> AT+QMTPUB=0,2,0,0,"up","${hex(2)}"`,
    '1795154402.1 <- +QMTPUB: 0,2,0',
    `1795154403.0 -> AT+QMTPUB=0,3,1,0,"up","${hex(3)}"`,
    '1795154403.1 <- +QMTPUB: 0,3,2',
    `1795154404.0 <- +QMTRECV: 0,0,"down","${COMMAND}"`,
    '1795154404.1 <- +CSQ: 20,99',
    '1795154404.2 <- +QMTSTAT: 0',
    'no time',
    '1795154405.0 <- +QMTSTAT: 0,2',
    `1795154406.0 -> AT+QMTPUB=0,4,1,0,"up","${hex(4)}"`,
    `1795154407.0 -> AT+QMTCONN=1,"dashboard"`,
  ].join('\n');
  const read = await readRecording(new AtRecording(NO_OPTIONS), [lines], 11);
  t.same(eventLines(read.events), [
    '0 D2 connect',
    '0.5 D2 ping 1/1',
    '1.5 D2 ping 1/2',
    '3.5 D2 command 7 unlock',
    '4.5 D2 disconnect keepalive',
  ]);
  const countSkipped = (text: string): number => read.skipped.filter((reason) => reason.includes(text)).length;
  t.equal(countSkipped('not report as sent'), 2);
  t.equal(countSkipped('can’t be read'), 1);
  t.equal(countSkipped('without a time 16'), 1);
  t.equal(countSkipped('not a lock 19'), 1);
});

t.test('Traccar’s export is read with attributes, addresses with commas and positions without a fix', async (t) => {
  const read = await readRecording(new CsvRecording(TRACCAR_MAP, NO_OPTIONS), [sample('traccar.csv')], 100);
  t.equal(read.events.length, 13);
  t.same(read.skipped, ['a row that the map leaves out 8', 'a row without a usable time 10']);
  t.match(read.notes, [/^device 17 is 02:00:00:00:00:11 in the trace/, /^device 18 /]);
  const uplinks = read.events.map(({ event, lacksUplinkNumbers }) => {
    if (event.event !== 'ping' || !isPingUplink(event.uplink)) throw new Error('expected pings');
    if (!lacksUplinkNumbers) throw new Error('expected pings without boot and sequence');
    return event.uplink;
  });
  const moved = uplinks.find(({ body }) => body.reason === 'REASON_THEFT');
  t.match(moved, { body: { kind: 'gps', batteryPercent: 77, speedMetersPerSecond: 2.5, directionDegrees: 33.5 } });
  t.match(uplinks[4]?.body, { batteryPercent: 84, ebikeVolts: 36.5, position: { uncertaintyMeters: 5 } });
});

t.test('a CSV file is read by its map of columns', async (t) => {
  const map = readColumnMap(sample('positions.yaml'), null);
  if (!('row' in map)) throw new Error(JSON.stringify(map));
  const read = await readRecording(new CsvRecording(map, NO_OPTIONS), [`\ufeff${sample('positions.csv')}`], 10);
  t.same(eventLines(read.events), [
    '0 D2 connect',
    '1 D2 ping 41/1',
    '31 D2 ping 41/2',
    '41 D2 ping 41/3',
    '42 D3 connect',
    '43 D3 ping 1/1',
    '44 D3 disconnect dropped',
    '300 D2 disconnect dropped',
  ]);
  t.match(read.skipped, [/usable time 2/, /can’t be read 10/, /unknown lock .* 11/]);
  const withoutColumn = await readRecording(new CsvRecording(map, NO_OPTIONS), ['received;who\n1;2\n']);
  t.match(withoutColumn.faults, [
    { at: 'line 1', message: /there is no column "bike": expected it among received, who/ },
  ]);
});

t.test('a map’s mistakes name the line and what was expected', async (t) => {
  const mistakes = (text: string): string => {
    const map = readColumnMap(text, null);
    return 'row' in map ? '' : map.map(({ line, message }) => `${line}: ${message}`).join('\n');
  };
  const good = 'time: at\nping:\n  reason: { value: REASON_THEFT }\n';
  t.equal(mistakes(good), '');
  t.match(mistakes('time: at\n'), /1: ping.reason is missing/);
  t.match(mistakes(good.replace('time', 'tim')), /1: unknown member "tim".*\n1: time is missing/);
  t.match(mistakes(`${good}delimiter: x\n`), /4: delimiter: expected one of/);
  t.match(mistakes(`${good}devices:\n  one: 12\n`), /5: devices: "12" is no MAC/);
  t.match(mistakes(`${good}devices:\n  one: 112233445566\n`), /5: devices: 112233445566 is a number: .*in quotes/);
  t.match(mistakes(`${good}mac: { column: a, value: b }\n`), /4: mac: expected either a column or a value/);
  t.match(mistakes(`${good}  speed: { column: a, scale: fast }\n`), /scale: expected a number/);
  t.match(mistakes('time: [\n'), /expected YAML/);
  t.match(mistakes(''), /the map: expected members/);
});

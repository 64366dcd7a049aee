/**
 * The JSON Schema of the trace format (docs/trace.schema.json) and the reader agree in both directions. The schema
 * accepts every line that lockgate writes and every hand-written trace. Of thousands of lines with one changed member
 * each, the schema refuses every line that the reader refuses. The schema is stricter than the reader in a few points,
 * which docs/traces.md and `isStricter` below list.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import t from 'tap';
import { parseBugAssignment } from '../../../firmware-sim/faults/bugs.js';
import { VirtualTrace } from '../../../firmware-sim/fleet/virtual-trace.js';
import { builtInFile } from '../../../firmware-sim/scenario/built-in.js';
import { readScenarioFile } from '../../../firmware-sim/scenario/reader.js';
import { VirtualScenario } from '../../../firmware-sim/scenario/virtual-scenario.js';
import { exportTrace } from '../../../gateway/http/operator/trace-export.js';
import { recordTrace } from '../../../gateway/http/operator/trace-record.js';
import { Minutes, Seconds } from '../../../proto/clock.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import { traceSchemaText } from '../../../proto/trace/schema/trace-schema.js';
import { CommandSetup } from '../../helpers/commands/command-setup.js';
import { root } from '../../helpers/house/our-files.js';
import { eachLine } from '../../helpers/sim/each-line.js';
import { linesOf, traceNames } from '../../helpers/sim/hand-traces.js';

const schemaFile = readFileSync(join(root, 'docs/trace.schema.json'), 'utf8');

const ajv = new Ajv2020({ strict: true });
addFormats.default(ajv);
const isTraceLine = ajv.compile(JSON.parse(schemaFile));

/** The lines that the schema refuses, each with the first error. */
function refusedLines(lines: readonly string[]): string[] {
  const written = lines.filter((line) => line !== '');
  return written.flatMap((line) => {
    return isTraceLine(JSON.parse(line)) ? [] : [`${line}: ${ajv.errorsText(isTraceLine.errors)}`];
  });
}

t.test('docs/trace.schema.json is the schema that the program has', async (t) => {
  t.equal(schemaFile, traceSchemaText(), 'npm run gen writes it');
});

t.test('every hand-written trace is valid', async (t) => {
  t.ok(traceNames.length > 100);
  t.same(
    traceNames.flatMap((name) => refusedLines(linesOf(name))),
    [],
  );
});

t.test('simulated traces are valid, with the world, commands and bugs', async (t) => {
  const lines: string[] = [];
  const bugs = ['clock-ahead:1', 'garbage-position:1', 'unheard-of-reason:1'].map(parseBugAssignment);
  const options = { seed: 'schema', locks: 6, days: 0.1, startMs: Date.UTC(2026, 10, 20), note: 'a note', bugs };
  const run = new VirtualTrace(
    { ...options, hasWorldEvents: true, pace: 'lively' },
    eachLine((line) => lines.push(line)),
  );
  run.advance(run.endMs);
  for (const name of ['airplane', 'phone-unlock']) {
    const scenario = await readScenarioFile(builtInFile(name));
    const write = (line: string): void => void lines.push(line);
    new VirtualScenario({ scenario, seed: scenario.seed, note: '', hasWorldEvents: true, write }).advance(
      scenario.endMs,
    );
  }
  for (const event of ['world', 'command', 'ack'])
    t.ok(
      lines.some((line) => line.includes(`"event":"${event}"`)),
      event,
    );
  t.same(refusedLines(lines), []);
});

t.test('recorded and exported traces are valid', async (t) => {
  // The setup plays a lock against the gateway's code for commands, with a clock that the test moves.
  const setup = await CommandSetup.open(t);
  const lock = await setup.lock();
  await setup.connectAndPing(lock);
  await setup.command(lock, 'siren', { parameters: { seconds: 5 } });
  const recorded: string[] = [];
  const stop = await recordTrace(setup, undefined, (line) => recorded.push(line));
  await setup.command(lock, 'set-power', { parameters: { mode: 'HIGH' } });
  await setup.ack(lock, 1);
  await setup.advance(Seconds(5));
  await setup.ack(lock, 2, 'failed', 'a motor is stuck');
  const lowBatteryPercent = 8;
  await setup.ping(lock, lowBatteryPercent);
  await setup.loseConnection(lock);
  await setup.advance(Minutes(5));
  await setup.connectAndPing(lock);
  stop();
  t.match(recorded.join('\n'), /"event":"ack"/);
  t.same(refusedLines(recorded), []);

  const exported: string[] = [];
  const found = await setup.store.findDevice(lock.mac);
  const devices = found === null ? [] : [found.device];
  for await (const line of exportTrace(setup.store, { devices, sinceMs: 0, untilMs: setup.clock.now() + 1 }))
    exported.push(line);
  t.match(exported.join('\n'), /"event":"command"/);
  t.match(exported.join('\n'), /"raw":"/);
  t.same(refusedLines(exported), []);
});

/** A header with every member that it can have. */
const HEADER = {
  trace: 'lockgate',
  version: 1,
  note: 'a note',
  locks: {
    'A4:C1:38:F0:E1:D2': {
      power: { mode: 'HIGH', ride_tracking: true, airplane: false, recovery: false },
      high_window: { from: '07:00', to: '19:00', utc_offset_minutes: 60 },
      lock_state: 'locked',
      connected: true,
      last_period: '2026-11-19T06:00:01.000Z',
      reflashed: ['2026-11-01T00:00:00Z'],
      commands: [{ id: 7, type: 'siren', seconds: 5, at: '2026-11-20T05:00:00.000Z', expires: '2026-11-21T05:00:00Z' }],
    },
  },
};

const POWER = { mode: 'MID', ride_tracking: false, airplane: false, recovery: true };
const COMMON = { lock_state: 'locked', battery_percent: 81 };
const ENVELOPE = { boot: 41, sequence: 12, date: '2026-11-20T06:00:01.000Z', power: POWER, kept: 1, dropped: 2 };
const CELLULAR = { ping_type: 'cellular', reason: 'REASON_CELL_PING', ...COMMON, firmware_version: '2.4.1' };
const POSITION = { latitude: 52.3702157, longitude: 4.8951679, uncertainty: 8 };
const WINDOW = { from: '22:00', to: '06:00' };
const OF_LOCK = { at: '2026-11-20T06:00:00.000Z', mac: 'A4:C1:38:F0:E1:D2' };
const OF_PING = { ...OF_LOCK, event: 'ping', source: 'phone', credential: 2 };
const EBIKE = { ebike_voltage: 36.7, tether_state: 'detached' };

/** One line of each kind, with every member that the kind can have. */
const SAMPLES: readonly object[] = [
  { ...OF_LOCK, event: 'connect', source: 'lock' },
  { ...OF_LOCK, event: 'disconnect', source: 'phone', cause: 'keepalive' },
  { ...OF_PING, ping: { ...CELLULAR, ...EBIKE, ...POSITION, ...ENVELOPE } },
  { ...OF_PING, ping: { ...CELLULAR, reason: 'REASON_UNRECOGNIZED_77', boot: 1, sequence: 1, time_ms: -5 } },
  {
    ...OF_PING,
    ping: { ping_type: 'gps', reason: 'PHONE', ...COMMON, ...EBIKE, ...POSITION, speed: 1, direction: 9, ...ENVELOPE },
  },
  { ...OF_PING, ping: { ping_type: 'close_connection', reason: 'REASON_CLOSE_CONNECTION', ...COMMON, ...ENVELOPE } },
  { ...OF_LOCK, event: 'ack', ack: { id: 7, result: 'ok', detail: 'done', high_window: WINDOW, ...ENVELOPE } },
  ...['unlock', 'lock', 'locate-gps', 'locate-cell', 'reset'].map((type) => {
    return { ...OF_LOCK, event: 'command', command: { id: 7, type, expires: '2026-11-20T06:02:00.000Z' } };
  }),
  { ...OF_LOCK, event: 'command', command: { id: 7, type: 'siren', seconds: 5 } },
  { ...OF_LOCK, event: 'command', command: { id: 7, type: 'set-power', ...POWER, high_window: WINDOW } },
  { at: OF_LOCK.at, event: 'tick', note: 'a remark' },
  { at: OF_LOCK.at, event: 'gateway', state: 'stop' },
  {
    ...OF_LOCK,
    event: 'world',
    moving: true,
    lock_state: 'locked',
    coverage: false,
    fix: { latitude: 1, longitude: 2 },
  },
];

type Path = readonly (string | number)[];

/** A value that replaces a member; `undefined` removes it. */
const REPLACEMENTS: readonly unknown[] = [
  ...[undefined, null, true, 0, -1, 0.5, 5e9, 65_536, '', 'word', '07:00', '24:00', [], ['x'], {}, { unknown: 1 }],
  ...['A4C138F0E1D2', 'A4:C1:38:F0:E1', 'MID', 'locked', 'lock', 'REASON_THEFT', 'REASON_UNRECOGNIZED_3'],
  ...[
    '2026-11-20T07:00:00+01:00',
    '2026-11-20',
    '2026-13-20T07:00:00Z',
    '2026-11-20 07:00:00Z',
    '2026-02-30T07:00:00Z',
  ],
  ...['gps', 'cellular', 'ping', 'ack', 'tick', 'unlock', 'siren', 'set-power', 'start', 'closed', 'ok'],
];

/** The paths of all members of an object, at any depth. */
function pathsIn(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([member, memberValue]) => {
    const memberPath = [...path, Array.isArray(value) ? Number(member) : member];
    return [memberPath, ...pathsIn(memberValue, memberPath)];
  });
}

/** The value with another member at the path; undefined removes the member. */
function withReplacement(value: unknown, [member, ...rest]: Path, replacement: unknown): unknown {
  if (member === undefined) return replacement;
  const copy = structuredClone(value) as Record<string | number, unknown>;
  const memberValue = withReplacement(copy[member], rest, replacement);
  if (memberValue === undefined && !Array.isArray(copy)) delete copy[member];
  // An array: its element is removed.
  else if (memberValue === undefined) (copy as unknown as unknown[]).splice(Number(member), 1);
  else copy[member] = memberValue;
  return copy;
}

interface Verdict {
  /** The reader's error; null if it accepts the line. */
  readonly error: string | null;
  /** Whether the reader noted a member that the format does not have. */
  readonly isNoted: boolean;
}

function readerVerdict(line: unknown): Verdict {
  const reader = new TraceReader();
  if ((line as { event?: unknown }).event !== undefined) reader.read(JSON.stringify(HEADER));
  const read = reader.read(JSON.stringify(line));
  return { error: read.ok ? null : read.error.message, isNoted: reader.notes.all().length > 0 };
}

/** Whether the schema refuses on purpose what the reader accepts. docs/traces.md lists the same. */
function isStricter(sample: object, path: Path, replacement: unknown, { isNoted }: Verdict): boolean {
  const event = (sample as { event?: string }).event;
  const member = path.at(-1);
  // A member that the format does not have, or that another kind of line has.
  if (isNoted || path.includes('event') || member === 'ping_type' || member === 'type') return true;
  // The reader treats null as a missing member.
  if (replacement === null) return true;
  // The reader does not read these.
  if (event === 'world' || member === 'note') return true;
  return false;
}

t.test('the schema refuses what the reader refuses, and accepts what it accepts', async (t) => {
  let accepted = 0;
  let refused = 0;
  const disagreements: string[] = [];
  for (const sample of [HEADER, ...SAMPLES]) {
    t.ok(isTraceLine(sample), JSON.stringify(sample));
    for (const path of pathsIn(sample)) {
      for (const replacement of REPLACEMENTS) {
        const line = withReplacement(sample, path, replacement);
        const verdict = readerVerdict(line);
        const isValid = isTraceLine(line);
        if (isValid === (verdict.error === null)) isValid ? accepted++ : refused++;
        else if (isValid || !isStricter(sample, path, replacement, verdict))
          disagreements.push(`${JSON.stringify(line)} at ${path.join('.')}: the reader says ${verdict.error}`);
      }
    }
  }
  t.same(disagreements.slice(0, 20), []);
  t.ok(accepted > 400 && refused > 4000, `${accepted} accepted, ${refused} refused`);
});

t.test('a misspelt member is refused, where the reader would only note it', async (t) => {
  const lock = { hihg_window: WINDOW };
  t.notOk(isTraceLine({ ...HEADER, locks: { 'A4:C1:38:F0:E1:D2': lock } }));
  t.notOk(isTraceLine({ ...OF_PING, ping: { ...CELLULAR, batery_percent: 4 } }));
  t.ok(isTraceLine({ ...OF_LOCK, event: 'world', humidity: 40 }), 'but a world event may have any member');
});

t.test('a ping with the member `raw` may omit the other members', async (t) => {
  // The bytes of a GPS ping.
  const raw = 'CCkQDhio5qu8nzRCHwgBEAEYQCDcngIoATWNDzcfPX/x6gJAyAlI0ogBUAo=';
  t.ok(isTraceLine({ ...OF_LOCK, event: 'ping', raw }));
  t.ok(isTraceLine({ ...OF_LOCK, event: 'ping', ping: { raw, battery_percent: 64 } }));
  t.notOk(isTraceLine({ ...OF_LOCK, event: 'ping', ping: { battery_percent: 64 } }));
  t.notOk(isTraceLine({ ...OF_LOCK, event: 'ping', raw: '?' }));
  t.notOk(isTraceLine({ ...OF_LOCK, event: 'ping', raw, ping: { battery_percent: '64' } }));
});

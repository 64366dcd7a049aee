// `lockgate trace import`: every sample becomes a trace that "trace check" reads without a violation; several files,
// gzip, reports and errors.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import t from 'tap';
import { type ImportFlags, importRecordings, RECORDING_FORMATS } from '../../../cli/commands/trace/import/import.js';
import { LineSorter } from '../../../cli/commands/trace/import/line-sorter.js';
import { type CapturedOutput, captureOutput } from '../../../cli/terminal/output.js';
import { root } from '../../helpers/house/our-files.js';
import { findingsIn } from '../../helpers/sim/judged-run.js';

const folder = mkdtempSync(join(tmpdir(), 'lockgate-import-test-'));
t.teardown(() => rmSync(folder, { recursive: true, force: true }));
const sample = (name: string): string => join(root, 'test/recordings', name);
const out = join(folder, 'out.jsonl');

/** Runs the import in this process. */
function run(files: readonly string[], flags: Partial<ImportFlags>): Promise<CapturedOutput> {
  return captureOutput(() => importRecordings(files, { from: 'pcap', port: [], out, ...flags }));
}

/** The lines of the trace that was written. */
const outputLines = (): string[] => readFileSync(out, 'utf8').trim().split('\n');

/** Sample recordings, the flags for them, and the number of pings in them. */
const SAMPLES: readonly (readonly [files: readonly string[], flags: Partial<ImportFlags>, pings: number])[] = [
  [['bench-loopback.pcap'], {}, 9],
  [['bench-any.pcap'], {}, 9],
  [['mosquitto-sub.txt', 'mosquitto-broker.txt'], { from: 'mosquitto-log' }, 8],
  [['mosquitto-broker.txt', 'mosquitto-sub-unix-time.txt'], { from: 'mosquitto-log' }, 8],
  [['traccar.csv'], { from: 'traccar-csv' }, 13],
  [['positions.csv'], { from: 'csv', map: sample('positions.yaml') }, 4],
  [['modem-at.txt'], { from: 'at-log' }, 28],
];

t.test('every format has a sample whose trace has no violation', async (t) => {
  t.same([...new Set(SAMPLES.map(([, { from = 'pcap' }]) => from))].sort(), [...RECORDING_FORMATS].sort());
  for (const [files, flags, pings] of SAMPLES) {
    await run(files.map(sample), flags);
    t.equal(outputLines().filter((line) => line.includes('"event":"ping"')).length, pings, files.join(' '));
    const violations = findingsIn(outputLines()).filter(({ severity }) => severity === 'violation');
    t.same(violations, [], files.join(' '));
    t.notOk(/secret|password/.test(readFileSync(out, 'utf8')), 'no secret is imported');
  }
});

t.test('the report counts events and rows that are not imported, for people and as JSON', async (t) => {
  const { lines } = await run([sample('traccar.csv')], { from: 'traccar-csv' });
  t.match(lines, [
    /^17 lines read: 13 pings, .* of 2 locks\.$/,
    /^Connections of 2 locks are not in the recording/,
    /^Boot and sequence of 13 uplinks are not in the recording/,
    // 17 is 0x11.
    /^Note: device 17 is 02:00:00:00:00:11/,
    /^Note: device 18 /,
    /traccar\.csv: 2 not imported:$/,
    /^ {2}1 × a row that the map leaves out \(first: line 8: /,
    /^ {2}1 × a row without a usable time \(first: line 10: "yesterday": expected a time such as/,
  ]);
  const { documents } = await run([sample('traccar.csv')], { from: 'traccar-csv', mac: 'A4C138F0E1D2', json: true });
  t.match(documents[0], {
    from: 'traccar-csv',
    files: [
      {
        unit: 'line',
        rows: 17,
        skipped: [
          { count: 1, first: 8 },
          { count: 1, first: 10 },
        ],
      },
    ],
    locks: 1,
    events: { ping: 13, connect: 0 },
    inferred: { locks_connected: 1, uplinks_numbered: 13 },
    notes: [],
  });
});

t.test('a gzipped recording gives the same trace, and --out FILE.gz is gzipped', async (t) => {
  await run([sample('bench-loopback.pcap')], {});
  const plain = readFileSync(out, 'utf8');
  const gzipped = join(folder, 'bench');
  writeFileSync(gzipped, gzipSync(readFileSync(sample('bench-loopback.pcap'))));
  await run([gzipped], { out: join(folder, 'out.jsonl.gz') });
  t.equal(gunzipSync(readFileSync(join(folder, 'out.jsonl.gz'))).toString(), plain);
});

t.test('a lock that was connected before the recording is connected in the header', async (t) => {
  const log = readFileSync(sample('mosquitto-broker.txt'), 'utf8').split('\n');
  const late = join(folder, 'late.txt');
  writeFileSync(late, log.filter((line) => !line.includes('New client connected')).join('\n'));
  await run([late, sample('mosquitto-sub.txt')], { from: 'mosquitto-log' });
  const header = JSON.parse(readFileSync(out, 'utf8').split('\n')[0] as string) as { locks: object };
  t.match(header.locks, { 'A4:C1:38:F0:E1:D2': { connected: true, power: { recovery: true } } });
  t.same(
    findingsIn(outputLines()).filter(({ rule }) => rule === 'outside-connection'),
    [],
  );
});

t.test('wrong flags and files are errors that say what was expected', async (t) => {
  const csv = sample('positions.csv');
  const map = join(folder, 'map.yaml');
  writeFileSync(map, 'tim: received\n');
  for (const [files, flags, error] of [
    [[csv], { from: 'csv' }, /--from csv needs --map/],
    [[csv], { from: 'csv', map }, /map\.yaml:1: unknown member "tim"/],
    [[csv], { from: 'csv', map: join(folder, 'none') }, /none can’t be read/],
    [[csv], { map }, /--map is for csv and traccar-csv, not for pcap/],
    [[csv], { from: 'at-log', port: [1] }, /--port is for pcap/],
    [[csv], { utcOffset: 'CET' }, /--utc-offset is "CET": expected one such as \+01:00/],
    [[csv], { mac: 'A4' }, /is no MAC/],
    [[csv], { json: true, out: undefined as never }, /give --out FILE/],
    [['-', '-'], {}, /only once/],
    [[csv], {}, /positions\.csv: offset 0: the file starts with/],
    [[join(folder, 'none')], {}, /there is no file/],
    [[folder], {}, /is a folder/],
    [[csv], { from: 'traccar-csv' }, /positions\.csv:1: there is no column "serverTime"/],
    [[csv], { from: 'at-log' }, /no event of a lock was found.* \d+ × a line without a time \(first: line 1: /],
  ] as const) {
    // A case without an output file overrides the file that `run` names by default.
    const failure = await run(files, { ...flags, ...('out' in flags && { out: undefined as never }) }).then(
      () => '',
      ({ message, code }: { message: string; code: string }) => `${code} ${message}`,
    );
    t.match(failure, error);
    t.match(failure, /^input-/);
  }
});

t.test('lines beyond the memory limit are sorted in files, and equal times keep their order', async (t) => {
  const maxCharacters = 200;
  const sorter = new LineSorter(maxCharacters);
  const expected: string[] = [];
  for (let index = 0; index < 300; index++) {
    // Ten different times, in scattered order.
    const atMs = 1000 + ((index * 7) % 10);
    // JSON may have the line separator of Unicode as it is; only `\n` ends a line.
    const line = `${atMs} ${String(index).padStart(3, '0')}\u2028`;
    sorter.add({ atMs, line });
    expected.push(line);
  }
  const sorted: string[] = [];
  for await (const { line } of sorter.sorted()) sorted.push(line);
  sorter.remove();
  t.same(sorted, expected.sort());
});

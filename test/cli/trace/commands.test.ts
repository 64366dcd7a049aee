// Commands on traces, pings and the model that need no gateway: their output and exit codes.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { Command } from 'commander';
import t, { type Test } from 'tap';
import { addModelCommands } from '../../../cli/commands/model/model.js';
import { addPingCommands } from '../../../cli/commands/ping/ping.js';
import { checkFile } from '../../../cli/commands/trace/check/file-check.js';
import { addTraceCommands } from '../../../cli/commands/trace/trace.js';
import { LockgateError } from '../../../proto/errors.js';
import { RULES } from '../../../proto/power/rules.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import { pingUplinkToJson } from '../../../proto/wire/ping-json.js';
import { root } from '../../helpers/house/our-files.js';

const folder = mkdtempSync(join(tmpdir(), 'lockgate-traces-'));
t.teardown(() => rmSync(folder, { recursive: true, force: true }));

const traces = join(root, 'test/traces');
/** Hand-written traces: in one the judge finds a violation, in one a warning, and in one nothing. */
const broken = join(traces, 'airplane-silence.breaks-1.jsonl');
const warned = join(traces, 'clock-ahead.breaks-1.jsonl');
const clean = join(traces, 'airplane-silence.holds-1.jsonl');
const HEADER = '{"trace":"lockgate","version":1,"locks":{}}';

/** Output and exit code of a command line. */
interface CommandResult {
  out: string;
  err: string;
  code: number;
}

/** Runs a command in this process. */
async function lockgate(t: Test, ...args: string[]): Promise<CommandResult> {
  const program = new Command('lockgate').exitOverride();
  addTraceCommands(program);
  addPingCommands(program);
  addModelCommands(program);
  for (const group of program.commands) {
    group.exitOverride();
    for (const command of group.commands) command.exitOverride();
  }
  const out = t.capture(process.stdout, 'write', () => true);
  const err = t.capture(process.stderr, 'write', () => true);
  let code = 0;
  let message = '';
  try {
    await program.parseAsync(['node', 'lockgate', ...args]);
    code = Number(process.exitCode ?? 0);
  } catch (error) {
    // Both kinds of error have a code. As in the program, wrong input is exit code 2 and other refusals are 3.
    const { code: errorCode } = error as { code: string };
    if (!(error instanceof LockgateError) && !errorCode.startsWith('commander.')) throw error;
    code = errorCode.startsWith('input-') || errorCode.startsWith('commander.') ? 2 : 3;
    message = (error as Error).message;
  } finally {
    process.exitCode = 0;
    out.restore();
    err.restore();
  }
  const textOf = (calls: { args: unknown[] }[]): string => calls.map((call) => String(call.args[0])).join('');
  // The type of the captured calls depends on the overloads of `write`; here only their first argument is read.
  return { out: textOf(out() as never), err: `${textOf(err() as never)}${message}`, code };
}

/** Writes a file with these lines. Returns the file. */
function traceFile(name: string, ...lines: string[]): string {
  const file = join(folder, name);
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}

t.test('check prints findings by lock, and sets the exit code', async (t) => {
  const found = await lockgate(t, 'trace', 'check', broken, clean);
  t.equal(found.code, 1);
  t.match(
    found.out,
    /airplane-silence.breaks-1.jsonl: 3 pings of 1 lock\n {2}A4:C1:38:F0:E1:D2\n {4}line 6 +violation/,
  );
  t.match(found.out, /airplane-silence: REASON_NETWORK_PING was sent with airplane on\./);
  t.match(found.out, /1 violation and 0 warnings in 2 files\.\n$/);
  t.equal(found.err, '');
  t.equal((await lockgate(t, 'trace', 'check', clean)).code, 0);
  t.equal((await lockgate(t, 'trace', 'check', warned)).code, 0, 'only warnings');
  t.equal((await lockgate(t, 'trace', 'check', warned, '--fail-on', 'warning')).code, 1);
  const ignored = await lockgate(
    t,
    'trace',
    'check',
    broken,
    warned,
    '--fail-on',
    'warning',
    '--ignore',
    'airplane-silence',
    '--ignore',
    'clock-ahead',
  );
  t.equal(ignored.code, 0);
  t.match(ignored.out, /0 violations and 0 warnings/);
});

t.test('check reports errors in the command line or a file', async (t) => {
  const code = async (...args: string[]) => (await lockgate(t, 'trace', 'check', ...args)).code;
  t.equal(await code(), 2);
  t.equal(await code(clean, '--ignore', 'no-such-rule'), 2);
  t.equal(await code(clean, '--fail-on', 'nothing'), 2);
  t.equal(await code(clean, '--json', '--junit'), 2);
  t.equal(await code(join(folder, 'none.jsonl')), 2);
  t.equal(await code(folder), 2);
  const bad = traceFile(
    'bad.jsonl',
    HEADER,
    '{"at":"2026-11-20T06:00:00.000Z","event":"tick"}',
    '{"at":"2026-11-20T06:00:00.000Z"',
  );
  const both = await lockgate(t, 'trace', 'check', bad, broken);
  t.equal(both.code, 2, 'an unreadable file outranks findings in another file');
  t.match(both.err, /bad\.jsonl:3: the line is no JSON .*: expected an event such as/);
  t.match(both.out, /1 violation /, 'the other file was checked');
  t.match(both.out, /error .*bad\.jsonl:3: /, 'the report has the error too');
  const two = await lockgate(t, 'trace', 'check', bad, join(folder, 'none.jsonl'));
  t.match(two.err, /lockgate: .*bad\.jsonl:3: .*\n.*there is no file .*none\.jsonl/s);
});

/** The member `values` that a finding about the ping in this line must have: all members of the ping. */
function valuesOfPing(file: string, line: number): object {
  const reader = new TraceReader();
  const lines = readFileSync(file, 'utf8').split('\n');
  const events = lines.slice(0, line).map((text) => reader.read(text));
  const event = events.at(-1);
  if (event?.ok !== true || event.value?.event !== 'ping') throw new Error(`line ${line} is not a ping`);
  return { source: 'lock', ...pingUplinkToJson(event.value.uplink) };
}

t.test('check --json prints the specified JSON', async (t) => {
  const { out, code } = await lockgate(t, 'trace', 'check', broken, warned, '--json');
  t.equal(code, 1);
  t.match(JSON.parse(out), {
    files: [
      {
        file: broken,
        pings: 3,
        locks: 1,
        findings: [
          {
            line: 6,
            mac: 'A4:C1:38:F0:E1:D2',
            rule: 'airplane-silence',
            severity: 'violation',
            message: 'REASON_NETWORK_PING was sent with airplane on.',
            at: '2026-11-20T06:00:07.000Z',
            boot: 1,
            sequence: 3,
            firmware_version: '2.4.1',
            section: 'protocol.md §3',
            link: /docs\/protocol\.md#/,
            values: valuesOfPing(broken, 6),
          },
        ],
        coverage: null,
        notes: [],
        error: null,
      },
      {
        file: warned,
        pings: 2,
        locks: 1,
        findings: [
          {
            line: 3,
            mac: 'A4:C1:38:F0:E1:D2',
            rule: 'clock-ahead',
            severity: 'warning',
            message:
              'The lock’s time 2026-11-20T06:05:01.001Z is 5 min ahead of the receipt at 2026-11-20T06:00:01.000Z.',
            at: '2026-11-20T06:00:01.000Z',
            boot: 1,
            sequence: 1,
            firmware_version: '2.4.1',
            section: 'protocol.md §3',
            link: /docs\/protocol\.md#/,
            values: valuesOfPing(warned, 3),
          },
        ],
        coverage: null,
        notes: [],
        error: null,
      },
    ],
    violations: 1,
    warnings: 1,
  });
});

t.test('check --coverage prints the seen combinations', async (t) => {
  const { out } = await lockgate(t, 'trace', 'check', broken, '--json', '--coverage');
  const { coverage } = JSON.parse(out).files[0];
  const cell = (state: string, reason: string, type: string) =>
    coverage.find(
      (row: Record<string, string>) => row.state === state && row.reason === reason && row.ping_type === type,
    );
  t.match(cell('MID', 'REASON_PERIOD_TRACKING', 'cellular'), { trigger: 'period', allowed: true, pings: 1 });
  t.match(cell('AIRPLANE', 'REASON_NETWORK_PING', 'cellular'), {
    trigger: 'kept-connection',
    allowed: false,
    pings: 1,
  });
  t.match(cell('LOW_BATTERY', 'REASON_THEFT', 'gps'), { trigger: 'theft', allowed: true, pings: 0 });
  t.equal(cell('MID', 'REASON_NETWORK_PING', 'cellular'), undefined, 'MID keeps no connection');
  t.match(
    (await lockgate(t, 'trace', 'check', broken, '--coverage')).out,
    /period +REASON_PERIOD_TRACKING +cellular .* 1\n/,
  );
});

t.test('check --junit prints JUnit XML', async (t) => {
  const file = traceFile('a<b>&"c".jsonl', ...readFileSync(broken, 'utf8').trimEnd().split('\n'));
  const { out, code } = await lockgate(t, 'trace', 'check', file, warned, '--junit');
  t.equal(code, 1);
  t.match(out, `<testsuites name="lockgate trace check" tests="${2 * RULES.length}" failures="1">`);
  t.match(out, `a&lt;b&gt;&amp;&quot;c&quot;.jsonl" tests="${RULES.length}" failures="1" errors="0"`);
  t.match(
    out,
    /name="airplane-silence"><failure message="REASON_NETWORK_PING was sent with airplane on." type="violation">/,
  );
  t.match(out, /name="clock-ahead"><system-out>/, 'a warning is output but is no failure');
  const strict = await lockgate(t, 'trace', 'check', warned, '--junit', '--fail-on', 'warning');
  t.match(strict.out, /name="clock-ahead"><failure /);
});

t.test('trace files may be gzipped and have any line ends; too long lines are refused', async (t) => {
  const lines = readFileSync(broken, 'utf8');
  // Checks a file with this content. Returns the line and rule of each finding.
  const findingsOf = async (name: string, content: string | Buffer) => {
    writeFileSync(join(folder, name), content);
    return (await checkFile(join(folder, name), { ignore: [] })).findings.map(({ line, rule }) => `${line} ${rule}`);
  };
  t.same(await findingsOf('plain.jsonl', lines), ['6 airplane-silence']);
  t.same(await findingsOf('packed.jsonl.gz', gzipSync(lines)), ['6 airplane-silence']);
  t.same(await findingsOf('windows.jsonl', `\ufeff${lines.replaceAll('\n', '\r\n')}`), ['6 airplane-silence']);
  t.same(await findingsOf('no-end.jsonl', lines.trimEnd()), ['6 airplane-silence']);
  t.same(
    await findingsOf('spaced.jsonl', lines.replace('\n', '\n\n')),
    ['7 airplane-silence'],
    'empty lines count as lines',
  );
  // Files are read in chunks of 1 MiB. The second of two lines of 800 kB is in two chunks.
  const wide = `{"at":"2026-11-20T05:00:00.000Z","event":"world","x":"${'ä'.repeat(400_000)}"}`;
  t.same(await findingsOf('wide.jsonl', lines.replace('\n', `\n${wide}\n${wide}\n`)), ['8 airplane-silence']);
  // Uncompressed, so that the lines before the cut can be read.
  const torn = gzipSync(lines, { level: 0 }).subarray(0, -60);
  await t.rejects(findingsOf('torn.jsonl.gz', torn), { code: 'input-file', message: /torn.jsonl.gz:8: .*truncated/ });
  await t.rejects(findingsOf('not-packed.jsonl.gz', lines), { code: 'input-file', message: /can't be unzipped/ });
  await t.rejects(findingsOf('empty.jsonl', ''), { code: 'input-trace', message: /empty.jsonl:1: there is no header/ });
  await t.rejects(findingsOf('byte.jsonl', 'x'), { code: 'input-trace', message: /byte.jsonl:1: the line is no JSON/ });
  await t.rejects(findingsOf('cut.jsonl', lines.slice(0, -20)), { code: 'input-trace', message: /cut.jsonl:8: / });
  await t.rejects(findingsOf('bomb.jsonl.gz', gzipSync(`${HEADER}\n${' '.repeat(40_000_000)}`)), {
    message: /bomb.*:2: the line is longer than 1,048,576 bytes/,
  });
  const endless = traceFile('endless.jsonl', HEADER);
  // Makes the file longer by zeros, which take no space on the disk.
  truncateSync(endless, 2 ** 31);
  await t.rejects(checkFile(endless, { ignore: [] }), { message: /endless.jsonl:2: the line is longer than/ });
});

t.test('show lists pings, filtered by flags', async (t) => {
  const text = await lockgate(t, 'trace', 'show', clean);
  t.match(
    text.out,
    /^2026-11-20T06:00:01.000Z {2}A4:C1:38:F0:E1:D2 {2}cellular REASON_PERIOD_TRACKING locked 80% {2}#1\/1\n/,
  );
  t.equal(text.out.trimEnd().split('\n').length, 2, 'one line per ping, none for an acknowledgement');
  const lines = async (...args: string[]) => {
    const { out } = await lockgate(t, 'trace', 'show', clean, '--json', ...args);
    return out
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  };
  t.match(await lines('--reason', 'REASON_PERIOD_TRACKING'), [{ line: 3, source: 'lock', ping: { sequence: 1 } }]);
  t.equal((await lines('--mac', 'a4-c1-38-f0-e1-d2')).length, 2);
  t.equal((await lines('--mac', 'a4-c1-38-f0-e1-d3')).length, 0);
  t.equal((await lines('--since', '2026-11-20T07:00:08+01:00')).length, 1);
  t.equal((await lines('--until', '2026-11-20T06:00:01.000Z')).length, 0);
  for (const wrong of [
    ['--mac', 'x'],
    ['--reason', 'x'],
    ['--since', 'noon'],
  ])
    t.equal((await lockgate(t, 'trace', 'show', clean, ...wrong)).code, 2, wrong.join(' '));
});

t.test('anonymise changes MACs, places and days but not the findings', async (t) => {
  const names = readdirSync(traces).filter((name) => /\.(breaks|holds)-/.test(name));
  for (const name of names) {
    const copy = join(folder, `copy-${name}.gz`);
    t.equal((await lockgate(t, 'trace', 'anonymise', join(traces, name), '--out', copy, '--seed', 'x')).code, 0);
    const [before, after] = [
      await checkFile(join(traces, name), { ignore: [] }),
      await checkFile(copy, { ignore: [] }),
    ];
    const linesAndRules = (file: typeof before) => file.findings.map(({ line, rule }) => `${line} ${rule}`);
    t.same(linesAndRules(after), linesAndRules(before), name);
    const text = gunzipSync(readFileSync(copy)).toString();
    t.notOk(/A4:C1:38|2026-11-2|52\.37|note/.test(text), 'no original value is left');
  }
  const once = await lockgate(t, 'trace', 'anonymise', clean, '--seed', 'x');
  t.equal(
    (await lockgate(t, 'trace', 'anonymise', clean, '--seed', 'x')).out,
    once.out,
    'the same seed gives the same copy',
  );
  t.not((await lockgate(t, 'trace', 'anonymise', clean, '--seed', 'y')).out, once.out);
  t.not((await lockgate(t, 'trace', 'anonymise', clean)).out, once.out, 'without a seed copies differ');
});

t.test('anonymise removes typed text, bytes and world events, and does not change distances', async (t) => {
  const timeAndMac = (second: number) => `"at":"2026-11-20T06:00:0${second}.000Z","mac":"A4C138F0E1D2"`;
  const ping = (latitude: number, longitude: number) =>
    `{"ping_type":"gps","reason":"REASON_THEFT","lock_state":"locked","battery_percent":80,"latitude":${latitude},` +
    `"longitude":${longitude},"speed":3,"direction":90,"uncertainty":8}`;
  const file = traceFile(
    'private.jsonl',
    '{"trace":"lockgate","version":1,"note":"Ada’s bike"}',
    `{${timeAndMac(0)},"event":"world","address":"Main Street 1"}`,
    `{${timeAndMac(1)},"event":"ping","ping":${ping(52.1, 179.9)}}`,
    '',
    `{${timeAndMac(2)},"event":"ping","ping":${ping(52.2, -179.9)}}`,
    `{${timeAndMac(3)},"event":"ack","ack":{"id":1,"result":"failed","detail":"Ada says no"}}`,
    `{${timeAndMac(4)},"event":"ping","ping":${ping(91, 4)}}`,
  );
  const { out } = await lockgate(t, 'trace', 'anonymise', file, '--seed', 'x');
  t.notOk(/Ada|Main Street|A4:C1/.test(out));
  const lines = out.split('\n').map((line) => (line === '' ? null : JSON.parse(line)));
  t.equal(lines[1].event, 'tick');
  t.equal(lines[3], null, 'an empty line stays empty');
  const [first, second] = [lines[2].ping, lines[4].ping];
  t.ok(Math.abs(second.latitude - first.latitude - 0.1) < 1e-6);
  t.ok(Math.abs(((second.longitude - first.longitude + 720) % 360) - 0.2) < 1e-6, 'also across the date line');
  t.equal(lines[6].ping.latitude, 91, 'an invalid latitude does not change');
  t.match(lines[5].ack.detail, /^[0-9a-f]{8}$/);
  t.equal((await lockgate(t, 'trace', 'anonymise', file, '--out', join(folder, 'no/such/folder'))).code, 2);
  t.notOk(existsSync(join(folder, 'no')));
});

t.test('ping decode and encode are inverse, and print sizes', async (t) => {
  const json =
    '{"ping_type":"close_connection","lock_state":"locked","battery_percent":81,' +
    '"boot":41,"sequence":14,"date":"2026-11-20T06:00:51.000Z"}';
  const encoded = await lockgate(t, 'ping', 'encode', json);
  // Derived from lock.proto: fields 1 = 41, 2 = 14, 3 = 1795154451000 as a varint, 9 = { 1: 1, 2: 81 }.
  t.equal(encoded.out, '0829100e18b8b4acbc9f344a0408011051\n');
  t.match(encoded.err, '17 bytes of protobuf; 25 bytes as an MQTT PUBLISH at QoS 1');
  const hex = encoded.out.trim();
  const decoded = await lockgate(t, 'ping', 'decode', hex, '--json');
  t.match(JSON.parse(decoded.out), { ping: JSON.parse(json), protobuf_bytes: 17, publish_bytes: 25 });
  t.equal((await lockgate(t, 'ping', 'encode', decoded.out)).out, encoded.out);
  const base64 = Buffer.from(hex, 'hex').toString('base64');
  t.equal((await lockgate(t, 'ping', 'encode', json, '--to', 'base64')).out, `${base64}\n`);
  t.match((await lockgate(t, 'ping', 'decode', base64)).out, /^close REASON_CLOSE_CONNECTION locked 81% {2}#41\/14\n/);
  t.match((await lockgate(t, 'ping', 'decode', '08:29 10:0e 18b8b4acbc9f344a0408011051')).out, '#41/14');
  // Fields 1 = 1, 2 = 2, 3 = -5 as a varint of ten bytes, 10 = { 1: 7, 2: 1 }.
  const beforeEpoch = await lockgate(t, 'ping', 'encode', '{"id":7,"result":"ok","boot":1,"sequence":2,"time_ms":-5}');
  t.equal(beforeEpoch.out, '0801100218fbffffffffffffffff01520408071001\n', 'a time before 1970');
  const detail = 'x'.repeat(200);
  const large = await lockgate(
    t,
    'ping',
    'encode',
    `{"id":7,"result":"ok","detail":"${detail}","boot":1,"sequence":2,"time_ms":0}`,
    '--json',
  );
  const { protobuf_bytes: protobuf, publish_bytes: publish } = JSON.parse(large.out);
  t.equal(publish - protobuf, 9, 'from 128 bytes on, the remaining length takes two');
  for (const wrong of [
    ['decode', 'xyz!'],
    ['decode', ''],
    ['decode', 'ff'],
    ['decode', hex, '--from', 'octal'],
    ['encode', '{'],
    ['encode', '[]'],
    ['encode', '{"ping_type":"gps"}'],
    ['encode', json.replace('81', '1e12')],
  ])
    t.equal((await lockgate(t, 'ping', ...wrong)).code, 2, wrong.join(' '));
});

t.test('model show prints the model and its rules in each format', async (t) => {
  t.match((await lockgate(t, 'model', 'show')).out, /LOW_BATTERY +battery below 10 % +yes +– /);
  const rules = await lockgate(t, 'model', 'show', '--rules');
  for (const { rule } of RULES) t.match(rules.out, rule);
  t.equal(JSON.parse((await lockgate(t, 'model', 'show', '--rules', '--json')).out).rules.length, RULES.length);
  const json = JSON.parse((await lockgate(t, 'model', 'show', '--format', 'json')).out);
  t.match(json, { highWindow: { from: '07:00', to: '19:00' }, bounds: { periodTooSoonUnder: 82800000 } });
  t.match(
    (await lockgate(t, 'model', 'show', '--format', 'mermaid')).out,
    /^stateDiagram-v2\n(.*\n)* {2}MID --> AIRPLANE: airplane on\n/,
  );
  t.match(
    (await lockgate(t, 'model', 'show', '--format', 'dot')).out,
    /^digraph power \{\n(.*\n)* {2}HIGH -> LOW_BATTERY/,
  );
  t.equal((await lockgate(t, 'model', 'show', '--rules', '--format', 'dot')).code, 2);
});

t.test('every command’s help has an example', async (t) => {
  for (const [group, command] of [
    ['trace', 'check'],
    ['trace', 'show'],
    ['trace', 'anonymise'],
    ['trace', 'replay'],
    ['ping', 'decode'],
    ['ping', 'encode'],
    ['model', 'show'],
  ] as const)
    t.match((await lockgate(t, group, command, '--help')).out, `Example:\n  $ lockgate ${group} ${command}`);
});

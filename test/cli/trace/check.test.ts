// Reports of `lockgate trace check` (interfaces.md §4): errors and notes in addition to findings, known findings,
// formats, summaries, and gzipped standard input.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { checkTraces } from '../../../cli/commands/trace/check/check.js';
import { FindingIndex } from '../../../cli/commands/trace/check/findings/finding-index.js';
import { SpillFile } from '../../../cli/commands/trace/check/findings/spill-file.js';
import type { CheckFlags } from '../../../cli/commands/trace/check/options.js';
import { LockgateError } from '../../../proto/errors.js';
import { root } from '../../helpers/house/our-files.js';

const folder = mkdtempSync(path.join(tmpdir(), 'lockgate-check-'));
t.teardown(() => rmSync(folder, { recursive: true, force: true }));

/** Hand-written traces with one finding each: a violation in line 6, and a warning. */
const broken = path.join(root, 'test/traces/airplane-silence.breaks-1.jsonl');
const warned = path.join(root, 'test/traces/clock-ahead.breaks-1.jsonl');
const POSITION = { latitude: 52.1, longitude: 4.9, speed: 0, direction: 0, uncertainty: 8 };
const MAC = 'A4:C1:38:F0:E1:D2';

/** The output, exit code and error of a check. */
interface CheckResult {
  readonly out: string;
  readonly code: number;
  readonly error: string;
}

/** Runs `trace check` in this process. */
async function check(t: Test, files: readonly string[], flags: Partial<CheckFlags> = {}): Promise<CheckResult> {
  const out = t.capture(process.stdout, 'write', () => true);
  const err = t.capture(process.stderr, 'write', () => true);
  let error = '';
  try {
    await checkTraces(files, { failOn: 'violation', ignore: [], require: [], ...flags });
  } catch (thrown) {
    if (!(thrown instanceof LockgateError)) throw thrown;
    error = thrown.message;
  } finally {
    out.restore();
    err.restore();
  }
  // An error is wrong input, for which the program ends with 2.
  const code = error === '' ? Number(process.exitCode ?? 0) : 2;
  process.exitCode = 0;
  return {
    out: out()
      .map((call) => String(call.args[0]))
      .join(''),
    code,
    error,
  };
}

/** Writes a file. Returns its path. */
function traceFile(name: string, content: string | Buffer): string {
  const file = path.join(folder, name);
  writeFileSync(file, content);
  return file;
}

t.test('findings before a line that can’t be read are reported, and the error too, in every format', async (t) => {
  const file = traceFile('cut.jsonl', `${readFileSync(broken, 'utf8')}{"at":"x"\n`);
  const text = await check(t, [file]);
  t.equal(text.code, 2);
  t.match(text.out, /line 6 +violation/);
  t.match(text.out, /error +\S*cut\.jsonl:9: the line is no JSON/);
  t.match(text.error, /cut\.jsonl:9: the line is no JSON .*: expected an event/);
  const json = JSON.parse((await check(t, [file, warned], { json: true })).out);
  t.match(json.files[0].findings, [{ line: 6, rule: 'airplane-silence' }]);
  t.match(json.files[0].error, { code: 'input-trace', line: 9, message: /cut\.jsonl:9: / });
  t.match(json, { violations: 1, warnings: 1, files: [{}, { error: null, findings: [{ rule: 'clock-ahead' }] }] });
  const junit = await check(t, [file], { junit: true });
  t.match(junit.out, /<error message="[^"]*cut\.jsonl:9: [^"]*" type="input-trace"\/>/);
  t.match(junit.out, /errors="1"/);
  t.match(junit.out, /name="airplane-silence"><failure /);
  const github = await check(t, [file], { format: 'github' });
  t.match(github.out, /^::error file=.*cut\.jsonl,line=6,title=airplane-silence::A4:C1:38:F0:E1:D2: REASON/m);
  t.match(github.out, /^::error file=.*cut\.jsonl,line=9::/m);
  t.match((await check(t, [file], { format: 'html' })).out, /Not read to its end: .*cut\.jsonl:9: /);
  const missing = await check(t, [path.join(folder, 'none.jsonl')], { json: true });
  t.match(JSON.parse(missing.out).files, [{ pings: 0, findings: [], error: { code: 'input-file', line: null } }]);
});

t.test('unknown members are reported as notes, with a suggestion of what was meant', async (t) => {
  const lines = readFileSync(broken, 'utf8').trimEnd().split('\n');
  const header = JSON.stringify({
    trace: 'lockgate',
    version: 1,
    locks: { [MAC]: { high_windw: { from: '07:00', to: '19:00' }, power: { mode: 'MID', airplan: true } } },
  });
  const ping = (second: number, more: object, inPing: object) =>
    JSON.stringify({
      ...{ at: `2026-11-21T06:00:0${second}.000Z`, mac: MAC, event: 'ping', ...more },
      ping: { ping_type: 'close_connection', lock_state: 'locked', battery_percent: 80, ...inPing },
    });
  const events = [
    ping(1, { lock_state: 'locked' }, { batery_percent: 3 }),
    ping(2, {}, { batery_percent: 3, zzzz: 1 }),
  ];
  const file = traceFile('notes.jsonl', `${[header, ...lines.slice(1), ...events].join('\n')}\n`);
  const { files } = JSON.parse((await check(t, [file], { json: true })).out);
  const line = lines.length + 1;
  t.same(
    files[0].notes.map((note: { line: number; member: string; times: number }) => [note.line, note.member, note.times]),
    [
      [1, `locks.${MAC}.high_windw`, 1],
      [1, `locks.${MAC}.power.airplan`, 1],
      [line, 'lock_state', 1],
      [line, 'ping.batery_percent', 2],
      [line + 1, 'ping.zzzz', 1],
    ],
  );
  const messages = files[0].notes.map(({ message }: { message: string }) => message).join('\n');
  t.match(messages, /"high_windw" is no member of a lock of the header .* Did you mean high_window\?/);
  t.match(messages, /Did you mean airplane\?/);
  t.match(messages, /It belongs in "ping"\./);
  t.match(messages, /Did you mean battery_percent\?/);
  t.ok(files[0].notes.every((note: { file: string }) => note.file === file));
  const text = await check(t, [file], { ignore: ['airplane-silence', 'after-close', 'outside-connection'] });
  t.match(text, { code: 0, error: '' }, 'notes change no exit code');
  t.match(text.out, /note +\S*notes\.jsonl:1: "high_windw"/);
  const many = Array.from({ length: 300 }, (_, index) => ping(1, { [`x${index}`]: 1 }, {}));
  const flood = JSON.parse(
    (await check(t, [traceFile('many.jsonl', `${[header, ...many].join('\n')}\n`)], { json: true })).out,
  );
  t.equal(flood.files[0].notes.length, 100, 'the maximum');
  t.equal(flood.files[0].notes_left_out, 202, 'of 300 in pings and 2 in the header');
});

t.test('--baseline leaves out the findings that an earlier --json printed', async (t) => {
  const first = await check(t, [broken, warned], { json: true });
  t.equal(first.code, 1);
  const baseline = traceFile('known.json', first.out);
  const again = await check(t, [broken, warned], { json: true, baseline });
  t.match(JSON.parse(again.out), { violations: 0, warnings: 0, known: 2 });
  t.equal(again.code, 0);
  const later = traceFile('later.jsonl', readFileSync(broken, 'utf8').replace('\n', '\n\n\n'));
  t.equal((await check(t, [later], { baseline })).code, 0, 'the uplink counts, not the line');
  t.match((await check(t, [broken], { baseline })).out, /1 known finding left out\./);
  const list = JSON.stringify([{ rule: 'airplane-silence', mac: 'a4c138f0e1d2', line: 6 }]);
  t.equal((await check(t, [broken], { baseline: traceFile('list.json', list) })).code, 0, 'a line is enough');
  for (const [content, expectedError] of [
    ['{', /not JSON .*expected the output of/],
    ['{"x":1}', /has no findings/],
    ['[{"rule":"x"}]', /finding 0 has an unknown rule "x"/],
    [`[{"rule":"clock-ahead","mac":"${MAC}"}]`, /neither boot and sequence nor a line/],
  ] as const)
    t.match((await check(t, [broken], { baseline: traceFile('wrong.json', content) })).error, expectedError);
  t.match((await check(t, [broken], { baseline: path.join(folder, 'no.json') })).error, /no\.json can't be read/);
});

t.test('a summary counts findings by rule, lock and firmware', async (t) => {
  const plain = await check(t, [broken, warned]);
  t.notMatch(plain.out, /FIRMWARE/, 'no summary for few findings');
  const { out } = await check(t, [broken, broken, warned], { summary: true });
  t.match(out, /airplane-silence +violation +2 +1 +2\.4\.1: 2\n/);
  const json = JSON.parse((await check(t, [broken, warned], { json: true, summary: true })).out);
  t.match(json.summary, [
    { rule: 'airplane-silence', severity: 'violation', findings: 1, locks: 1, firmware: { '2.4.1': 1 } },
    { rule: 'clock-ahead', severity: 'warning', findings: 1, locks: 1 },
  ]);
  const many = Array.from({ length: 60 }, () => broken);
  t.match((await check(t, many)).out, /FIRMWARE/);
  t.notMatch((await check(t, many, { summary: false })).out, /FIRMWARE/);
});

t.test('the HTML report is one page without scripts and external resources', async (t) => {
  const { out, code } = await check(t, [broken, warned], { format: 'html' });
  t.equal(code, 1);
  t.notMatch(out, /<script|https?:|url\(|<link|<img|@import| on[a-z]+=/i);
  t.match(out, /<html lang="en">/);
  t.match(out, /<svg role="img" aria-labelledby="f0-l0-t f0-l0-d"/);
  t.match(out, /<rect class="state AIRPLANE"/);
  t.match(out, /<title>violation airplane-silence, line 6<\/title>/);
  t.match(
    out,
    /<td class="short violation">▼ violation<\/td><td class="short">airplane-silence<\/td><td class="short">1\/3<\/td>/,
  );
  const ids = [...out.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
  t.equal(new Set(ids).size, ids.length, 'ids are unique');
  const oddlyNamed = traceFile('a<b>&.jsonl', readFileSync(broken, 'utf8'));
  t.match((await check(t, [oddlyNamed], { format: 'html' })).out, /<h2>[^<]*a&lt;b&gt;&amp;\.jsonl<\/h2>/);
});

t.test('a large JSON document is written in parts, which together are one valid document', async (t) => {
  const ping = (sequence: number) =>
    JSON.stringify({
      ...{ at: '2026-11-20T06:00:00.000Z', mac: MAC, event: 'ping' },
      ping: { ping_type: 'gps', reason: 'PHONE', lock_state: 'locked', battery_percent: 80, sequence, ...POSITION },
    });
  const lines = Array.from({ length: 1234 }, (_, index) => ping(index + 1));
  const file = traceFile('large.jsonl', `${['{"trace":"lockgate","version":1}', ...lines].join('\n')}\n`);
  const { out } = await check(t, [broken, file, warned], {
    json: true,
    ignore: ['outside-connection', 'out-of-range'],
  });
  const json = JSON.parse(out);
  const findingsOf = (index: number) => json.files[index].findings;
  t.equal(findingsOf(1).length, json.violations + json.warnings - findingsOf(0).length - findingsOf(2).length);
  t.ok(findingsOf(1).length > 1000);
  t.same(
    findingsOf(1).map(({ line }: { line: number }) => line),
    findingsOf(1)
      .map(({ line }: { line: number }) => line)
      .sort((a: number, b: number) => a - b),
  );
  t.match(json.files, [{ findings: [{ line: 6 }], error: null }, { pings: 1234, notes: [] }, { file: warned }]);
});

t.test('gzipped input is recognised by its first bytes', async (t) => {
  const bytes = readFileSync(broken);
  const runWithStdin = (input: Buffer) => {
    const entry = path.join(root, 'dist/cli/main.js');
    return spawnSync(process.execPath, [entry, 'trace', 'check', '-', '--json'], { input, encoding: 'utf8' });
  };
  for (const input of [bytes, gzipSync(bytes)]) {
    const { stdout, status } = runWithStdin(input);
    t.equal(status, 1);
    t.match(JSON.parse(stdout).files, [{ file: '-', pings: 3, findings: [{ line: 6 }] }]);
  }
  // Uncompressed, so that the lines before the cut can be read.
  const truncated = runWithStdin(gzipSync(bytes, { level: 0 }).subarray(0, -40));
  t.equal(truncated.status, 2);
  t.match(JSON.parse(truncated.stdout).files, [
    { findings: [{ line: 6 }], error: { message: /^standard input:\d+: .*truncated/ } },
  ]);
  const unnamed = traceFile('packed.jsonl', gzipSync(bytes));
  t.match((await check(t, [unnamed])).out, /line 6 +violation/, 'and so is a file without .gz');
});

t.test('the spill file and the index return each finding that was stored and not withdrawn', async (t) => {
  const spill = new SpillFile();
  t.teardown(() => spill.close());
  const texts = Array.from({ length: 12_000 }, (_, index) => `${index} ${'x'.repeat(index % 1500)}`);
  texts.push('y'.repeat(5_000_000));
  const positions = texts.map((text) => spill.append(Buffer.from(text)));
  let correct = 0;
  for (let read = 0; read < texts.length; read += 1) {
    // 7919 is prime, so the texts are read once each, in scattered order.
    const position = (read * 7919) % texts.length;
    const text = texts[position] as string;
    if (spill.read(positions[position] as number, text.length).toString() === text) correct += 1;
  }
  t.equal(correct, texts.length);
  const index = new FindingIndex();
  // Five locks break one rule in turn.
  const rule = 3;
  const lockOf = (line: number): number => line % 5;
  const entry = (line: number) => ({ line, lock: lockOf(line), rule, firmware: 0, position: line, length: 1 });
  const key = (line: number) => ({ credential: 1, boot: 1, sequence: line });
  for (let line = 1000; line > 0; line -= 1) index.add({ ...entry(line), key: line % 2 === 0 ? key(line) : null });
  for (let line = 4; line <= 1000; line += 4) index.withdraw(rule, lockOf(line), key(line));
  index.withdraw(rule, lockOf(1), key(1));
  t.equal(index.sorted().length, 750, 'every fourth of 1,000 was withdrawn; odd lines have no key, so line 1 stays');
  const lines = [...index.sorted()].map((each) => index.get('line', each));
  t.same(
    lines,
    [...lines].sort((a, b) => a - b),
  );
  t.ok(lines.every((line) => line % 4 !== 0));
});

/**
 * `trace why` explains a line of a trace, and `trace show --all` lists all lines with their findings (interfaces.md
 * §4). Neither needs a gateway. The tests use the hand-written traces of test/traces; expected.jsonl there has the
 * finding of each.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { type CommandResult, runCommand } from '../../helpers/cli/command-line.js';
import { root } from '../../helpers/house/our-files.js';

const folder = mkdtempSync(join(tmpdir(), 'lockgate-why-'));
t.teardown(() => rmSync(folder, { recursive: true, force: true }));

const traces = join(root, 'test/traces');
const LOCK = 'A4:C1:38:F0:E1:D2';
const AIRPLANE = join(traces, 'airplane-silence.breaks-1.jsonl');
const OVERDUE = join(traces, 'period-overdue.breaks-1.jsonl');

/** A step of an explanation: a sentence with a label. */
interface Step {
  readonly kind: string;
  readonly code: string;
  readonly sentence: string;
  readonly rests_on: string;
}

/** The answer of `trace why --json`. */
interface Explanation {
  readonly about: { readonly id: string; readonly line: number; readonly event: string; readonly mac: string };
  readonly findings: readonly { readonly rule: string }[];
  readonly steps: readonly Step[];
}

/** Explains a line, given as FILE:LINE. */
async function why(place: string, stdin?: string | Buffer): Promise<Explanation> {
  const { stdout, stderr, code } = await runCommand(['trace', 'why', place, '--json'], { ...(stdin && { stdin }) });
  if (code !== 0) throw new Error(`${place}: ${code} ${stderr}`);
  return JSON.parse(stdout) as Explanation;
}

/** Whether the explanation has such a step. */
function hasStep({ steps }: Explanation, kind: string, code: string, sentence: RegExp): boolean {
  return steps.some((each) => each.kind === kind && each.code === code && sentence.test(each.sentence));
}

t.test('every finding’s line is explained by the rule that it broke', async (t) => {
  const expected = readFileSync(join(traces, 'expected.jsonl'), 'utf8')
    .trim()
    .split('\n')
    // The rule owed needs world events, which trace why does not read.
    .filter((line) => !line.includes('"owed"'));
  for (const { file, line, rule } of expected.map((each) => JSON.parse(each))) {
    const explained = await why(`${join(traces, file)}:${line}`);
    const [first] = explained.steps;
    t.same([first?.kind, first?.code], ['rule-broken', rule], `${file}:${line}`);
    t.ok(
      explained.findings.some((each) => each.rule === rule),
      `${file}:${line}: the finding`,
    );
    t.ok(explained.steps.length > 3, `${file}:${line}: the chain`);
  }
});

t.test('each kind of line has its explanation', async (t) => {
  const connect = await why(`${AIRPLANE}:2`);
  t.same(connect.about, { kind: 'line', id: `${AIRPLANE}:2`, file: AIRPLANE, line: 2, event: 'connect', mac: LOCK });
  t.ok(hasStep(connect, 'connection', 'connected', /^The lock connected at 2026-11-20T06:00:00\.000Z\.$/));
  t.ok(hasStep(connect, 'trigger', 'REASON_PERIOD_TRACKING', /^4 uplinks came over it.*the daily ping/));
  t.ok(hasStep(connect, 'connection', 'closed', /after 9 s: the lock announced it/));
  const ping = await why(`${AIRPLANE}:3`);
  t.ok(hasStep(ping, 'trigger', 'REASON_PERIOD_TRACKING', /In MID the model allows the daily ping/));
  t.ok(hasStep(ping, 'rule-kept', 'period-too-soon', /no daily ping before it/));
  const command = await why(`${AIRPLANE}:4`);
  t.ok(hasStep(command, 'command', 'sent', /Command 7 \(set-power\) was sent/));
  t.ok(hasStep(command, 'command', 'ok', /answered ok 1 s later \(1\/2\)/));
  const ack = await why(`${AIRPLANE}:5`);
  t.ok(hasStep(ack, 'command', 'ok', /answers command 7 \(set-power\)/));
  const disconnect = await why(`${AIRPLANE}:8`);
  t.ok(hasStep(disconnect, 'connection', 'closed', /lasted 9 s/));
  t.ok(hasStep(disconnect, 'silence', 'airplane', /It is not late/));
  const overdue = await why(`${OVERDUE}:7`);
  t.equal(overdue.about.event, 'tick', 'time passing broke the rule');
  t.ok(hasStep(overdue, 'silence', 'late-period', /^Late since 2026-11-21T07:00:11\.000Z/));
  t.ok([connect, ping, command, ack, disconnect, overdue].every(({ steps }) => steps.every(restsOnSection)));
});

function restsOnSection({ rests_on: section }: Step): boolean {
  return /^(specification, |protocol\.md §|interfaces\.md §)/.test(section);
}

t.test('the explanation of a repeated uplink names the line of its first occurrence', async (t) => {
  const lines = readFileSync(AIRPLANE, 'utf8').trim().split('\n');
  const file = withEqualNumbers([...lines.slice(0, 3), lines[2] as string], join(folder, 'repeated.jsonl'));
  t.ok(hasStep(await why(`${file}:4`), 'message', 'repeat', /The same uplink came before, in line 3/));
});

/** Writes a trace whose pings all have one number and time, so that each repeats the first. */
function withEqualNumbers(lines: readonly string[], file: string): string {
  const number = { boot: 1, sequence: 1, date: '2026-11-20T06:00:01.000Z' };
  const written = lines.map((line) => {
    const event = JSON.parse(line);
    return event.event === 'ping' ? JSON.stringify({ ...event, ping: { ...event.ping, ...number } }) : line;
  });
  writeFileSync(file, `${written.join('\n')}\n`);
  return file;
}

t.test('a line’s own finding does not hide one of the same rule about another uplink', async (t) => {
  const file = join(folder, 'late.jsonl');
  const ping = (at: string, sequence: number, date = at): object => {
    const content = { ping_type: 'cellular', reason: 'REASON_PERIOD_TRACKING', lock_state: 'locked' };
    return { at, mac: LOCK, event: 'ping', ping: { ...content, battery_percent: 80, boot: 1, sequence, date } };
  };
  const lines = [
    { trace: 'lockgate', version: 1, locks: { [LOCK]: {} } },
    { at: '2026-11-20T06:00:00.000Z', mac: LOCK, event: 'connect' },
    ping('2026-11-20T06:00:01.000Z', 1),
    ping('2026-11-21T16:00:01.000Z', 3),
    // Made 22 h after the first ping and 12 h before the one that came before it.
    ping('2026-11-21T16:00:02.000Z', 2, '2026-11-21T04:00:01.000Z'),
  ];
  writeFileSync(file, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
  const late = await why(`${file}:5`);
  t.ok(hasStep(late, 'rule-broken', 'period-too-soon', /The period sequence of 2026-11-21T04/), 'its own');
  const other = /^It showed that the earlier uplink 1\/3 broke period-too-soon, .*sequence of 2026-11-21T16/;
  t.ok(hasStep(late, 'finding', 'period-too-soon', other), 'that of the ping before it');
});

t.test('the standard input and gzip give the same explanation as the file', async (t) => {
  const bytes = readFileSync(AIRPLANE);
  const { steps } = await why(`${AIRPLANE}:6`);
  writeFileSync(join(folder, 'air.jsonl.gz'), gzipSync(bytes));
  t.same((await why(`${join(folder, 'air.jsonl.gz')}:6`)).steps, steps);
  t.same((await why('-:6', bytes)).steps, steps);
  const zipped = await why('-:6', gzipSync(bytes));
  t.same(zipped.steps, steps);
  t.equal(zipped.about.id, 'standard input:6');
  const temporary = mkdtempSync(join(folder, 'tmp-'));
  await runCommand(['trace', 'why', '-:6'], { stdin: bytes, environment: { TMPDIR: temporary } });
  t.same(readdirSync(temporary), [], 'the copy of the standard input is removed');
});

t.test('a line with nothing to explain is an error that says what was expected', async (t) => {
  const header = '{"trace":"lockgate","version":1}';
  const unexplained = join(folder, 'unexplained.jsonl');
  const at = '2026-11-20T06:00:00.000Z';
  const world = { at, mac: LOCK, event: 'world', motion: true };
  const lines = [
    { at, event: 'tick' },
    { at, event: 'gateway', state: 'start' },
    world,
    { at, mac: LOCK, event: 'connect' },
  ];
  writeFileSync(unexplained, `${[header, '', ...lines.map((each) => JSON.stringify(each))].join('\n')}\nno event\n`);
  const isInputError = async (fileAndLine: string, message: RegExp): Promise<CommandResult> => {
    const result = await runCommand(['trace', 'why', fileAndLine], {});
    t.equal(result.code, 2, fileAndLine);
    t.match(result.stderr, message, fileAndLine);
    return result;
  };
  await isInputError(AIRPLANE, /names no line: expected FILE:LINE, such as ride\.jsonl:12/);
  await isInputError(`${AIRPLANE}:0`, /lines are numbered from 1/);
  await isInputError(`${AIRPLANE}:1`, /breaks-1\.jsonl:1 is the header: expected the line of a ping/);
  await isInputError(`${AIRPLANE}:99`, /there is no line 99: .*breaks-1\.jsonl ends at line 8/);
  await isInputError(`${join(folder, 'none.jsonl')}:2`, /there is no file/);
  await isInputError(`${unexplained}:7`, /unexplained\.jsonl:7: the line is no JSON/);
  const bad = await isInputError(`${unexplained}:6`, /unexplained\.jsonl:7: the line is no JSON/);
  t.match(bad.stdout, /The lock connected at/, 'a later bad line is reported after the explanation');
  writeFileSync(unexplained, readFileSync(unexplained, 'utf8').replace('no event\n', ''));
  await isInputError(`${unexplained}:2`, /unexplained\.jsonl:2 is empty/);
  await isInputError(`${unexplained}:3`, /is a tick: it only says that time passed, and no finding is about it/);
  await isInputError(`${unexplained}:4`, /the gateway started or stopped listening/);
  await isInputError(`${unexplained}:5`, /is a world event, which the judge never reads/);
});

t.test('show --all has every event of a trace and the findings of trace check', async (t) => {
  for (const file of readdirSync(traces).filter((name) => /breaks-1\.jsonl$/.test(name) && !name.startsWith('owed'))) {
    const place = join(traces, file);
    const shown = await runCommand(['trace', 'show', '--all', '--json', place], {});
    const all = shown.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const events = readFileSync(place, 'utf8')
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => JSON.parse(line));
    t.same(
      all.filter(({ event }) => event !== 'finding').map(({ at, event, mac }) => [at, event, mac]),
      events.map(({ at, event, mac }) => [at, event, mac]),
      `${file}: events`,
    );
    const checked = await runCommand(['trace', 'check', '--json', place], {});
    const { findings } = JSON.parse(checked.stdout).files[0];
    t.same(
      all.filter(({ event }) => event === 'finding').map(({ line, mac, finding }) => [line, mac, finding.rule]),
      findings.map(({ line, mac, rule }: { line: number; mac: string; rule: string }) => [line, mac, rule]),
      `${file}: findings`,
    );
  }
});

t.test('show --all prints a timeline, which --mac, --reason and --until filter', async (t) => {
  const text = async (...args: string[]): Promise<string> =>
    (await runCommand(['trace', 'show', '--all', ...args], {})).stdout;
  const all = await text(AIRPLANE);
  t.match(all, /^ {5}2 {2}2026-11-20T06:00:00\.000Z {2}A4:C1:38:F0:E1:D2 {2}connect\n/);
  t.match(all, /command {5}7 set-power airplane=true\n.*ack {9}ack of command 7: ok/);
  t.match(all, /ping .*#1\/3\n.* violation {3}airplane-silence: REASON_NETWORK_PING was sent with airplane on/);
  t.match(all, /disconnect {2}closed\n$/);
  t.equal(await text(AIRPLANE, '--mac', 'A4C138F0E1D3'), '', 'no other lock');
  const network = await text(AIRPLANE, '--reason', 'REASON_NETWORK_PING');
  t.equal(network.trim().split('\n').length, 2, 'the ping and its finding');
  const early = await text(AIRPLANE, '--until', '2026-11-20T06:00:06Z');
  t.equal(early.trim().split('\n').length, 3);
  const two = await runCommand(['trace', 'show', '--all', '--json', AIRPLANE, OVERDUE], {});
  t.equal(
    new Set(
      two.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).file),
    ).size,
    2,
    'each line names its file',
  );
});

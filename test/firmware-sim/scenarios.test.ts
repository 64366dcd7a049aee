// Scenarios (docs/scenarios.md) are files that say what happens to simulated locks and which pings are expected. The
// built-in scenarios pass without a gateway and over MQTT, with the same pings in the same order. An error about a file
// names the line. The schema for editors is the schema that the reader uses.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import t from 'tap';
import { parse } from 'yaml';
import { COMMAND_FORMS } from '../../firmware-sim/device-event/command-text.js';
import { VERBS, type Verb } from '../../firmware-sim/device-event/device-event.js';
import { BUGS } from '../../firmware-sim/faults/bugs.js';
import { BUILT_IN_FOLDER, builtInFile, builtInNames } from '../../firmware-sim/scenario/built-in.js';
import { parseScenario, readScenarioFile } from '../../firmware-sim/scenario/reader.js';
import type { Scenario } from '../../firmware-sim/scenario/scenario.js';
import { scenarioJsonSchema } from '../../firmware-sim/scenario/schema.js';
import { VirtualScenario } from '../../firmware-sim/scenario/virtual-scenario.js';
import { runLockgate } from '../helpers/cli/program.js';
import { testGateway } from '../helpers/gateway/test-gateway.js';
import { root } from '../helpers/house/our-files.js';
import { quickOrLong } from '../helpers/house/test-length.js';
import { findingsIn } from '../helpers/sim/judged-run.js';
import { checkLiveOutcome, playSynchronised } from '../helpers/sim/scenario-live.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const folder = tempFolder(t);
const BUILT_IN = [
  ...['airplane', 'commute', 'coverage-hole', 'e-bike', 'high-day', 'low-battery', 'modem-reset', 'month', 'no-fix'],
  ...['phone-unlock', 'recovery-hunt', 'theft'],
];

interface PlayedScenario {
  readonly run: VirtualScenario;
  readonly lines: readonly string[];
}

/**
 * Plays a scenario to its end without a gateway. With `hasWorldEvents` the lines also say what truly happened to the
 * locks.
 */
function play(
  scenario: Scenario,
  options: Partial<ConstructorParameters<typeof VirtualScenario>[0]> = {},
): PlayedScenario {
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  const run = new VirtualScenario({
    scenario,
    seed: scenario.seed,
    note: '',
    hasWorldEvents: false,
    write,
    ...options,
  });
  run.advance(scenario.endMs);
  return { run, lines };
}

/** The unmet expectations, as text. */
const unmet = ({ run }: PlayedScenario): string[] =>
  run
    .verdicts()
    .filter(({ isMet }) => !isMet)
    .map(({ expectation, seen }) => `${expectation.line}: ${expectation.sentence}; ${seen}`);

t.test('the built-in scenarios pass with any seed, without findings', async (t) => {
  t.same(builtInNames(), BUILT_IN);
  for (const name of BUILT_IN) {
    const scenario = await readScenarioFile(builtInFile(name));
    t.equal(scenario.name, name);
    t.ok(scenario.expectations.length >= 3, `${name} expects something`);
    for (const seed of [scenario.seed, ...quickOrLong(['another'], ['another', '3', '8'])]) {
      const played = play(scenario, { seed });
      t.same(unmet(played), [], `${name}, seed ${seed}`);
      t.equal(played.run.play.unacknowledged, 0, 'every ping was acknowledged');
      const findings = findingsIn(played.lines);
      t.same(
        findings.filter(({ rule, severity }) => severity === 'violation' || !scenario.warnings.has(rule)),
        [],
        'judged from the trace that was written',
      );
      t.same(findings, played.run.findings(), 'the judge of the run has the same findings');
    }
  }
});

t.test('the same seed gives the same bytes with any step size; another seed gives other bytes', async (t) => {
  for (const name of ['commute', 'e-bike', 'recovery-hunt']) {
    const scenario = await readScenarioFile(builtInFile(name));
    const { lines } = play(scenario, { hasWorldEvents: true });
    const linesInSteps: string[] = [];
    const run = new VirtualScenario({
      ...{ scenario, seed: scenario.seed, note: '', hasWorldEvents: true },
      write: (line) => linesInSteps.push(line),
    });
    // An odd number of ms, so that the steps end between the events of the scenario.
    while (run.nowMs < scenario.endMs) run.advance(run.nowMs + 7_777);
    t.same(linesInSteps, lines, name);
    t.notSame(play(scenario, { seed: 'another', hasWorldEvents: true }).lines, lines);
    t.ok(lines.some((line) => line.includes('"event":"world"')));
  }
});

t.test('a lock with a bug fails the built-in scenarios', async (t) => {
  const scenario = await readScenarioFile(builtInFile('airplane'));
  const bug = BUGS.find(({ name }) => name === 'talks-in-airplane');
  // The bug is in the list, and all locks have it.
  const played = play(scenario, { bugs: [{ bug: bug as (typeof BUGS)[number], locks: null }] });
  t.not(unmet(played).length, 0);
  t.ok(played.run.findings().some(({ rule }) => rule === 'airplane-silence'));
});

t.test(
  'the schema for editors equals the reader’s schema, and an independent validator accepts the built-in files',
  async (t) => {
    const stored = JSON.parse(readFileSync(path.join(BUILT_IN_FOLDER, 'scenario.schema.json'), 'utf8'));
    t.same(stored, scenarioJsonSchema());
    const validate = new Ajv2020({ strict: false, allErrors: true }).compile(stored);
    for (const name of BUILT_IN) {
      const text = readFileSync(builtInFile(name), 'utf8');
      t.equal(text.split('\n')[0], '# yaml-language-server: $schema=scenario.schema.json', name);
      t.ok(validate(parse(text)), `${name}: ${JSON.stringify(validate.errors)}`);
    }
    t.notOk(validate({ description: 'x', lasts: '1 h', locks: { a: { batery: 9 } } }));
  },
);

/** A valid file, of which tests replace a line. */
const VALID_FILE = `description: A lock.
lasts: 1 h
places:
  home: { east: 0, north: 0 }
locks:
  blue:
    place: home
    battery: 80
events:
  - at: '08:10'
    name: opened
    do: unlock
expect:
  - ping: REASON_STATE_PING cellular
    after: opened
    within: 1 s
`;

/** The messages about a scenario text; empty if it is valid. */
async function mistakesIn(text: string): Promise<readonly string[]> {
  try {
    await parseScenario(text, 'mine.yaml');
    return [];
  } catch (error) {
    return (error as { messages?: readonly string[] }).messages ?? [`${error}`];
  }
}

/** A replacement in the valid file, and the expected error. `BAD` becomes the path of a GPX file with a mistake. */
const INVALID_LINES: readonly [from: string | RegExp, to: string, expectedError: RegExp][] = [
  ['    battery: 80', '    batery: 80', /^mine.yaml:8: there is no key "batery" here: expected one of place, power, b/],
  ['    battery: 80', '    battery: 101', /^mine.yaml:8: battery is 101: expected a whole number of percent, 0 to 100/],
  ['    battery: 80', '    battery: full', /^mine.yaml:8: battery is "full": expected a whole number/],
  ['    battery: 80', '    power: { mode: LOW }', /^mine.yaml:8: mode is "LOW": expected MID or HIGH/],
  ['    battery: 80', '    daily_ping: noon', /^mine.yaml:8: "noon": expected a time such as 06:00/],
  ['    place: home', '    place: hom', /^mine.yaml:7: there is no place "hom": expected one of home/],
  ['    place: home', '    place: home\n    place: home', /^mine.yaml:8: .*unique.*: expected YAML/],
  ['  home: { east: 0, north: 0 }', '  home: { east: 0 }', /^mine.yaml:4: .*expected a place: latitude and longitude/],
  ['lasts: 1 h', 'lasts: soon', /^mine.yaml:2: lasts is "soon": expected a span of at most 366 days/],
  ['lasts: 1 h', 'length: 1 h', /^mine.yaml:2: there is no key "length" here/],
  ['lasts: 1 h', 'start: today\nlasts: 1 h', /^mine.yaml:2: start is "today": expected a date such as/],
  ['lasts: 1 h', 'lasts: 1 h\nwarnings: [airplane-silence]', /^mine.yaml:3: "airplane-silence": expected a rule whose/],
  ["at: '08:10'", "at: '25:10'", /^mine.yaml:10: "25:10": expected a time such as 08:10, day 2 08:10 or \+90 s/],
  ["at: '08:10'", "at: '07:10'", /^mine.yaml:10: 07:10 is before the start: expected a later time/],
  ["at: '08:10'", "at: '09:00'", /^mine.yaml:10: 09:00 is after the end: expected an earlier time/],
  ["at: '08:10'", "at: '08:10'\n    days: sunday", /^mine.yaml:11: sunday never comes: expected it before the end/],
  ["at: '08:10'", 'at: +10 min\n    days: monday', /^mine.yaml:10: "\+10 min": expected a time of day such as 08:10/],
  [
    '    do: unlock',
    '    do: open',
    /^mine.yaml:12: "open" does not start with a verb: expected one of unlock, lock, ride/,
  ],
  ['    do: unlock', '    do: [unlock, battery 101]', /^mine.yaml:12: "battery 101" can't be read: expected battery 9/],
  ['    do: unlock', '    do: wait 5 s', /^mine.yaml:12: "wait 5 s": expected an event that does something/],
  ['    do: unlock', '    do: ride to work', /^mine.yaml:12: there is no place "work": expected one of home/],
  ['    do: unlock', '    do: ride none.gpx', /^mine.yaml:12: .*none.gpx can't be read/],
  ['    do: unlock', '    do: ride BAD', /^mine.yaml:12: .*bad.gpx:3: .*expected/],
  ['    do: unlock', '    do: unlock\n    lock: red', /^mine.yaml:13: there is no lock "red": expected one of blue/],
  ['    do: unlock', '    do: unlock\n  - at: +1 s\n    name: opened\n    do: lock', /^mine.yaml:14: two events are/],
  ['  blue:\n', '  red:\n  blue:\n', /^mine.yaml:11: which lock\? expected lock: with one of red, blue/],
  ['    after: opened', '    after: closed', /^mine.yaml:15: "closed": expected a time such as .* event \(opened\)/],
  ['    after: opened', '    until: +1 s\n    after: opened', /^mine.yaml:15: until is before after/],
  ['    within: 1 s', '    within: a bit', /^mine.yaml:16: within is "a bit": expected a span/],
  ['    within: 1 s', '    every: 1 s', /^mine.yaml:14: every and for go together/],
  ['    within: 1 s', '    result: ok', /^mine.yaml:16: result does not go with ping: expected after, until/],
  [
    '    within: 1 s',
    '    with: { battery_percent: low }',
    /^mine.yaml:16: .*expected a number, a comparison such as "< 10"/,
  ],
  ['    within: 1 s', '    count: 1\n    at_least: 1', /^mine.yaml:16: count is exact: expected no at_least or/],
  ['    within: 1 s', '    at_least: 3\n    at_most: 2', /^mine.yaml:17: at_most is 2: expected no less than at_least/],
  ['  - ping: REASON_STATE', '  - next: REASON_STATE', /^mine.yaml:14: nothing comes before next: expected ping/],
  ['lasts: 1 h', 'lasts: 1 h\nseed: { a: 1 }', /^mine.yaml:3: seed is \{"a":1\}: expected a whole number, or a text/],
  [
    'ping: REASON_STATE_PING cellular',
    'ping: REASON_THEF',
    /^mine.yaml:14: ping is "REASON_THEF": expected a reason s/,
  ],
  ['ping: REASON_STATE_PING cellular', 'lock: blue', /^mine.yaml:14: an expectation is one of ping, next/],
  [/locks:[\s\S]*/, 'locks: {}\n', /^mine.yaml:5: there is no lock: expected at least one/],
  [/^[\s\S]*$/, '', /^mine.yaml:1: .*expected/],
  [/^[\s\S]*$/, '- a\n- b\n', /^mine.yaml:1: the file is .*expected a scenario/],
  [/^[\s\S]*$/, 'a: [1, 2', /^mine.yaml:1: .*expected YAML/],
  ['battery: 80', 'battery: &x 80\n    ebike: *x', /^mine.yaml:9: an alias: expected its value/],
  ['battery: 80', 'battery: !!js/function 80', /^mine.yaml:8: .*expected/],
  [/$/, '---\nmore: 1\n', /^mine.yaml:\d+: a second document: expected one/],
  [/$/, `# ${'x'.repeat(300_000)}`, /^mine.yaml:1: the file has \d+ bytes: expected at most 262144/],
  ['place: home', `place: ${'['.repeat(40)}${']'.repeat(40)}`, /^mine.yaml:7: more than 12 levels/],
  ['place: home', '__proto__: { a: 1 }', /^mine.yaml:7: there is no key "__proto__" here/],
];

t.test('each mistake names the file, the line and what was expected', async (t) => {
  t.same(await mistakesIn(VALID_FILE), []);
  writeFileSync(
    path.join(folder, 'bad.gpx'),
    '<gpx>\n<trk><trkseg>\n<trkpt lat="far" lon="4"/>\n</trkseg></trk></gpx>',
  );
  const bad = path.join(folder, 'bad.gpx');
  for (const [from, to, expectedError] of INVALID_LINES) {
    const mistakes = await mistakesIn(VALID_FILE.replace(from, to.replace('BAD', bad)));
    t.match(mistakes.join('\n'), new RegExp(expectedError.source, 'm'), to.slice(0, 80));
  }
  const several = VALID_FILE.replace('battery: 80', 'batery: 80').replace("'08:10'", '9').replace('1 s', '1');
  t.ok((await mistakesIn(several)).length >= 2, 'several mistakes are reported together');
});

t.test('the message about an unmet expectation says what was seen', async (t) => {
  // A message starts with the line of the expectation, 14.
  const rows: [string, RegExp][] = [
    ['ping: REASON_THEFT', /^14: REASON_THEFT; none came; seen: 08:10:00 REASON_STATE_PING cellular, 08:10:30 /],
    ['ping: REASON_STATE_PING gps\n    after: opened\n    within: 5 s', /the first came at 08:10:30, 30 s after/],
    ['ping: REASON_STATE_PING\n    count: 3', /; 2 came; seen/],
    ['ping: REASON_STATE_PING\n    at_most: 1', /; 2 came; seen/],
    ['ping: REASON_STATE_PING\n    with: { battery_percent: "< 80" }', /; none came/],
    ['ping: REASON_STATE_PING\n    every: 10 s\n    for: 1 min', /at 08:10:00 the next came at 08:10:30, 30 s later/],
    ['ping: REASON_STATE_PING gps\n    every: 10 s\n    for: 1 min', /after the one at 08:10:30 no more came/],
    ['ping: REASON_STATE_PING\n    arrives_after: opened + 1 min', /the one of 08:10:00 arrived at 08:10:00/],
    ['never: REASON_STATE_PING', /; it came at 08:10:00 REASON_STATE_PING cellular/],
    ['exactly: [REASON_STATE_PING cellular]', /; besides came 08:10:30 REASON_STATE_PING gps/],
    ['exactly: [REASON_STATE_PING x3]', /; in place of REASON_STATE_PING came 08:10:50 REASON_CLOSE_CONNECTION/],
    ['exactly: [REASON_THEFT gps repeated]', /; in place of REASON_THEFT gps came 08:10:00/],
    ['command: unlock', /command unlock ends with ok; none reached the lock/],
    ['connected: true', /; its connections: from 08:10:00 to 08:10:50/],
    ['silent: true', /; connected from 08:10:00 to 08:10:50/],
    ['ping: REASON_THEFT\n    at_most: 1\n  - next: REASON_STATE_PING', /; the ping before it was not found/],
  ];
  // The valid file up to its expectations, so that each test expects one thing.
  const [expectingNothing = ''] = VALID_FILE.split('  - ping:');
  for (const [text, expectedError] of rows) {
    const scenario = await parseScenario(`${expectingNothing}  - ${text}\n`, 'mine.yaml');
    const unmetTexts = unmet(play(scenario));
    t.equal(unmetTexts.length, 1, text);
    t.match(unmetTexts[0], expectedError, text);
  }
  const metExpectations = [
    'exactly: [REASON_STATE_PING x2, REASON_CLOSE_CONNECTION]',
    'exactly: [REASON_STATE_PING repeated, REASON_CLOSE_CONNECTION]',
    'ping: REASON_STATE_PING gps\n    with: { near: home, speed: 0 }',
    'ping: REASON_THEFT\n    at_most: 0',
    'connected: true\n    after: opened\n    until: opened + 50 s',
    'silent: true\n    after: opened + 1 min',
  ];
  for (const text of metExpectations) {
    const scenario = await parseScenario(`${expectingNothing}  - ${text}\n`, 'mine.yaml');
    t.same(unmet(play(scenario)), [], text);
  }
});

t.test('docs/scenarios.md: each example passes, and each verb and key is documented', async (t) => {
  const page = readFileSync(path.join(root, 'docs/scenarios.md'), 'utf8');
  const examples = [...page.matchAll(/```yaml\n(# scenario: .*\n[\s\S]*?)```/g)].map(([, text]) => text ?? '');
  t.equal(examples.length, 3);
  for (const text of examples) {
    const scenario = await parseScenario(text, 'docs/scenarios.md');
    const played = play(scenario);
    t.same(unmet(played), [], text.slice(0, text.indexOf('\n')));
    t.same(
      played.run.findings().filter(({ rule, severity }) => severity === 'violation' || !scenario.warnings.has(rule)),
      [],
    );
  }
  const row = ({ word, forms, sentence }: Verb): string => `| \`${word}\` | ${forms} | ${sentence} |`;
  const verbs = VERBS.filter(({ word }) => word !== 'wait').map(row);
  t.same(page.split('\n| verb | typed as | what happens |\n|---|---|---|\n')[1]?.split('\n\n')[0]?.split('\n'), verbs);
  t.ok(page.replaceAll('\n', ' ').includes(COMMAND_FORMS), 'the forms of commands are documented');
  const { properties } = scenarioJsonSchema() as { properties: Record<string, { items?: { properties?: object } }> };
  const parts = [properties.events, properties.expect].flatMap((list) => Object.keys(list?.items?.properties ?? {}));
  for (const key of [...Object.keys(properties), ...parts])
    t.ok(new RegExp(`\`[^\`\n]*\\b${key}\\b[^\`\n]*\``).test(page), `the key ${key}`);
});

interface CommandOutput {
  readonly code: number | null | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

async function lockgate(args: readonly string[]): Promise<CommandOutput> {
  const program = await runLockgate([...args]);
  return { code: program.exit?.code, stdout: program.stdout.join('\n'), stderr: program.stderr.join('\n') };
}

t.test('the command line lists, prints and plays scenarios, with the right exit codes', async (t) => {
  const list = await lockgate(['sim', 'scenarios', '--json']);
  t.same(
    JSON.parse(list.stdout).scenarios.map(({ name }: { name: string }) => name),
    BUILT_IN,
  );
  const printed = await lockgate(['sim', 'scenarios', 'theft']);
  t.equal(printed.stdout.trimEnd(), readFileSync(builtInFile('theft'), 'utf8').trimEnd());
  const mine = path.join(folder, 'mine.yaml');
  writeFileSync(mine, printed.stdout);
  const out = path.join(folder, 'theft.jsonl');
  const run = await lockgate(['sim', 'run', '--virtual', '--scenario', mine, '--out', out]);
  t.match(run, { code: 0, stdout: /✓ line 18 .*REASON_THEFT cellular.*\n[\s\S]*6 of 6 expectations met/ });
  const again = path.join(folder, 'again.jsonl');
  const command = (/^Repeat with: lockgate (.*)$/m.exec(run.stdout)?.[1] ?? '').split(' ');
  t.equal((await lockgate(command.map((word) => (word === out ? again : word)))).code, 0);
  t.ok(readFileSync(again).equals(readFileSync(out)), 'the printed command repeats the run byte for byte');
  t.equal((await lockgate(['trace', 'check', out, '--fail-on', 'warning'])).code, 0);
  // A lock reports a theft only after more than 6 s of motion, so 5 s are too short.
  writeFileSync(mine, printed.stdout.replace('within: 15 s', 'within: 5 s'));
  const failed = await lockgate(['sim', 'run', '--virtual', '--scenario', mine, '--json']);
  t.equal(failed.code, 1);
  t.match(JSON.parse(failed.stdout), { scenario: 'theft', passed: false, findings: {}, seed: '1', virtual: true });
  t.match(JSON.parse(failed.stdout).expectations[1], { line: 18, met: false, seen: /08:10:06.001, 6.001 s after/ });
  const buggy = await lockgate(['sim', 'run', '--virtual', '--scenario', 'airplane', '--bug', 'talks-in-airplane']);
  t.match(buggy, { code: 1, stdout: /rule airplane-silence \(violation\) was broken/ });
});

t.test('the command line exits with 2 for a mistake in a file, and names file and line', async (t) => {
  const mine = path.join(folder, 'wrong.yaml');
  writeFileSync(mine, VALID_FILE.replace('battery: 80', 'batery: 80').replace('within: 1 s', 'witin: 1 s'));
  const wrong = await lockgate(['sim', 'run', '--virtual', '--scenario', mine]);
  t.match(wrong, {
    code: 2,
    stderr: /wrong.yaml:8: there is no key "batery"[\s\S]*wrong.yaml:16: there is no key "witin"/,
  });
  const rows: [string[], RegExp][] = [
    [['--virtual', '--scenario', 'thef'], /no scenario "thef": expected a file, or one of airplane, commute/],
    [['--virtual', '--scenario', './none.yaml'], /none.yaml can't be read/],
    [['--virtual', '--scenario', 'theft', '--locks', '3'], /--scenario.*cannot be used with option '--locks/],
    [['--virtual', '--scenario', 'theft', '--route', 'x.gpx'], /--scenario.*cannot be used with option '--route/],
    [['--virtual', '--scenario', 'theft', '--around', '1,2'], /--scenario.*cannot be used with option '--around/],
    [['--scenario', 'theft', '--out', 'x'], /--out and --world are for --virtual runs only/],
  ];
  for (const [args, expectedError] of rows)
    t.match(await lockgate(['sim', 'run', ...args]), { code: 2, stderr: expectedError });
});

t.test('over MQTT with a gateway each short scenario passes, with the same pings in the same order', async (t) => {
  // The month lasts too long for this test; test/long/scenarios.test.ts plays it.
  const names = BUILT_IN.filter((name) => name !== 'month');
  for (const outcome of await playSynchronised(t, names)) checkLiveOutcome(t, outcome);
});

t.test('over MQTT with an accelerated clock, as on the command line, a scenario passes', async (t) => {
  const gateway = await testGateway(t, { speed: 60 });
  const short = VALID_FILE.replace('1 h', '2 min').replace("'08:10'", '+5 s');
  writeFileSync(path.join(folder, 'short.yaml'), `${short}  - next: REASON_STATE_PING gps\n  - never: REASON_THEFT\n`);
  const operatorFlags = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
  const args = ['sim', 'run', '--scenario', path.join(folder, 'short.yaml'), '--speed', '60', ...operatorFlags];
  t.match(await lockgate(args), { code: 0, stdout: /3 of 3 expectations met, 3 pings; no findings/ });
  const mqttFlags = [
    '--gateway',
    `mqtt://127.0.0.1:${gateway.mqttPort}`,
    '--secrets',
    path.join(folder, 'secrets.csv'),
  ];
  writeFileSync(path.join(folder, 'secrets.csv'), 'A4:C1:38:00:00:01,none');
  const refused = await lockgate(['sim', 'run', '--scenario', 'phone-unlock', ...mqttFlags]);
  t.match(refused, { code: 2, stderr: /phone-unlock.yaml:\d+: "phone unlock" needs the operator’s interface/ });
});

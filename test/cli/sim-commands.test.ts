// `lockgate sim` as a separate process: virtual runs that write files, and live runs against a real gateway.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import t from 'tap';
import type { SimFlags } from '../../cli/commands/sim/flags.js';
import { runSim } from '../../cli/commands/sim/run.js';
import { checkFile } from '../../cli/commands/trace/check/file-check.js';
import { EXIT_CODE, exitCodeOf } from '../../cli/terminal/exit-codes.js';
import { BUGS } from '../../firmware-sim/faults/bugs.js';
import { FAULTS } from '../../firmware-sim/faults/faults.js';
import { fleetMacs } from '../../firmware-sim/fleet/fleet.js';
import type { Gateway } from '../../gateway/gateway.js';
import type { UplinkTaken } from '../../gateway/lock-events.js';
import { UNNAMED_LOCK } from '../../proto/trace/trace.js';
import { traceHeaderLine } from '../../proto/trace/writer.js';
import { formatMac } from '../../proto/wire/mac.js';
import { LOCKGATE, Program, runLockgate } from '../helpers/cli/program.js';
import { MERCHANT, testGateway, testMac } from '../helpers/gateway/test-gateway.js';
import { findingsIn } from '../helpers/sim/judged-run.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const folder = tempFolder(t);
const pathOf = (name: string): string => path.join(folder, name);
const VIRTUAL = ['sim', 'run', '--virtual'];

/** The exit code and output of a command. */
interface CommandResult {
  readonly code: number | null | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `lockgate` to its end. */
async function lockgate(...args: string[]): Promise<CommandResult> {
  const program = await runLockgate([...args]);
  return { code: program.exit?.code, stdout: program.stdout.join('\n'), stderr: program.stderr.join('\n') };
}

t.test('help has an example, and sim bugs and sim faults print tables', async (t) => {
  for (const command of ['run', 'bugs', 'faults']) {
    const help = await lockgate('sim', command, '--help');
    t.match(help, { code: 0, stdout: new RegExp(`Example:\n  \\$ lockgate sim ${command}`) });
  }
  const bugs = await lockgate('sim', 'bugs');
  t.equal(bugs.code, 0);
  for (const { name, rule } of BUGS)
    t.ok(bugs.stdout.split('\n').some((line) => line.startsWith(name) && line.includes(rule ?? 'no rule')));
  t.same((await lockgate('sim', 'run', '--list-bugs')).stdout, bugs.stdout);
  const faults = JSON.parse((await lockgate('sim', 'faults', '--json')).stdout);
  t.same(faults, { faults: FAULTS });
  t.same(JSON.parse((await lockgate('sim', 'bugs', '--json')).stdout).bugs[0], {
    name: 'talks-in-airplane',
    rule: 'airplane-silence',
    severity: 'violation',
    also: ['close-missing'],
    sentence: BUGS[0]?.sentence,
    shows: BUGS[0]?.shows,
    virtual_only: false,
  });
});

t.test('a virtual run with the same seed gives the same bytes, and a trace without findings', async (t) => {
  const files = new Map<string, string>();
  for (const seed of ['7', 'eight']) {
    const options = ['--locks', '6', '--days', '2', '--seed', seed, '--mix', 'mid=2,high+ride=1', '--fault', 'delay'];
    const [first, second, gzipped] = [
      pathOf(`${seed}.jsonl`),
      pathOf(`${seed}-again.jsonl`),
      pathOf(`${seed}.jsonl.gz`),
    ];
    const run = await lockgate(...VIRTUAL, ...options, '--out', first);
    t.match(run, { code: 0, stderr: new RegExp(`^seed ${seed}, 6 locks, 2 days`) });
    t.match(run.stdout, new RegExp(`^seed ${seed}, 6 locks, 2 days, .*: [\\d,]+ uplinks over [\\d,]+ connections`));
    const command = /^Repeat with: lockgate (.*)$/m.exec(run.stdout)?.[1] ?? '';
    const repeated = command.split(' ').map((word) => (word === first ? second : word));
    t.match(await lockgate(...repeated), { code: 0 });
    t.ok(readFileSync(first).equals(readFileSync(second)), 'the printed command repeats the run, byte for byte');
    t.match(await lockgate(...VIRTUAL, ...options, '--out', gzipped), { code: 0 });
    t.ok(gunzipSync(readFileSync(gzipped)).equals(readFileSync(first)), 'the same text, gzipped');
    const checked = await lockgate('trace', 'check', gzipped, '--json');
    t.match(JSON.parse(checked.stdout), { violations: 0, files: [{ locks: 6 }] });
    t.equal(checked.code, 0);
    files.set(seed, readFileSync(first, 'utf8'));
  }
  t.not(files.get('7'), files.get('eight'));
  const header = JSON.parse(files.get('7')?.split('\n')[0] ?? '');
  t.match(header, { trace: 'lockgate', version: 1, note: /^lockgate sim run --virtual --locks 6 --days 2 --seed 7/ });
  const modes = Object.values<{ power: { mode: string; ride_tracking: boolean } }>(header.locks).map(
    ({ power }) => power,
  );
  t.equal(
    modes.filter(({ mode, ride_tracking }) => mode === 'HIGH' && ride_tracking).length,
    2,
    'the mix is in the header',
  );
});

t.test('--jobs simulates in several threads, with the same bytes and counts', async (t) => {
  const options = ['--locks', '5', '--days', '9', '--seed', 'jobs', '--world', '--bug', 'clock-ahead:2'];
  // 9 days are more than one chunk: a chunk has at most a week.
  const run = async (...more: string[]) => {
    const file = pathOf(`jobs-${more.at(-1)}.jsonl`);
    const { code, stdout } = await lockgate(...VIRTUAL, ...options, ...more, '--out', file, '--json');
    const { connections, uplinks, bug_locks } = JSON.parse(stdout);
    return { code, connections, uplinks, bug_locks, bytes: readFileSync(file, 'utf8') };
  };
  const expected = await run();
  t.equal(expected.code, 0);
  for (const jobs of ['2', '3', '9']) t.same(await run('--jobs', jobs), expected);
  const counted = await lockgate(...VIRTUAL, ...options, '--jobs', '2', '--json');
  const { connections, uplinks } = expected;
  t.match(JSON.parse(counted.stdout), { connections, uplinks, out: null });
  t.match(JSON.parse((await lockgate(...VIRTUAL, ...options, '--json')).stdout), { connections, uplinks, out: null });
  const together = await lockgate(...VIRTUAL, '--locks', '3', '--days', '0.1', '--fault', 'delay', '--jobs', '2');
  t.match(together, { code: 0, stderr: /affect each other: it has one thread/ });
  t.match(await lockgate('sim', 'run', '--locks', '1', '--jobs', '2'), { code: 2, stderr: /--virtual runs only/ });
});

t.test('a virtual run prints a JSON summary; a pipe gets only the trace', async (t) => {
  const options = ['--locks', '3', '--days', '0.5', '--seed', "it's", '--pace', 'lively', '--bug', 'clock-ahead:1'];
  const run = await lockgate(...VIRTUAL, ...options, '--json');
  t.equal(run.stderr, '');
  const summary = JSON.parse(run.stdout);
  t.match(summary, {
    seed: "it's",
    virtual: true,
    locks: 3,
    days: 0.5,
    start: '2026-01-05T00:00:00Z',
    pace: 'lively',
    mix: null,
    route: null,
    around: null,
    bugs: ['clock-ahead:1'],
    faults: [],
    out: null,
    repeat: `lockgate sim run --virtual --locks 3 --days 0.5 --seed 'it'\\''s' --pace lively --bug clock-ahead:1`,
  });
  const piped = await lockgate(...VIRTUAL, ...options, '--json', '--out', '-');
  t.match(JSON.parse(piped.stderr), { ...summary, out: '-', repeat: /--out -$/, seconds: Number });
  const lines = piped.stdout.split('\n');
  const pings = lines.filter((line) => line.includes('"event":"ping"'));
  t.equal(summary.uplinks, pings.length);
  const found = findingsIn(lines).filter(({ rule }) => rule === 'clock-ahead');
  t.ok(found.length > 0 && new Set(found.map(({ mac }) => mac)).size === 1, 'one lock has the bug');
  writeFileSync(pathOf('bug.jsonl'), lines.join('\n'));
  t.equal((await lockgate('trace', 'check', pathOf('bug.jsonl'), '--fail-on', 'warning')).code, 1);
});

t.test('--bug prints which locks have the bug, and warns if it can hardly show in the run', async (t) => {
  const run = (...more: string[]) => lockgate(...VIRTUAL, '--locks', '6', ...more);
  const some = await run('--days', '1', '--mix', 'mid', '--bug', 'no-period-gps:2', '--bug', 'no-network-pings');
  t.match(
    some.stderr,
    // Simulated locks have MACs that start with A6.
    /^Bug no-period-gps: 2 of 6 locks, A6(:[0-9A-F]{2}){5}, A6(:[0-9A-F]{2}){5}; breaks gps-missing\.$/m,
  );
  t.match(
    some.stderr,
    /^Bug no-network-pings: all 6 locks, (A6[0-9A-F:]{15}(, )?){5} and 1 more; breaks network-ping-/m,
  );
  t.match(
    some.stderr,
    /^Warning: no-network-pings can hardly show here: .* in HIGH or recovery mode \(--mix high\)\.$/m,
  );
  t.notMatch(some.stderr, /Warning: no-period-gps/);
  const warnings: readonly [string, RegExp, ...string[]][] = [
    ['no-ride-gps', /no lock with the bug starts with ride tracking/, '--mix', 'mid'],
    ['theft-while-unlocked', /a ride sends nothing \(--mix mid\)/, '--mix', 'airplane'],
    ['theft-while-unlocked', /over 10 h \(--days 0\.5\)/, '--mix', 'mid', '--days', '0.2'],
    ['no-theft-gps', /about one in 80 days of a lock \(--pace lively\)/, '--mix', 'mid'],
    ['talks-in-airplane', /--mix airplane/, '--mix', 'mid'],
    ['talks-on-empty', /--mix low-battery/, '--mix', 'mid'],
    ['sleeps-in-window', /in HIGH \(--mix high\)/, '--mix', 'mid'],
    ['sleeps-in-recovery', /--mix recovery/, '--mix', 'mid'],
    ['network-pings-in-mid', /in MID \(--mix mid\)/, '--mix', 'high'],
    ['ignores-commands', /sends no commands \(use --scenario/, '--mix', 'high'],
    ['forgets-period', /over 25 h \(--days 1\.1\)/, '--mix', 'mid'],
  ];
  for (const [bug, warning, ...more] of warnings) {
    const { bug_locks: notes } = JSON.parse((await run(...more, '--bug', bug, '--json')).stdout);
    t.match(notes, [{ bug, locks: { length: 6 }, warning }], bug);
  }
  for (const [bug, ...more] of [
    ['no-theft-gps', '--pace', 'lively'],
    ['no-ride-gps', '--mix', 'mid+ride'],
    ['sleeps-in-window', '--mix', 'high'],
    ['forgets-period', '--days', '1.1'],
  ]) {
    const { bug_locks: notes } = JSON.parse((await run(...more, '--bug', bug as string, '--json')).stdout);
    t.equal(notes[0].warning, null, `${bug} ${more.join(' ')}`);
  }
  const scenario = await lockgate('sim', 'run', '--virtual', '--scenario', 'theft', '--bug', 'no-theft-gps');
  t.match(scenario, { code: 1, stderr: /^Bug no-theft-gps: .*; no rule detects it\.$/m }, 'but the scenario fails');
});

t.test('a virtual run follows --route and --around, and the printed command repeats it', async (t) => {
  writeFileSync(
    pathOf('way.gpx'),
    '<gpx><rte><rtept lat="-33.9" lon="151.2"/><rtept lat="-33.91" lon="151.2"/></rte></gpx>',
  );
  const options = ['--locks', '1', '--days', '0.1', '--route', pathOf('way.gpx'), '--around', '-33.8,151.1'];
  const run = await lockgate(...VIRTUAL, ...options, '--out', pathOf('way.jsonl'));
  t.match(run, { code: 0, stderr: /along .*way.gpx, around -33.8,151.1/ });
  t.match(run.stdout, new RegExp(`Repeat with: .* --route ${pathOf('way.gpx')} --around -33.8,151.1 --out`));
  const pings = readFileSync(pathOf('way.jsonl'), 'utf8')
    .split('\n')
    .filter((line) => line.includes('"latitude"'))
    .map((line) => JSON.parse(line).ping);
  t.ok(
    pings.some(({ reason }) => reason === 'REASON_UNLOCKED_PING'),
    'the bicycle is ridden at once, with ride tracking',
  );
  for (const { latitude, longitude } of pings) {
    t.ok(latitude < -33.899 && latitude > -33.911, `${latitude}`);
    t.ok(Math.abs(longitude - 151.2) < 0.001, `${longitude}`);
  }
  const vienna = await lockgate(...VIRTUAL, '--locks', '1', '--days', '1', '--around', '48.21,16.37', '--out', '-');
  t.match(vienna.stdout, /"latitude":48\.\d+,"longitude":16\.\d+/);
});

t.test('--world adds world events to the trace and does not change findings', async (t) => {
  const options = ['--locks', '4', '--days', '1', '--seed', '3', '--pace', 'lively', '--start', '2025-06-01T12:00:00Z'];
  await lockgate(...VIRTUAL, ...options, '--out', pathOf('plain.jsonl'));
  await lockgate(...VIRTUAL, ...options, '--world', '--out', pathOf('world.jsonl'));
  const read = (name: string): string[] => readFileSync(pathOf(name), 'utf8').trimEnd().split('\n').slice(1);
  const [plain, withWorld] = [read('plain.jsonl'), read('world.jsonl')];
  const isWorld = (line: string): boolean => line.includes('"event":"world"');
  t.same(
    withWorld.filter((line) => !isWorld(line)),
    plain,
    'what a gateway sees is the same',
  );
  const members = new Set(withWorld.filter(isWorld).flatMap((line) => Object.keys(JSON.parse(line))));
  for (const member of ['moving', 'lock_state', 'coverage', 'fix', 'battery_percent'])
    t.ok(members.has(member), member);
  t.equal(JSON.parse(plain[0] ?? '').at, '2025-06-01T12:00:00.000Z');
  t.match(JSON.parse(plain.at(-1) ?? ''), { at: '2025-06-02T12:00:00.000Z', event: 'tick' });
  const [findingsOfPlain, findingsWithWorld] = ['plain.jsonl', 'world.jsonl'].map((name) =>
    findingsIn(readFileSync(pathOf(name), 'utf8').trimEnd().split('\n')).map(({ mac, message }) => [mac, message]),
  );
  t.same(findingsWithWorld, findingsOfPlain);
});

t.test('trace check can read the header of the largest virtual run', async (t) => {
  // As many locks as --locks allows; the text is the seed of their MACs.
  const macs = fleetMacs('many', 100_000);
  writeFileSync(
    pathOf('many.jsonl'),
    traceHeaderLine({ note: '', locks: new Map(macs.map((mac) => [mac, UNNAMED_LOCK])) }),
  );
  t.match(await checkFile(pathOf('many.jsonl'), { ignore: [] }), { locks: 100_000, pings: 0 });
});

t.test('a wrong option is exit code 2 with a sentence', async (t) => {
  const wrong: [string[], RegExp][] = [
    [['--locks', '0'], /--locks <n>.*1 to 100000/],
    [['--days', '-1'], /--days <n>.*above 0/],
    [['--speed', '2'], /--virtual' cannot be used with option '--speed/],
    [['--fault', 'rain'], /no fault "rain": expected all or one of lost-connect/],
  ];
  for (const [args, message] of wrong)
    t.match(await lockgate(...VIRTUAL, ...args), { code: 2, stderr: message }, args.join(' '));
  const noGateway = ['--gateway', 'http://127.0.0.1:9', '--token', 'x'];
  t.match(await lockgate('sim', 'run', ...noGateway), { code: 3, stderr: /no gateway at http:\/\/127.0.0.1:9/ });
});

/** An interruption that never happens. */
const NEVER_INTERRUPTED = {
  signal: new AbortController().signal,
  exitCode: 130,
  happened: new Promise<void>(() => undefined),
};
/** The flags of a run with default values. */
const PLAIN: SimFlags = { seed: '1', pace: 'everyday', speed: 1, bug: [], fault: [], token: 'x' };

t.test('a run refuses wrong combinations of flags with a reason', async (t) => {
  const good = '<gpx><rte>\n<rtept lat="48.2" lon="16.3"/><rtept lat="48.21" lon="16.3"/></rte></gpx>';
  writeFileSync(pathOf('good.gpx'), good);
  writeFileSync(pathOf('bad.gpx'), good.replace('48.2"', '95"'));
  const refused: [Partial<SimFlags>, RegExp][] = [
    [{ virtual: true, mix: 'low=1' }, /"low" is unknown: expected parts such as/],
    [{ virtual: true, mix: 'mid+high=1' }, /"mid\+high" has two modes: expected parts such as/],
    [{ virtual: true, bug: ['typo'] }, /no bug "typo": expected one of talks-in-airplane/],
    [{ virtual: true, start: 'today' }, /--start is "today": expected a date such as/],
    [{ virtual: true, start: '9999-12-31T12:00:00Z' }, /within the years 1970–9999/],
    [{ virtual: true, json: true, out: '/nonexistent/x.jsonl' }, /\/nonexistent\/x.jsonl can't be written/],
    [{ virtual: true, out: '/dev/full' }, /\/dev\/full can't be written: ENOSPC/],
    [{ out: 'x' }, /--out is for --virtual runs only: .*trace record/],
    [{ start: 'x' }, /--start is for --virtual runs only/],
    [{ world: true }, /--world is for --virtual runs only/],
    [{ bug: ['closes-too-late'] }, /--bug closes-too-late is for --virtual runs only/],
    [{ route: '/nonexistent.gpx' }, /\/nonexistent.gpx can't be read/],
    [{ virtual: true, route: '/dev/zero' }, /\/dev\/zero is too large: expected at most 33554432 bytes/],
    [{ virtual: true, scenario: '/dev/zero' }, /\/dev\/zero is too large: expected at most 262144 bytes/],
    [{ virtual: true, route: pathOf('bad.gpx') }, /bad.gpx:2: lat is "95": expected degrees from -90 to 90/],
    [{ virtual: true, around: '95,4' }, /--around is "95,4": expected LAT,LON in degrees such as 52.37,4.89/],
    [{ virtual: true, around: '52.37' }, /--around is "52.37": expected LAT,LON/],
    [{ virtual: true, around: '1,1', route: pathOf('good.gpx') }, /--around is 1,1: expected a point within 100 km of/],
    [{ gateway: 'ftp://a' }, /--gateway is "ftp:\/\/a": expected mqtt:\/\/host:port/],
    [{ gateway: 'mqtt://a', ca: 'x' }, /--ca requires --gateway mqtts/],
    [{ ca: 'x' }, /--ca requires --gateway mqtts/],
    [{ gateway: 'mqtts://a', ca: '/nonexistent.pem' }, /nonexistent.pem can't be read/],
    [{ locks: 10_001 }, /at most 10,000 locks live/],
    [{ secrets: '/nonexistent.csv' }, /\/nonexistent.csv can’t be read/],
  ];
  for (const [flags, message] of refused) {
    const error = await runSim({ ...PLAIN, ...flags }, NEVER_INTERRUPTED).catch((thrown: unknown) => thrown);
    t.match(error, { message }, JSON.stringify(flags));
    t.equal(exitCodeOf(error), EXIT_CODE.badInput);
  }
});

/** Flags that name a gateway's operator interface. */
function operatorFlags(gateway: Gateway): string[] {
  return ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
}

/** Resolves when the gateway has received enough uplinks from now on. */
function waitForUplinks(gateway: Gateway, isEnough: (uplinks: readonly UplinkTaken[]) => boolean): Promise<void> {
  const uplinks: UplinkTaken[] = [];
  return new Promise((resolve) => {
    const collect = (uplink: UplinkTaken): void => {
      uplinks.push(uplink);
      if (!isEnough(uplinks)) return;
      gateway.events.off('uplink', collect);
      resolve();
    };
    gateway.events.on('uplink', collect);
  });
}

const macsOf = (uplinks: readonly UplinkTaken[]): Set<string> => new Set(uplinks.map(({ mac }) => mac));

/** Runs a live fleet until the gateway has received enough uplinks, then sends Ctrl-C. */
async function runUntil(
  gateway: Gateway,
  args: readonly string[],
  isEnough: (uplinks: readonly UplinkTaken[]) => boolean,
): Promise<CommandResult> {
  const enough = waitForUplinks(gateway, isEnough);
  const run = new Program(t, process.execPath, [LOCKGATE, 'sim', 'run', ...args, '--json']);
  await enough;
  run.kill('SIGINT');
  const { code } = await run.waitForExit();
  return { code, stdout: run.stdout.join('\n'), stderr: run.stderr.join('\n') };
}

t.test('a live run adds locks as simulated, connects and counts; a second run repeats no uplink number', async (t) => {
  const gateway = await testGateway(t);
  const options = ['--locks', '8', '--mix', 'recovery', '--seed', 'live', '--merchant', MERCHANT];
  for (const run of ['the first', 'a second']) {
    const ended = await runUntil(
      gateway,
      [...operatorFlags(gateway), ...options],
      (uplinks) => macsOf(uplinks).size === 8,
    );
    t.equal(ended.code, 0, `${run} run without --days ends normally at Ctrl-C`);
    const summary = JSON.parse(ended.stdout);
    t.match(summary, { seed: 'live', virtual: false, locks: 8, speed: 1, connections: 8, lost: 0, refused: 0 });
    // `kept` are uplinks that the locks still had to send at the end.
    t.ok(summary.acknowledged + summary.kept >= 8 && summary.sent >= 8, JSON.stringify(summary));
    t.same(summary.findings, {}, 'nothing is found');
    t.ok(
      Number.isInteger(summary.memory_bytes_per_lock) && summary.memory_bytes_per_lock >= 0,
      'the memory per lock is a number of bytes',
    );
  }
  const devices = await gateway.store.listDevices();
  t.equal(devices.length, 8);
  t.ok(devices.every(({ device }) => device.simulated));
});

t.test('a live run needs only secrets and an MQTT address, and ends after --days or Ctrl-C', async (t) => {
  const gateway = await testGateway(t);
  const macs = [1, 2, 3].map(testMac);
  const rows = ['mac,secret'];
  for (const mac of macs) {
    const { secret } = await gateway.accounts.addDevice({ mac, merchant: MERCHANT });
    rows.push(`${formatMac(mac)},${secret}`);
  }
  writeFileSync(pathOf('locks.csv'), rows.join('\n'));
  const flags = [
    '--gateway',
    `mqtt://127.0.0.1:${gateway.mqttPort}`,
    '--secrets',
    pathOf('locks.csv'),
    '--mix',
    'recovery',
  ];
  t.match(await lockgate('sim', 'run', ...flags, '--locks', '4'), {
    code: 2,
    stderr: /--locks is 4.*the secrets of 3/,
  });
  const interrupted = await runUntil(gateway, [...flags, '--days', '1'], (uplinks) => macsOf(uplinks).size === 3);
  t.equal(interrupted.code, 130, 'Ctrl-C came before the end of --days');
  t.match(JSON.parse(interrupted.stdout), { locks: 3, connections: 3, findings: null });
  // About a second.
  const complete = await lockgate('sim', 'run', ...flags, '--days', '0.00001');
  t.match(complete, {
    code: 0,
    stdout:
      /^seed 1, 3 locks, 0.00001 days, 1 × speed, .*findings unknown\nMemory: [\d,]+ bytes per lock\nRepeat with: /,
  });
});

t.test('in a live run faults and bugs work over MQTT, and the gateway finds the bugs', async (t) => {
  const gateway = await testGateway(t, { speed: 600 });
  const options = ['--locks', '5', '--speed', '600', '--pace', 'lively', '--seed', '4', ...operatorFlags(gateway)];
  const bugAndFaults = ['--bug', 'poses-as-phone', '--fault', 'duplicate', '--fault', 'cut', '--fault', 'delay'];
  const isWrongSource = ({ findings }: UplinkTaken): boolean => findings.some(({ rule }) => rule === 'wrong-source');
  const run = await runUntil(gateway, [...options, ...bugAndFaults], (uplinks) => {
    return uplinks.length > 30 && uplinks.some(isWrongSource) && uplinks.some(({ repeated }) => repeated);
  });
  t.equal(run.code, 0);
  t.notMatch(run.stderr, /The gateway's clock/);
  const { acknowledged, findings, bugs } = JSON.parse(run.stdout);
  t.ok(acknowledged > 10, `${acknowledged} acknowledged`);
  t.same(bugs, ['poses-as-phone']);
  t.ok(findings['wrong-source'] > 0, JSON.stringify(findings));
});

t.test(
  'a live run with too few open files names the limit to raise, and runs the locks that can connect',
  async (t) => {
    const gateway = await testGateway(t);
    // 72 files are enough for Node to load the program, and for some locks. 80 locks and the program need 144.
    const command = [process.execPath, LOCKGATE, 'sim', 'run', ...operatorFlags(gateway), '--merchant', MERCHANT];
    const run = new Program(t, 'sh', [
      '-c',
      `ulimit -n 72; exec "$@"`,
      'sh',
      ...command,
      ...['--locks', '80', '--mix', 'recovery', '--seed', 'files'],
    ]);
    await waitForUplinks(gateway, (uplinks) => macsOf(uplinks).size >= 5);
    t.match(
      await run.waitForLine(/raise the limit/, 'stderr'),
      /80 locks .* may open only 72 files: .*"ulimit -n 144"/,
    );
    await run.waitForLine(/connects failed/, 'stderr');
    run.kill('SIGINT');
    t.same(await run.waitForExit(), { code: 0, signal: null });
    t.match(run.stdout[0], /connects failed \(this process has too many open files: raise "ulimit -n"\)/);
  },
);

t.test('a live run reports a gateway at a different speed', async (t) => {
  const gateway = await testGateway(t);
  const options = ['--locks', '1', '--days', '0.0001', '--speed', '10', '--json'];
  const run = await lockgate('sim', 'run', ...operatorFlags(gateway), ...options);
  t.match(run, { code: 0, stderr: /The gateway's clock runs at about [\d.]+ × speed but the locks at 10 ×/ });
});

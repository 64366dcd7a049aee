// `lockgate sim shell`: the lock does what the typed lines say, by protocol.md §2. The sessions are scripts on the
// standard input; completion, suggestions and history are tested by calling their functions.
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { historyFile, readHistory, writeHistory } from '../../cli/commands/sim/shell/history.js';
import { completionsOf, readShellLine, SHELL_VERBS } from '../../cli/commands/sim/shell/words.js';
import { formatMac } from '../../proto/wire/mac.js';
import { runCommand } from '../helpers/cli/command-line.js';
import { LOCKGATE, Program } from '../helpers/cli/program.js';
import { MERCHANT, testGateway, testMac } from '../helpers/gateway/test-gateway.js';
import { root } from '../helpers/house/our-files.js';
import { findingsIn } from '../helpers/sim/judged-run.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const folder = tempFolder(t);

/** The exit code and output of a session. */
interface SessionResult {
  readonly code: number | null | undefined;
  readonly lines: readonly string[];
  readonly errors: string;
}

/** Runs the shell on these lines, in the test's own process. */
async function shell(lines: readonly string[], ...flags: string[]): Promise<SessionResult> {
  const session = await runCommand(['sim', 'shell', ...flags], { stdin: `${lines.join('\n')}\n` });
  const out = session.stdout === '' ? [] : session.stdout.replace(/\n$/, '').split('\n');
  return { code: session.code, lines: out, errors: session.stderr.trimEnd() };
}

/** Runs the shell on these lines, as a separate process. */
async function shellProcess(lines: readonly string[], ...flags: string[]): Promise<SessionResult> {
  const program = new Program(t, process.execPath, [LOCKGATE, 'sim', 'shell', ...flags]);
  program.endStdin(`${lines.join('\n')}\n`);
  const { code } = await program.waitForExit();
  return { code, lines: program.stdout, errors: program.stderr.join('\n') };
}

/** Writes a route of a kilometre to the north of a point. Returns the file. */
function writeRoute(name: string, latitude: number, longitude: number): string {
  // A kilometre in degrees of latitude.
  const points = [0, 0.009].map((north) => `<rtept lat="${latitude + north}" lon="${longitude}"/>`);
  const file = path.join(folder, name);
  writeFileSync(file, `<gpx><rte>${points.join('')}</rte></gpx>`);
  return file;
}

/** An event that the shell prints with `--json`. */
interface EventJson {
  readonly at: string;
  readonly event: string;
  readonly ping?: {
    readonly ping_type: string;
    readonly reason: string;
    readonly battery_percent: number;
    readonly latitude?: number;
    readonly longitude?: number;
  };
  readonly [member: string]: unknown;
}

/** Runs the shell with `--json`, and returns its events. */
async function events(lines: readonly string[], ...flags: string[]): Promise<EventJson[]> {
  const { code, lines: out, errors } = await shell(lines, '--json', ...flags);
  t.equal(code, 0, errors);
  return out.map((line) => JSON.parse(line) as EventJson);
}

/** Seconds since the session's start, type and reason of each ping. */
function pingsOf(session: readonly EventJson[]): (readonly [number, string, string])[] {
  return session.flatMap(({ at, ping }) => {
    const seconds = Math.round((Date.parse(at) - Date.parse('2026-01-05T08:00:00Z')) / 1000);
    return ping === undefined ? [] : [[seconds, ping.ping_type, ping.reason] as const];
  });
}

t.test('ride FILE rides along the route of a file', async (t) => {
  const ridden = await events(['ride-tracking on', `ride ${writeRoute('mine.gpx', 52.37, 4.9)}`, 'state']);
  const pings = ridden.flatMap(({ ping }) => (ping?.reason === 'REASON_UNLOCKED_PING' ? [ping] : []));
  t.ok(pings.length > 2, 'the bicycle is ridden');
  for (const { latitude = 0, longitude = 0 } of pings) {
    t.ok(Math.abs(longitude - 4.9) < 0.001, 'on the route');
    t.ok(latitude > 52.369 && latitude < 52.38);
  }
  t.match(ridden.at(-1), { event: 'state' });
});

t.test(
  'steal sends a cellular ping within seconds, then a GPS ping every 10 s, and closes the connection after the theft',
  async (t) => {
    const theft = await events(['steal for 1 min', 'recover']);
    t.same(pingsOf(theft), [
      [6, 'cellular', 'REASON_THEFT'],
      // The first fix takes 30 s.
      [36, 'gps', 'REASON_THEFT'],
      [46, 'gps', 'REASON_THEFT'],
      [56, 'gps', 'REASON_THEFT'],
      // 2 min without motion, and then 20 s have passed since the last uplink.
      [180, 'close_connection', 'REASON_CLOSE_CONNECTION'],
    ]);
  },
);

t.test('after battery 9 the lock sends a close-connection ping, and then pings of a theft only', async (t) => {
  const low = await events(['battery 9', 'unlock', 'wait 2 d', 'lock', 'steal for 8 s', 'state']);
  const [closing, theft, ...more] = pingsOf(low);
  t.same(closing, [0, 'close_connection', 'REASON_CLOSE_CONNECTION']);
  t.same(theft?.slice(1), ['cellular', 'REASON_THEFT']);
  t.same(more, []);
  t.match(low.at(-1), { event: 'state', state: 'LOW_BATTERY', battery_percent: 9, connection: 'open' });
});

t.test('the lock sends pings of state changes and rides, and follows gps, coverage, airplane and reset', async (t) => {
  const ride = pingsOf(await events(['ride-tracking on', 'unlock', 'ride 300 m', 'lock']));
  t.same(ride.slice(0, 2), [
    [0, 'cellular', 'REASON_STATE_PING'],
    [30, 'gps', 'REASON_STATE_PING'],
  ]);
  t.ok(ride.some(([, type, reason]) => type === 'cellular' && reason === 'REASON_UNLOCKED_MOVEMENT'));
  t.ok(ride.some(([, type, reason]) => type === 'gps' && reason === 'REASON_UNLOCKED_PING'));
  const withoutGps = pingsOf(await events(['gps off', 'unlock']));
  t.same(withoutGps, [
    [0, 'cellular', 'REASON_STATE_PING'],
    // The search for a fix ends after 120 s, and keeps the connection open while it lasts.
    [120, 'close_connection', 'REASON_CLOSE_CONNECTION'],
  ]);
  const withoutCoverage = await events(['coverage off 10 min', 'unlock', 'state', 'wait 20 min'], '--settings', 'mid');
  const state = withoutCoverage.find(({ event }) => event === 'state');
  t.match(state, { coverage: false, buffered: 2, connection: 'none' });
  const arrived = withoutCoverage.find(({ event }) => event === 'connect');
  t.ok(Date.parse(arrived?.at ?? '') >= Date.parse('2026-01-05T08:10:00Z'), 'the lock connects when coverage returns');
  t.same(pingsOf(await events(['airplane on', 'unlock', 'steal'])), [
    [0, 'close_connection', 'REASON_CLOSE_CONNECTION'],
  ]);
  const reset = pingsOf(await events(['reset']));
  t.same(reset[0], [0, 'cellular', 'REASON_RESET']);
});

t.test('a command waits for a sleeping lock, and reaches a connected lock at once', async (t) => {
  const asleep = await events(['locate gps by command', 'unlock']);
  t.match(asleep[0], { event: 'said', text: /waits/ });
  t.ok(asleep.some(({ event }) => event === 'ack'));
  t.ok(pingsOf(asleep).some(([, , reason]) => reason === 'REASON_GPS_PING'));
  // A lock in recovery mode keeps its connection open.
  const connected = await events(['unlock by command'], '--settings', 'recovery');
  t.same(
    connected.filter(({ event }) => event !== 'said').map(({ event }) => event),
    ['connect', 'ping', 'command', 'ping', 'ack', 'ping'],
  );
});

t.test('save writes a valid trace, output to a pipe has no colours, and an error names the wrong line', async (t) => {
  const file = path.join(folder, 'session.jsonl');
  const session = await shell([
    '# a session',
    '',
    'unlock',
    'ride 400 m',
    'lock',
    'why',
    'state',
    `save ${file}`,
    'help',
  ]);
  t.equal(session.code, 0, session.errors);
  t.same(findingsIn(readFileSync(file, 'utf8').trimEnd().split('\n')), []);
  t.ok(session.lines.includes('08:00:00 ping  cell REASON_STATE_PING unlocked 80%'), 'in the format of tail');
  t.ok(session.lines.some((line) => /^state +Mode MID: /.test(line)));
  t.ok(session.lines.some((line) => line.startsWith('REASON_CLOSE_CONNECTION: nothing keeps the connection')));
  for (const { word } of SHELL_VERBS)
    t.ok(
      session.lines.some((line) => line.startsWith(`${word} `)),
      `help lists ${word}`,
    );
  t.notOk(session.lines.some((line) => line.includes('\u001b') || line.includes('lock>')));
  const wrong = await shell(['unlock', '', 'stael', 'lock']);
  t.equal(wrong.code, 2);
  t.match(wrong.errors, /^lockgate: line 3: there is no verb "stael": did you mean steal\?/);
  t.notOk(
    wrong.lines.some((line) => line.includes(' locked ')),
    'later lines are not carried out',
  );
  const far = writeRoute('far.gpx', -33.9, 151.2);
  for (const [line, expected] of [
    ['battery 101', /line 1: "battery 101" can't be read: expected battery 9/],
    ['ride to home', /line 1: there is no place "home"/],
    ['ride none.gpx', /line 1: none.gpx can't be read/],
    [`ride ${far}`, /line 1: .*far.gpx starts far away: expected within 100 km/],
    ['save /dev/full', /line 1: \/dev\/full can't be written: ENOSPC/],
    ['xyzzy', /line 1: "xyzzy" does not start with a verb: expected one of unlock, lock/],
    ['phone unlock', /line 1: the shell has no phone/],
  ] as const) {
    const refused = await shell([line]);
    t.equal(refused.code, 2, line);
    t.match(refused.errors, expected);
  }
  t.match(await shell(['unlock'], '--settings', 'middle'), { code: 2, errors: /"middle" is unknown/ });
  t.match(await shell(['unlock', 'quit', 'stael']), { code: 0 });
  t.notOk(readShellLine('unlock for ages').ok);
  t.notOk(readShellLine('save').ok);
});

t.test('the session in the guide has the output that the guide shows', async (t) => {
  const page = readFileSync(path.join(root, 'docs/guide/simulate.md'), 'utf8');
  const block = /```\n(lock> [\s\S]*?)```/.exec(page)?.[1]?.trimEnd().split('\n') ?? [];
  const typed = block.flatMap((line) => (line.startsWith('lock> ') ? [line.slice('lock> '.length)] : []));
  t.ok(typed.length >= 3);
  const { lines } = await shellProcess(typed);
  t.same(
    block.filter((line) => !line.startsWith('lock> ')),
    lines,
  );
});

t.test('completion offers words first, then complete lines, all of which the shell can parse', async (t) => {
  t.same(completionsOf('ste'), ['steal ']);
  t.same(completionsOf('coverage o'), ['coverage off', 'coverage off 10 min', 'coverage on']);
  t.ok(completionsOf('').length > SHELL_VERBS.length);
  t.same(completionsOf('xyz'), []);
  for (const { word } of SHELL_VERBS) {
    for (const line of completionsOf(`${word} `)) t.ok(readShellLine(line).ok, line);
  }
  for (const [typed, meant] of [
    ['unlokc', 'unlock'],
    ['rdie 2km', 'ride'],
    ['batery 9', 'battery'],
    // `exit` was meant, another word for quit. It is not suggested, and neither is a verb that was not meant.
    ['exti', undefined],
  ] as const) {
    const line = readShellLine(typed);
    const message = line.ok ? '' : line.error.message;
    if (meant !== undefined) t.match(message, new RegExp(`did you mean ${meant}\\?`));
    else t.notMatch(message, /did you mean unlock/);
  }
});

t.test('the history is readable by its owner only, newest first, and limited', async (t) => {
  const originalStateHome = process.env.XDG_STATE_HOME;
  const state = mkdtempSync(path.join(folder, 'state-'));
  process.env.XDG_STATE_HOME = state;
  t.teardown(() => {
    if (originalStateHome === undefined) delete process.env.XDG_STATE_HOME;
    else process.env.XDG_STATE_HOME = originalStateHome;
    rmSync(state, { recursive: true });
  });
  t.same(readHistory(), []);
  writeHistory(['steal', 'unlock']);
  t.same(readHistory(), ['steal', 'unlock']);
  t.equal(statSync(historyFile()).mode & 0o777, 0o600);
  writeHistory(Array.from({ length: 1500 }, (_, index) => `wait ${index} s`));
  t.equal(readHistory().length, 1000);
  t.equal(readHistory()[0], 'wait 0 s');
});

t.test('with a gateway, pings and commands pass over MQTT', async (t) => {
  const gateway = await testGateway(t, { speed: 60 });
  const mac = testMac(1);
  const { secret } = await gateway.accounts.addDevice({ mac, merchant: MERCHANT });
  const secrets = path.join(folder, 'secrets.csv');
  writeFileSync(secrets, `mac,secret\n${formatMac(mac)},${secret}\n`);
  const flags = ['--gateway', `mqtt://127.0.0.1:${gateway.mqttPort}`, '--secrets', secrets, '--speed', '60'];
  const live = await events(['unlock for 2 s', 'battery 9'], ...flags);
  const pings = live.flatMap(({ ping }) => (ping === undefined ? [] : [ping.reason]));
  t.same([pings[0], pings.at(-1)], ['REASON_STATE_PING', 'REASON_CLOSE_CONNECTION']);
  t.match(await shell(['unlock by command'], ...flags), { code: 2, errors: /line 1: a command needs the operator/ });
  // A wait must remove its listener: Node warns from the eleventh listener on.
  const { code, errors } = await shellProcess(
    Array.from({ length: 15 }, () => 'wait 1 s'),
    ...flags,
  );
  t.equal(code, 0);
  t.notMatch(errors, /warning|node:/i);
});

/**
 * The example locks of docs/firmware, in C and in Python, each a separate process, go through a simulated day against a
 * gateway. The judge finds no violation, the certificate of the day has no failed row, and `sim shadow`, which
 * simulates the same lock from what the gateway receives, sees no difference.
 */
import { spawnSync } from 'node:child_process';
import { type AddressInfo, createServer } from 'node:net';
import path from 'node:path';
import t, { type Test } from 'tap';
import { Hours, ManualClock, Minutes } from '../../proto/clock.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import { runCommand } from '../helpers/cli/command-line.js';
import { callOperator } from '../helpers/cli/operator-call.js';
import { Program, runProgram } from '../helpers/cli/program.js';
import { testGateway, testMac } from '../helpers/gateway/test-gateway.js';
import { root } from '../helpers/house/our-files.js';
import { type DayEvent, SteppedLock } from '../helpers/sim/stepped-lock.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

t.setTimeout(120_000);

const MIDNIGHT_MS = Date.UTC(2026, 10, 20);
/** The simulated time: a day, and the daily ping of the next. */
const RUN_TIME = Hours(29);
const HIGH = { mode: 'HIGH', high_window: { from: '12:00', to: '15:00', utc_offset_minutes: 0 } };

/**
 * The events of the day. The numbers are those of the lock's input: `move` has m/s and degrees, `ebike` has millivolts
 * (−1: none), `battery` has per cent (docs/firmware.md).
 */
const DAY: readonly DayEvent[] = [
  // A ride without ride tracking, then one with it, switched on by a command that waited for the lock.
  { at: '06:00', event: 'unlock' },
  { at: '06:00:30', event: 'move 4 300' },
  { at: '06:07', event: 'still' },
  { at: '06:10', event: 'lock' },
  { at: '07:00', command: 'set-power', parameters: { ride_tracking: true } },
  { at: '07:20', event: 'ebike 36700' },
  { at: '07:30', event: 'unlock' },
  { at: '07:30:05', event: 'move 4.5 80' },
  { at: '07:50', event: 'still' },
  { at: '07:52:30', event: 'lock' },
  { at: '08:00', event: 'ebike -1' },
  // A theft.
  { at: '09:00', event: 'move 1.2 200' },
  { at: '09:07', event: 'still' },
  // A ride without coverage: its pings arrive late.
  { at: '10:00', event: 'coverage off' },
  { at: '10:05', event: 'unlock' },
  { at: '10:06', event: 'move 5 95.5' },
  { at: '10:16', event: 'still' },
  { at: '10:20', event: 'lock' },
  { at: '10:40', event: 'coverage on' },
  // HIGH, with its window, and every command.
  { at: '11:00', command: 'set-power', parameters: HIGH },
  { at: '11:30', event: 'unlock' },
  { at: '11:35', event: 'lock' },
  { at: '12:20', command: 'locate-gps' },
  { at: '12:30', command: 'locate-cell' },
  { at: '12:35', command: 'siren', parameters: { seconds: 5 } },
  { at: '12:40', command: 'unlock' },
  { at: '12:50', command: 'lock' },
  { at: '13:20', command: 'reset' },
  { at: '13:40', command: 'set-power', parameters: { recovery: true } },
  { at: '14:05', command: 'set-power', parameters: { recovery: false } },
  { at: '14:20', event: 'coverage off' },
  { at: '14:22', event: 'coverage on' },
  { at: '14:40', event: 'modem-reset' },
  // A low battery: only a theft is reported.
  { at: '16:00', event: 'battery 9' },
  { at: '16:20', event: 'move 1.1 10' },
  { at: '16:23', event: 'still' },
  { at: '17:00', event: 'battery 80' },
  // The lock loses its power.
  { at: '18:00', restart: true },
  { at: '19:00', event: 'unlock' },
  { at: '19:02', event: 'lock' },
  // Airplane mode, on by a command, off at the lock.
  { at: '20:00', command: 'set-power', parameters: { airplane: true } },
  { at: '20:30', event: 'unlock' },
  { at: '21:00', event: 'lock' },
  { at: '22:00', event: 'airplane off' },
  // A search for a fix under a roof.
  { at: '23:00', event: 'sky off' },
  { at: '23:01', event: 'unlock' },
  { at: '23:05', event: 'sky on' },
  { at: '23:06', event: 'lock' },
];

/**
 * An example lock: its program, the arguments before the MAC, the host and the port, and those after the port. With
 * `--stepped` the lock takes its time and its sensors' values from the test.
 */
interface Example {
  readonly command: string;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** A finding of `trace check`. */
interface Finding {
  readonly rule: string;
  readonly at: string;
}

/** Rows of the certificate that this day cannot show: they need a phone, or a whole day in that state. */
const IMPOSSIBLE_ROWS = /-(recovery|high)$|^(locate-gps|locate-cell|reset-ping)-mid$|^(phone-ping|position-true)$/;

/** The rows of the certificate without a PASS, except those that this day cannot show. */
function missingRows(certificate: string): string[] {
  const { rows } = JSON.parse(certificate) as { rows: readonly { row: string; verdict: string }[] };
  return rows.flatMap(({ row, verdict }) =>
    verdict === 'PASS' || IMPOSSIBLE_ROWS.test(row) ? [] : [`${verdict} ${row}`],
  );
}

/** Runs the lock for the day while `sim shadow` watches it, then judges and certifies what the gateway stored. */
async function testDay(t: Test, mac: Mac, { command, before, after }: Example): Promise<void> {
  const folder = tempFolder(t);
  const clock = new ManualClock(MIDNIGHT_MS);
  const gateway = await testGateway(t, { runClock: clock });
  const { secret } = await gateway.accounts.addDevice({ mac });
  const gatewayFlags = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
  const lock = new SteppedLock({ test: t, gateway, clock, mac, secret, command, before, after });
  // It ends before the lock does, which runs for 29 h.
  const shadow = await runCommand(['sim', 'shadow', formatMac(mac), '--json', '--for', '28h', ...gatewayFlags], {
    whileRunning: async (running) => {
      await running.waitUntil(/"event":"begin"/);
      await lock.start();
      await lock.live(DAY, RUN_TIME);
    },
  });
  t.equal(shadow.code, 0, `${shadow.stdout}${shadow.stderr}`);
  t.match(JSON.parse(shadow.stdout.trim().split('\n').at(-1) ?? ''), { event: 'end', differences: 0 });

  const trace = path.join(folder, 'day.jsonl');
  const exported = await runCommand(['trace', 'export', '--out', trace, ...gatewayFlags]);
  t.equal(exported.code, 0, exported.stderr);
  const checked = await runCommand(['trace', 'check', trace, '--json']);
  t.equal(checked.code, 0, checked.stdout);
  const [{ findings }] = JSON.parse(checked.stdout).files as [{ findings: readonly Finding[] }];
  t.same(
    findings.map(({ rule, at }) => `${rule} ${at.slice(11, 16)}`),
    ['not-closed 14:20', 'not-closed 14:40'],
    'only the connections that the lost coverage and the modem’s restart broke',
  );
  const certified = await runCommand(['trace', 'certify', trace, '--json']);
  t.equal(certified.code, 0, certified.stdout);
  t.same(missingRows(certified.stdout), [], 'every row that the day can show has passed');
  const { body } = await callOperator(gateway, 'GET', `/commands?mac=${mac}&limit=100`);
  const { commands } = body as { commands: readonly { state: string }[] };
  t.same(
    commands.map(({ state }) => state),
    Array(DAY.filter((each) => 'command' in each).length).fill('done'),
  );
}

/** With a wrong secret, the lock waits 5 min ± 20 % before it tries again. */
async function testRefusal(t: Test, mac: Mac, { command, before, after }: Example): Promise<void> {
  const clock = new ManualClock(MIDNIGHT_MS);
  const gateway = await testGateway(t, { runClock: clock });
  await gateway.accounts.addDevice({ mac });
  const refusedMs: number[] = [];
  gateway.events.on('refused', ({ atMs }) => refusedMs.push(atMs - MIDNIGHT_MS));
  const lock = new SteppedLock({ test: t, gateway, clock, mac, secret: 'lgs_wrong', command, before, after });
  await lock.start();
  await lock.live([{ at: '00:01', event: 'unlock' }], Minutes(8));
  const [first = 0, second = 0] = refusedMs;
  t.equal(refusedMs.length, 2, `refused at ${refusedMs}`);
  t.equal(first, Minutes(1));
  t.ok(second - first >= Minutes(4) && second - first <= Minutes(6), `it waited ${second - first} ms`);
}

/** If a broker accepts the connection and refuses the subscription, the lock in C says so, without a CONNACK code. */
async function testRefusedSubscription(t: Test, program: string): Promise<void> {
  const answers = [Buffer.from([0x20, 2, 0, 0]), Buffer.from([0x90, 3, 0, 1, 0x80])];
  const broker = createServer((socket) => {
    let answered = 0;
    socket.on('error', () => undefined);
    socket.on('data', () => void socket.write(answers[answered++] ?? ''));
  });
  await new Promise<void>((resolve) => broker.listen(0, '127.0.0.1', resolve));
  t.teardown(() => broker.close());
  const { port } = broker.address() as AddressInfo;
  const flash = path.join(tempFolder(t), 'flash.bin');
  const args = [formatMac(testMac(0xf0e1d7)).replaceAll(':', ''), '127.0.0.1', `${port}`, flash, '--stepped'];
  const lock = new Program(t, program, args, { LOCK_SECRET: 'lgs_any' });
  lock.endStdin(`${MIDNIGHT_MS}\n${MIDNIGHT_MS + Minutes(1)} unlock\n`);
  await lock.waitForExit();
  t.same(lock.stderr, ['the subscription to `down` failed']);
}

const noCompiler = spawnSync('cc', ['--version']).error !== undefined && 'cc not installed (Debian: gcc)';

t.test('the lock in C compiles without warnings and goes through a day', { skip: noCompiler }, async (t) => {
  const program = path.join(tempFolder(t), 'lock');
  const flags = ['-std=c11', '-Wall', '-Wextra', '-Werror', '-o', program];
  const compiled = await runProgram(t, 'cc', [...flags, path.join(root, 'docs/firmware/lock.c'), '-lm']);
  t.equal(compiled.exit?.code, 0, compiled.stderr.join('\n'));
  const flash = path.join(tempFolder(t), 'flash.bin');
  const lock = { command: program, before: [], after: [flash, '--stepped'] };
  await testDay(t, testMac(0xf0e1d5), lock);
  await testRefusal(t, testMac(0xf0e1d6), { ...lock, after: [`${flash}.other`, '--stepped'] });
  await testRefusedSubscription(t, program);
});

/** The first Python that has paho-mqtt: Debian's package is for Debian's Python only. */
const python = ['python3', '/usr/bin/python3'].find((each) => spawnSync(each, ['-c', 'import paho.mqtt']).status === 0);
const noPython = python === undefined && 'paho-mqtt not installed (Debian: python3-paho-mqtt)';

t.test('the lock in Python goes through a day', { skip: noPython }, async (t) => {
  const flash = path.join(tempFolder(t), 'flash.json');
  const script = path.join(root, 'docs/firmware/lock.py');
  const lock = {
    command: python ?? '',
    before: ['-B', script],
    after: ['--flash', flash, '--stepped'],
  };
  await testDay(t, testMac(0xf0e1eb), lock);
  await testRefusal(t, testMac(0xf0e1ec), { ...lock, after: ['--flash', `${flash}.other`, '--stepped'] });
});

/**
 * `lockgate why` and `GET /why` explain, from what a gateway has stored, why a lock is silent, asleep or late
 * (interfaces.md §4): at present and at a past time, from a log too long to replay, and on the command line. Each
 * explanation is a list of steps with a kind, a code and a sentence. A finding is the gateway's objection to a lock.
 */
import t from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { MAX_REPLAYED_UPLINKS } from '../../../gateway/why/lock-history.js';
import { Hours, ManualClock } from '../../../proto/clock.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { type CommandOutput, runLockgate } from '../../helpers/cli/program.js';
import { requestWhy, type WhyAnswer } from '../../helpers/cli/why-answer.js';
import { MERCHANT, testBytes, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { followLink } from '../../helpers/house/document-links.js';
import { connectedLock, type TestLock } from '../../helpers/mqtt/test-lock.js';
import { readTraceLines, storeEvents } from '../../helpers/store/stored-trace.js';

/** Sends a ping and returns its event id. */
async function ping(gateway: Gateway, lock: TestLock, sequence: number): Promise<string> {
  const stored = waitForEvents(gateway, 'uplink', 1);
  await lock.send(testBytes(sequence));
  return (await stored)[0]?.eventId ?? '';
}

/** Posts to the operators' interface. @throws Error if it refuses */
const postAsOperator = async (gateway: Gateway, route: string, body: object): Promise<void> => {
  const { status, body: answer } = await callOperator(gateway, 'POST', route, body);
  if (status >= 400) throw new Error(`${route}: ${status} ${JSON.stringify(answer)}`);
};

const MAC = formatMac(testMac(5));
const HEADER = `{"trace":"lockgate","version":1,"locks":{"${MAC}":{}}}`;
const START_MS = Date.UTC(2026, 10, 20, 6);

/** A line of a trace (a file of what locks did), `seconds` after 06:00. */
function line(seconds: number, event: string, members: object = {}): string {
  return JSON.stringify({ at: new Date(START_MS + seconds * 1000).toISOString(), mac: MAC, event, ...members });
}

/** The line of a trace for a cellular ping with this reason. */
function cellularLine(seconds: number, reason: string): string {
  const members = { lock_state: 'locked', battery_percent: 80, firmware_version: '2.4.1', ebike_voltage: null };
  return line(seconds, 'ping', { ping: { ping_type: 'cellular', reason, ...members, tether_state: 'detached' } });
}

/** The trace of a lock that sends its daily ping and then loses its connection without a close-connection ping. */
const LOST_CONNECTION = [
  HEADER,
  line(0, 'connect'),
  cellularLine(1, 'REASON_PERIOD_TRACKING'),
  line(30, 'disconnect', { cause: 'dropped' }),
];

t.test('why explains a lock at a past time and now: asleep, late, and with a waiting command', async (t) => {
  const runClock = new ManualClock(START_MS);
  const gateway = await testGateway(t, { runClock });
  const { mac } = await storeEvents(gateway.store, testMac(5), readTraceLines(LOST_CONNECTION));
  runClock.advance(Hours(5));
  await postAsOperator(gateway, '/commands', { macs: [MAC], type: 'locate-gps', asked_by: 'Ada' });
  runClock.advance(Hours(1));
  const beforeTheCommand = '10:59';
  const { about, steps } = await requestWhy(gateway, MAC, beforeTheCommand);
  t.same(about, { kind: 'lock', id: MAC, mac: formatMac(mac) });
  const sentences = steps.map(({ kind, code, sentence }) => `${kind} ${code}: ${sentence}`);
  t.match(sentences, [
    'state MID: The gateway’s view then, from uplink 1/1: MID, locked, battery 80 %. Mode MID: the lock sleeps, and ' +
      'wakes for theft, its daily ping, a change of lock state, and a ride.',
    'silence asleep-period: Asleep, as the model expects in MID: its last daily ping came at ' +
      '2026-11-20T06:00:01.000Z, so the next is due by 2026-11-21T06:00:01.000Z, and it counts as late after ' +
      '2026-11-21T07:00:01.000Z (period-overdue), counted from its last daily ping at 2026-11-20T06:00:01.000Z.',
    /^connection dropped: Its last connection ended at 2026-11-20T06:00:30.000Z: the connection broke off without a/,
    'before last-uplink: The last uplink before it: a ping REASON_PERIOD_TRACKING (1/1), received at ' +
      '2026-11-20T06:00:01.000Z',
    'after nothing: Nothing has come from it since.',
    /^next asleep-period: Now: Asleep, as the model expects in MID/,
  ]);
  const command = await requestWhy(gateway, 'command:1');
  const waitText = command.steps.find(({ code }) => code === 'waits-connection')?.sentence;
  t.match(waitText, /^It waits: lock has never connected; a lock receives commands only while it is connected\.$/);
  t.match(
    (await requestWhy(gateway, MAC)).steps.find(({ code }) => code === 'open')?.sentence,
    'Command 1 (locate-gps) was not answered yet: requested at 2026-11-20T11:00:00.000Z, expires at 2026-11-21T11:00',
  );
  runClock.advance(Hours(20));
  const nextMorning = await requestWhy(gateway, MAC);
  t.match(
    nextMorning.steps.find(({ kind }) => kind === 'silence'),
    { code: 'late-period', at: '2026-11-21T07:00:01.000Z', clock: 'run', rests_on: 'protocol.md §3' },
  );
});

// The run's clock, which its locks use, may be faster than the wall clock. An uplink's key is its boot and sequence.
t.test('why explains two clocks, a moved lock, a shortened log, and two uplinks with one key', async (t) => {
  const runClock = new ManualClock(START_MS);
  const gateway = await testGateway(t, { runClock });
  const lock = await connectedLock(t, gateway, testMac(1));
  const event = await ping(gateway, lock, 1);
  await gateway.accounts.addMerchant('Basil');
  await gateway.accounts.addWebhookUrl({ url: 'http://127.0.0.1:9/hook', merchant: MERCHANT });
  const clocksAnswer = await requestWhy(gateway, event);
  t.match(clocksAnswer.steps[0], { kind: 'clocks', code: 'two' });
  t.match(
    clocksAnswer.steps[0]?.sentence,
    `Two clocks: the run’s clock, for locks, shows ${clocksAnswer.now}; the wall clock, for`,
  );
  t.not(clocksAnswer.now, clocksAnswer.wall_now);
  await gateway.accounts.devices.change(testMac(1), { merchant: 'Basil' });
  const moved = (await requestWhy(gateway, event)).steps.find(({ kind }) => kind === 'bound');
  t.match(moved, { code: 'moved', sentence: /^The lock belonged to another merchant then/ });

  const longLog = [HEADER, line(0, 'connect')];
  for (let index = 0; index <= MAX_REPLAYED_UPLINKS; index++)
    longLog.push(cellularLine(1 + index, 'REASON_NETWORK_PING'));
  await storeEvents(gateway.store, testMac(5), readTraceLines(longLog));
  runClock.advance(Hours(2));
  const cutStep = (await requestWhy(gateway, MAC)).steps[0];
  t.match(cutStep, { kind: 'bound', code: 'cut' });
  t.equal(
    cutStep?.sentence,
    'The log goes back further: only the last 2,500 uplinks and as many connection events were replayed.',
  );
  t.not((await requestWhy(gateway, `${MAC} 1/100`)).steps[0]?.kind, 'bound', 'nothing before that uplink is left out');

  const original = readTraceLines([HEADER, line(0, 'connect'), cellularLine(1, 'REASON_RESET')]);
  const otherWithSameKey = readTraceLines([HEADER, cellularLine(2, 'REASON_NETWORK_PING')]);
  const conflict = { events: [...original.events, ...otherWithSameKey.events], lock: original.lock };
  await storeEvents(gateway.store, testMac(6), conflict);
  const { status, body } = await callOperator(
    gateway,
    'GET',
    `/why?id=${encodeURIComponent(`${formatMac(testMac(6))} 1/1`)}`,
  );
  t.equal(status, 400);
  t.match((body as { detail: string }).detail, /1\/1 is 2 uplinks: use evt_A4C138000006_\S+, evt_A4C138000006_/);
});

t.test('“lockgate why” prints text or JSON, and fails with a sentence and an exit code', async (t) => {
  const runClock = new ManualClock(START_MS);
  const gateway = await testGateway(t, { runClock });
  const { findings } = await storeEvents(gateway.store, testMac(5), readTraceLines(LOST_CONNECTION));
  runClock.advance(Hours(6));
  const gatewayFlags = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
  const run = (...args: string[]): Promise<CommandOutput> => runLockgate(['why', ...args, ...gatewayFlags]);
  const id = findings.get('not-closed');
  const printed = await run(`finding:${id}`);
  t.equal(printed.exit?.code, 0, printed.stderr.join('\n'));
  const text = printed.stdout.join('\n');
  t.match(
    text,
    new RegExp(`^finding:${id}  ${MAC}\nrule-broken   It broke not-closed, a warning \\(finding:${id}\\): The`),
  );
  t.match(text, / {14}protocol.md §3; 2026-11-20T06:00:30.000Z \(5 h ago\)\n/);
  t.match(text, / {14}specification, Ping \(device message\)\n/);
  t.match(text, /in 18 h\)/, 'a future time is relative too');
  t.ok(
    printed.stdout.every((each) => each.length <= 100),
    'lines are wrapped',
  );
  const json = await run(MAC, '--at', '2h ago', '--json');
  const document = JSON.parse(json.stdout.join('\n')) as WhyAnswer;
  t.match(document, { about: { kind: 'lock', id: MAC, mac: MAC }, now: '2026-11-20T12:00:00.000Z' });
  t.same(
    document.steps.flatMap(({ link }) => followLink(link) ?? []),
    [],
    'each step’s link leads to an anchor',
  );
  for (const step of document.steps)
    t.same(Object.keys(step), ['kind', 'code', 'sentence', 'rests_on', 'link', 'at', 'clock'], step.kind);
  const deviceShow = await runLockgate(['device', 'show', MAC, ...gatewayFlags]);
  t.ok(
    deviceShow.stdout.some((each) => each.includes(`finding:${id}`)),
    'device show prints ids that “why” accepts',
  );
  const failures: readonly (readonly [args: string[], exitCode: number, message: RegExp])[] = [
    [['finding:999'], 1, /^lockgate: there is no finding 999/],
    [['A4:C1:38:00:00:99'], 1, /^lockgate: there is no lock|^lockgate: .*A4:C1:38:00:00:99/],
    [['12'], 2, /12 is ambiguous: use finding:12, command:12 or quarantine:12/],
    [['finding:1', '--at', '2h'], 2, /a time is accepted only with a MAC/],
    [[MAC, '--at', 'soon'], 2, /expected a date such as/],
    [[MAC, '--url', '1'], 2, /--url requires an event/],
  ];
  for (const [args, exitCode, message] of failures) {
    const ended = await run(...args);
    t.equal(ended.exit?.code, exitCode, args.join(' '));
    t.match(ended.stderr.join('\n'), message);
    t.same(ended.stdout, []);
  }
  const unreachable = await runLockgate(['why', MAC, '--gateway', 'http://127.0.0.1:9', '--token', 'x']);
  t.equal(unreachable.exit?.code, 3);
  t.match(unreachable.stderr.join('\n'), /no gateway at http:\/\/127\.0\.0\.1:9/);
});

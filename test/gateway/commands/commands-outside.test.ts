/**
 * Commands to locks through the gateway's public interfaces (protocol.md §1, interfaces.md §2): operators request them
 * over HTTP and on the command line, and a simulated lock executes them over MQTT.
 */
import { spawn } from 'node:child_process';
import got, { type Method } from 'got';
import t from 'tap';
import { mqttLinks } from '../../../firmware-sim/link/mqtt-link.js';
import { MemoryFlash } from '../../../firmware-sim/lock/flash.js';
import { Lock } from '../../../firmware-sim/lock/lock.js';
import { ScriptedWorld } from '../../../firmware-sim/world/world.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { TraceCheck } from '../../../proto/trace/check.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import type { TraceEvent } from '../../../proto/trace/trace.js';
import { decodeDownlink } from '../../../proto/wire/codec.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { type CommandAck, DEFAULT_POWER, type Downlink } from '../../../proto/wire/ping.js';
import { LOCKGATE } from '../../helpers/cli/program.js';
import { MERCHANT, testBytes, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import type { Teardown } from '../../helpers/store/temp-folder.js';

interface OperatorAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** Calls the operators' HTTP interface with the gateway's token. */
async function callOperators(gateway: Gateway, method: Method, path: string, json?: unknown): Promise<OperatorAnswer> {
  const answer = await got(`http://127.0.0.1:${gateway.operatorPort}${path}`, {
    method,
    headers: { authorization: `Bearer ${gateway.operatorToken}` },
    throwHttpErrors: false,
    retry: { limit: 0 },
    ...(json !== undefined && { json }),
  });
  return { status: answer.statusCode, body: JSON.parse(answer.body) };
}

/** Connects a lock over MQTT that answers each command with ok at once. `received` has the commands, in order. */
async function connectAnsweringLock(
  test: Teardown,
  gateway: Gateway,
  mac: Mac,
): Promise<{ lock: TestLock; received: Downlink[] }> {
  const { secret } = await gateway.accounts.addDevice({ mac });
  const lock = await TestLock.connect(test, gateway.mqttPort, mac, secret);
  const received: Downlink[] = [];
  let sequence = 1;
  lock.client.on('message', (_topic, payload) => {
    const downlink = decodeDownlink(payload);
    if (!downlink.ok) throw new Error(downlink.error.message);
    received.push(downlink.value);
    sequence += 1;
    const body: CommandAck = {
      kind: 'ack',
      commandId: downlink.value.id,
      result: 'ok',
      detail: '',
      highWindow: null,
    };
    void lock.send(testBytes(sequence, { body }));
  });
  await lock.client.subscribeAsync('down', { qos: 1 });
  await lock.send(testBytes(1));
  return { lock, received };
}

const MAC = testMac();

t.test('commands are requested, listed, shown and cancelled over HTTP', async (t) => {
  const gateway = await testGateway(t);
  const { received } = await connectAnsweringLock(t, gateway, MAC);
  await gateway.accounts.addDevice({ mac: testMac(2) });
  const done = waitForEvents(gateway, 'command', 1, ({ record }) => record.state === 'done');
  const siren = { type: 'siren', parameters: { seconds: 20 }, asked_by: 'ann' };
  const macs = [formatMac(MAC), testMac(2)];
  const sent = await callOperators(gateway, 'POST', '/commands', { macs, ...siren });
  t.match(sent, {
    status: 201,
    body: {
      commands: [
        { id: 1, mac: formatMac(MAC), ...siren },
        { id: 2, state: 'queued' },
      ],
    },
  });
  await done;
  t.match(received, [{ id: 1, command: { type: 'siren', seconds: 20 } }]);
  t.match(await callOperators(gateway, 'GET', '/commands/1'), {
    status: 200,
    body: { state: 'done', waits: null, sent_count: 1 },
  });
  const waits = { for: 'connection', text: 'lock has never connected', due_at: null };
  t.match(await callOperators(gateway, 'GET', `/commands?mac=${testMac(2)}`), {
    body: { commands: [{ id: 2, state: 'queued', waits }] },
  });
  t.match(await callOperators(gateway, 'GET', '/commands?state=done'), { body: { commands: [{ id: 1 }] } });
  const newest = (await callOperators(gateway, 'GET', '/commands?limit=1')).body as { commands: unknown[] };
  t.match(newest.commands, [{ id: 2 }]);
  t.equal(newest.commands.length, 1, 'no more than the limit');
  t.match(await callOperators(gateway, 'POST', '/commands/2/cancel', {}), {
    status: 200,
    body: { id: 2, state: 'cancelled' },
  });
  t.match(await callOperators(gateway, 'POST', '/commands/1/cancel', {}), {
    status: 409,
    body: { detail: /can't be cancelled: it is done/ },
  });
  // An id that is not a number is read as 0, which no command has.
  for (const [path, status, detail] of [
    ['/commands/9', 404, /no command 9/],
    ['/commands/x', 404, /no command 0/],
    ['/commands?state=lost', 400, /state is "lost": expected queued, sent/],
    ['/commands?limit=0', 400, /limit is "0": expected a number, 1 to 1000/],
    [`/commands?mac=${testMac(9)}`, 404, /no device/],
  ] as const)
    t.match(await callOperators(gateway, 'GET', path), { status, body: { detail } }, path);
  const refused = await callOperators(gateway, 'POST', '/commands', { macs: [testMac(9)], type: 'lock' });
  t.match(refused, { status: 404, body: { detail: /no device A4:C1:38:00:00:09/ } });
  t.match(await callOperators(gateway, 'POST', '/commands', []), { status: 400 });
});

t.test('a command to a connected lock that has not subscribed to down waits for the subscription', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  await callOperators(gateway, 'POST', '/commands', { macs: [MAC], type: 'locate-gps', asked_by: 'ann' });
  const waitsNow = async () => ((await callOperators(gateway, 'GET', '/commands/1')).body as { waits: object }).waits;
  const waitText = /^lock connected since 20\S+Z, has not subscribed to `down`$/;
  t.match(await waitsNow(), { for: 'subscription', text: waitText, due_at: null });
  const why = (await callOperators(gateway, 'GET', '/why?id=command:1')).body as {
    steps: { code: string; sentence: string }[];
  };
  const expectedSentence =
    /^It waits: lock connected since \S+, has not subscribed to `down`; a lock gets commands once it has/;
  t.match(why.steps.find(({ code }) => code === 'waits-subscription')?.sentence, expectedSentence);
  const sent = waitForEvents(gateway, 'command', 1, ({ record }) => record.state === 'sent');
  await lock.client.subscribeAsync('down', { qos: 1 });
  await sent;
  await lock.client.unsubscribeAsync('down');
  t.match(await waitsNow(), {
    for: 'subscription',
    text: /^lock connected since \S+, has unsubscribed from `down`$/,
  });
  const ended = waitForEvents(gateway, 'disconnected', 1);
  await lock.client.endAsync();
  await ended;
  t.match(await waitsNow(), { for: 'connection', text: /^lock not connected/ });
});

t.test('a command to a fleet must state its size, and airplane mode must be confirmed', async (t) => {
  const gateway = await testGateway(t);
  await gateway.accounts.addMerchant('Other');
  for (const number of [1, 2, 3]) await gateway.accounts.addDevice({ mac: testMac(number), merchant: MERCHANT });
  await gateway.accounts.addDevice({ mac: testMac(4), merchant: 'Other' });
  t.match(await callOperators(gateway, 'GET', `/merchants/${MERCHANT}/fleet`), {
    body: { merchant: MERCHANT, locks: 3 },
  });
  const toAllLocks = { merchant: MERCHANT, all: true, type: 'unlock' };
  const conflict = (detail: RegExp) => ({ status: 409, body: { detail } });
  t.match(
    await callOperators(gateway, 'POST', '/commands', toAllLocks),
    conflict(/Amber has 3 locks, and no expected_count was given/),
  );
  const wrong = await callOperators(gateway, 'POST', '/commands', { ...toAllLocks, expected_count: 4 });
  t.match(wrong, conflict(/Amber has 3 locks, and expected_count is 4/));
  t.match(await callOperators(gateway, 'POST', '/commands', { ...toAllLocks, merchant: 'No' }), { status: 404 });
  const airplane = { macs: [MAC], type: 'set-power', parameters: { airplane: true } };
  t.match(
    await callOperators(gateway, 'POST', '/commands', airplane),
    conflict(/nothing reaches it.*No command can switch airplane/),
  );
  t.same(
    (await callOperators(gateway, 'GET', '/commands')).body,
    { commands: [], next_cursor: null },
    'no command was queued',
  );
  const sent = (await callOperators(gateway, 'POST', '/commands', { ...toAllLocks, expected_count: 3 })).body as {
    commands: { mac: string }[];
  };
  t.same(
    sent.commands.map(({ mac }) => mac),
    [1, 2, 3].map((number) => formatMac(testMac(number))),
  );
  t.match(await callOperators(gateway, 'POST', '/commands', { ...airplane, confirm_airplane: true }), { status: 201 });
  const { body } = await callOperators(gateway, 'GET', `/devices/${MAC}`);
  t.match(body, { twin: { wanted: { airplane: true }, reported: null, differs: ['airplane'] } });
});

interface ProgramResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `lockgate …` against the gateway until it exits. */
function lockgate(gateway: Gateway, ...args: string[]): Promise<ProgramResult> {
  const environment = {
    PATH: process.env.PATH,
    LOCKGATE_GATEWAY: `http://127.0.0.1:${gateway.operatorPort}`,
    LOCKGATE_TOKEN: gateway.operatorToken,
  };
  const child = spawn(process.execPath, [LOCKGATE, ...args], { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => (stdout += chunk));
  child.stderr.on('data', (chunk) => (stderr += chunk));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, stdout, stderr })));
}

t.test('the command line sends commands and waits, lists, shows and cancels them', async (t) => {
  t.setTimeout(120_000);
  const gateway = await testGateway(t);
  const { received } = await connectAnsweringLock(t, gateway, MAC);
  const [mac, other] = [formatMac(MAC), formatMac(testMac(2))];
  await gateway.accounts.addDevice({ mac: testMac(2) });
  const run = (...args: string[]) => lockgate(gateway, 'command', ...args);
  t.match(await run('send', mac, 'unlock', '--wait'), { code: 0, stdout: `Command 1, unlock for ${mac}: done\n` });
  const powerFlags = [
    '--mode',
    'HIGH',
    '--high-window',
    '22:00-05:30',
    '--utc-offset',
    '-03:30',
    '--ride-tracking',
    'on',
  ];
  const setPower = await run('send', mac, 'set-power', ...powerFlags, '--recovery', 'off', '--wait', '--json');
  t.match(JSON.parse(setPower.stdout), { commands: [{ id: 2, state: 'done' }] });
  const highWindow = { fromMinute: 22 * 60, toMinute: 5 * 60 + 30, utcOffsetMinutes: -(3 * 60 + 30) };
  t.match(received[1], {
    command: { type: 'set-power', mode: 'HIGH', rideTracking: true, recovery: false, highWindow },
  });
  t.match(await run('send', other, 'siren', '--seconds', '5', '--expires', '1s', '--wait'), {
    code: 1,
    stdout: /Command 3, siren seconds=5 for .*: expired/,
    stderr: /Command 3: queued \(waiting: lock has never connected\)/,
  });
  t.match(await run('send', other, 'reset'), {
    code: 0,
    stdout: /Command 4, reset .*waiting: lock has never connected/,
  });
  t.match(await run('list', '--state', 'queued'), {
    code: 0,
    stdout: /4 +A4:.*reset +queued +waiting: lock has never connected/,
  });
  t.match(await run('show', '4'), {
    code: 0,
    stdout: /Command 4 {2}reset {2}A4:.*\nqueued \(waiting: lock has never conn/,
  });
  t.match(await run('cancel', '4'), { code: 0, stdout: /Command 4 \(reset for .*\) is cancelled/ });
  t.match(await run('cancel', '4'), { code: 3, stderr: /it is cancelled/ });
  const toAllLocks = ['send', 'locate-cell', '--merchant', MERCHANT, '--all'];
  t.match(await run(...toAllLocks), { code: 2, stderr: /confirm with --count 2 that all 2 locks of Amber get/ });
  t.match(await run(...toAllLocks, '--count', '3'), { code: 3, stderr: /Amber has 2 locks, and expected_count is 3/ });
  // Commands 5 and 6, one for each lock; the list has the id after the MAC.
  t.match(await run(...toAllLocks, '--count', '2'), { code: 0, stdout: /A4:C1:38:00:00:02 +6 / }, 'each lock gets one');
  const airplane = ['send', other, 'set-power', '--airplane', 'on'];
  t.match(await run(...airplane), { code: 2, stderr: /nothing reaches it.*--yes/ });
  t.match(await run(...airplane, '--yes'), { code: 0, stdout: /Command 7, set-power airplane=true/ });
  t.match(await lockgate(gateway, 'device', 'show', other), {
    code: 0,
    stdout: /wanted: airplane=true {2}\(not reported yet\)/,
  });
});

t.test('a wrong command line is refused with the reason', async (t) => {
  t.setTimeout(120_000);
  const gateway = await testGateway(t);
  await gateway.accounts.addDevice({ mac: MAC });
  const cases: readonly (readonly [string[], RegExp])[] = [
    [['unlock'], /the lock is missing/],
    [[MAC, 'open'], /type is "open": expected one of unlock/],
    [[MAC, 'siren'], /--seconds is missing/],
    [[MAC, 'unlock', '--expires', '5'], /--expires is "5": expected a span such as 90s/],
    [[MAC, 'unlock', '--at', 'dawn'], /--at is "dawn"/],
    [[MAC, 'set-power', '--high-window', '07:00'], /--high-window is "07:00"/],
    [[MAC, 'set-power', '--utc-offset', '+01:00'], /--utc-offset requires --high-window/],
    [[MAC, 'set-power', '--airplane', 'off'], /--airplane is "off": expected on\./],
    [[MAC, 'unlock', '--all'], /used together, and without MACs/],
  ];
  const answers = await Promise.all(cases.map(([args]) => lockgate(gateway, 'command', 'send', ...args)));
  for (const [index, [args, stderr]] of cases.entries()) t.match(answers[index], { code: 2, stderr }, args.join(' '));
  for (const command of ['send', 'list', 'show', 'cancel']) {
    const stdout = new RegExp(`Example:\n  \\$ lockgate command ${command}`);
    t.match(await lockgate(gateway, 'command', command, '--help'), { code: 0, stdout }, command);
  }
});

t.test('a simulated lock executes commands over MQTT, and the judge finds no violation', async (t) => {
  t.setTimeout(120_000);
  // The clock of locks, judge and deadlines runs 20 times as fast as the wall clock, so that the test is short.
  const gateway = await testGateway(t, { speed: 20 });
  const { secret, device } = await gateway.accounts.addDevice({ mac: MAC, simulated: true });
  const initialState = {
    lockState: 'locked',
    batteryPercent: 70,
    // In recovery mode the lock is always connected, so that no command waits for a connection.
    power: { ...DEFAULT_POWER, recovery: true },
    ebikeVolts: null,
    tetherState: 'unknown',
    covered: true,
    skyOpen: true,
  } as const;
  const position = { latitudeDegrees: 52.1, longitudeDegrees: 4.5, uncertaintyMeters: 6 };
  const effects: string[] = [];
  const lock = new Lock({
    mac: MAC,
    firmwareVersion: '2.4.1',
    clock: gateway.clock,
    world: new ScriptedWorld(initialState, [], { position, speedMetersPerSecond: 0, directionDegrees: 0 }),
    openLink: mqttLinks({ host: '127.0.0.1', port: gateway.mqttPort }, () => secret),
    flash: new MemoryFlash(),
    jitterSeed: 1,
    diary: (_mac, _atMs, entry) => {
      if (entry.type === 'did' && entry.effect.type !== 'publish') effects.push(entry.effect.type);
    },
  });
  t.teardown(() => lock.stop());
  const finished = waitForEvents(gateway, 'command', 6, ({ record }) => record.finishedAtMs !== null);
  const airplaneReported = waitForEvents(gateway, 'presence', 1, ({ presence }) => presence.presence === 'airplane');
  const requests = [
    { type: 'unlock' },
    { type: 'siren', parameters: { seconds: 3 } },
    { type: 'lock' },
    { type: 'locate-gps' },
    { type: 'reset' },
    { type: 'set-power', parameters: { airplane: true }, confirm_airplane: true },
  ];
  for (const request of requests)
    await callOperators(gateway, 'POST', '/commands', { macs: [MAC], expires_in: 3600, ...request });
  lock.start();
  t.same(
    (await finished).map(({ record }) => `${record.command.type} ${record.state}`),
    requests.map(({ type }) => `${type} done`),
    'all commands are done, in order',
  );
  await airplaneReported;
  t.ok(
    ['unlock', 'siren', 'tone', 'lock'].every((effect) => effects.includes(effect)),
    effects.join(' '),
  );
  const findings = (await gateway.store.readFindings(device.id, 50)).map(({ finding }) => finding);
  t.same(
    findings.filter(({ severity }) => severity === 'violation'),
    [],
  );
  await lock.stop();

  const url = `http://127.0.0.1:${gateway.operatorPort}/trace?mac=${MAC}`;
  const { body } = await got(url, { headers: { authorization: `Bearer ${gateway.operatorToken}` } });
  const { commands, acks, violations } = readTrace(body.trimEnd().split('\n'));
  t.same(commands, [1, 2, 3, 4, 5, 6], 'the trace has each command, before its answer');
  t.same(acks, [1, 2, 3, 4, 5, 6]);
  t.same(violations, [], 'the trace has no violation');
});

/** The ids of the commands and of their answers in a trace, and the rules that its locks broke. */
function readTrace(lines: readonly string[]): { commands: number[]; acks: number[]; violations: string[] } {
  const reader = new TraceReader();
  const commands: number[] = [];
  const acks: number[] = [];
  let check: TraceCheck | undefined;
  lines.forEach((line, index) => {
    const parsedLine = reader.read(line);
    if (!parsedLine.ok) throw new Error(`line ${index + 1}: ${parsedLine.error.message}`);
    // The first line is the trace's header.
    if (index === 0 || reader.header === null) return;
    const event = parsedLine.value as TraceEvent;
    if (event.event === 'command' && !commands.includes(event.id)) commands.push(event.id);
    if (event.event === 'ack' && commands.includes(event.uplink.body.commandId)) acks.push(event.uplink.body.commandId);
    check ??= new TraceCheck(POWER_MODEL, reader.header);
    check.judge(event, index + 1);
  });
  const found = check?.findings() ?? [];
  return { commands, acks, violations: found.filter((each) => each.severity === 'violation').map(({ rule }) => rule) };
}

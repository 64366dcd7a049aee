// `lockgate trace replay` against real gateways: uplinks arrive, differences are found, errors and Ctrl-C are handled.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import t, { type Test } from 'tap';
import { runReplay } from '../../../cli/commands/trace/replay/replay.js';
import type { ReplayReport } from '../../../cli/commands/trace/replay/report.js';
import type { Gateway } from '../../../gateway/gateway.js';
import type { Commit } from '../../../gateway/store/contract/log/commit.js';
import type { StoredUplink } from '../../../gateway/store/contract/log/stored-uplink.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { Days, Hours, Minutes } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { RULES } from '../../../proto/power/rules.js';
import type { TraceEvent } from '../../../proto/trace/trace.js';
import { traceEventLine, traceHeaderLine } from '../../../proto/trace/writer.js';
import { decodeUplink, encodeUplink } from '../../../proto/wire/codec.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import type { Ping, Uplink } from '../../../proto/wire/ping.js';
import { LOCKGATE, Program, runLockgate } from '../../helpers/cli/program.js';
import { MERCHANT, openGateway, testGateway, testMac, testUplink } from '../../helpers/gateway/test-gateway.js';
import { root } from '../../helpers/house/our-files.js';
import { byLength } from '../../helpers/house/test-length.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const folder = tempFolder(t);
const traces = path.join(root, 'test/traces');
/** The start of the traces that these tests write. */
const START_MS = Date.UTC(2025, 10, 20, 6);
const MAX_READ_ROWS = 1000;

type Flags = Omit<Partial<Parameters<typeof runReplay>[1]>, 'gateway' | 'token'> & { readonly operatorPort?: number };

/** The report of a replay, or its error as `code: message`. */
interface ReplayResult {
  readonly error: string;
  readonly report: ReplayReport;
}

/** The report of a replay that failed. */
const NO_REPORT: ReplayReport = {
  file: '',
  mqtt: '',
  locks: 0,
  connections: 0,
  uplinks: { sent: 0, acknowledged: 0 },
  same: false,
  differences: [],
  notes: [],
};

/** An interruption that never happens. */
const NEVER_INTERRUPTED = {
  signal: new AbortController().signal,
  exitCode: 130,
  happened: new Promise<void>(() => undefined),
};

/** Replays at full speed, in this process. `operatorPort` is by default the gateway's. */
async function replay(gateway: Gateway, file: string, { operatorPort, ...flags }: Flags = {}): Promise<ReplayResult> {
  const port = operatorPort ?? gateway.operatorPort;
  const connection = { gateway: `http://127.0.0.1:${port}`, token: gateway.operatorToken };
  try {
    const report = await runReplay(file, { ...connection, speed: 'max', ...flags }, NEVER_INTERRUPTED);
    if (report === null) throw new Error('the replay was interrupted');
    return { error: '', report };
  } catch (thrown) {
    if (!(thrown instanceof LockgateError)) throw thrown;
    return { error: `${thrown.code}: ${thrown.message}`, report: NO_REPORT };
  }
}

/** Writes a trace of these events. Returns the file. */
function traceFile(name: string, events: readonly (TraceEvent | [TraceEvent, Uint8Array])[]): string {
  const file = path.join(folder, name);
  const lines = events.map((event) => (Array.isArray(event) ? traceEventLine(...event) : traceEventLine(event)));
  writeFileSync(file, `${[traceHeaderLine({ note: '', locks: new Map() }), ...lines].join('\n')}\n`);
  return file;
}

const connect = (mac: Mac, second: number): TraceEvent => {
  return { event: 'connect', atMs: START_MS + second * 1000, mac, source: 'lock' };
};

const close = (mac: Mac, second: number, cause: 'closed' | 'dropped' | 'takeover' = 'closed'): TraceEvent => {
  return { event: 'disconnect', atMs: START_MS + second * 1000, mac, source: 'lock', cause };
};

/** A reset ping, about which no rule has a finding. */
const RESET: Ping = { ...(testUplink(1).body as Ping), reason: 'REASON_RESET' } as Ping;

function uplink(sequence: number, members: Partial<Uplink> = {}): Uplink {
  return testUplink(sequence, { timeMs: START_MS + sequence * 1000, body: RESET, ...members });
}

function ping(mac: Mac, sequence: number, members: Partial<Uplink> = {}, second = sequence): TraceEvent {
  const atMs = START_MS + second * 1000;
  return { event: 'ping', atMs, mac, source: 'lock', uplink: uplink(sequence, members) as Uplink<Ping> };
}

/** A lock that connects, sends three pings and disconnects. */
function shortSession(mac: Mac): TraceEvent[] {
  return [connect(mac, 0), ping(mac, 1), ping(mac, 2), ping(mac, 3), close(mac, 4)];
}

/** The stored uplinks of a lock, in the order of their keys. */
async function stored(gateway: Gateway, mac: Mac): Promise<StoredUplink[]> {
  const device = await gateway.store.findDevice(mac);
  if (device === null) return [];
  return (await gateway.store.readUplinks(device.device.id, MAX_READ_ROWS)).reverse();
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

t.test('a connection that the trace does not close is closed at the end, and a note says so', async (t) => {
  const gateway = await testGateway(t);
  const mac = testMac(1);
  const file = traceFile('unclosed.jsonl', [connect(mac, 0), ping(mac, 1)]);
  const { report } = await replay(gateway, file, { provision: true });
  t.match(report.notes, [
    { kind: 'left-out', message: /^1 connection closed at the end, since the trace has no disc/ },
  ]);
});

t.test('a clean trace arrives unchanged in the store, without differences', async (t) => {
  const gateway = await testGateway(t);
  const [connecting, unconnected] = [testMac(1), testMac(2)];
  // Field 127 with the value 5, which the protocol does not define. It stays, because the original bytes are sent.
  const withUnknownField = Buffer.concat([encodeUplink(uplink(2)), Buffer.from([0xf8, 0x07, 0x05])]);
  const file = traceFile('clean.jsonl', [
    connect(connecting, 0),
    ping(connecting, 1),
    ping(unconnected, 1),
    [ping(connecting, 2), withUnknownField],
    close(connecting, 3, 'dropped'),
    connect(connecting, 4),
    ping(connecting, 5),
    ping(unconnected, 6),
    close(connecting, 7),
  ]);
  const connections: string[] = [];
  gateway.events.on('connected', ({ mac }) => connections.push(`${mac} connect`));
  gateway.events.on('disconnected', ({ mac, cause }) => connections.push(`${mac} ${cause}`));
  const { error, report } = await replay(gateway, file, { provision: true });
  t.equal(error, '');
  t.match(report, { locks: 2, connections: 3, uplinks: { sent: 5, acknowledged: 5 }, same: true, differences: [] });
  t.same(
    report.notes.map(({ kind, rule }) => rule ?? kind),
    ['left-out', 'close-missing', 'outside-connection', 'outside-connection'],
    'all notes are about the lock without a connection in the trace',
  );
  t.same(
    (await stored(gateway, connecting)).map(({ bytes }) => hex(bytes)),
    [hex(encodeUplink(uplink(1))), hex(withUnknownField), hex(encodeUplink(uplink(5)))],
  );
  t.same(
    (await stored(gateway, unconnected)).map(({ boot, sequence }) => `${boot}/${sequence}`),
    ['1/1', '1/6'],
  );
  t.equal((await gateway.store.findDevice(unconnected))?.device.simulated, true);
  const ofConnecting = connections.filter((line) => line.startsWith(connecting)).map((line) => line.split(' ')[1]);
  t.same(ofConnecting, ['connect', 'dropped', 'connect', 'closed'], 'in the trace’s order');
});

/** The replayed traces: of each rule the first that breaks it and the first that keeps it; in the long version all. */
const REPLAYED = byLength(/-1\.jsonl$/, /\.jsonl$/);

t.test('replays of traces of every rule give the same findings as trace check', async (t) => {
  const gateway = await testGateway(t);
  const contentRules = new Set<string>(RULES.filter(({ restsOn }) => restsOn === 'content').map(({ rule }) => rule));
  const ofRules = readdirSync(traces).filter((name) => contentRules.has(name.split('.')[0] ?? ''));
  const names = ofRules.filter((name) => REPLAYED.test(name));
  const expected = readFileSync(path.join(traces, 'expected.jsonl'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { file: string; rule: string });
  t.same(new Set(names.map((name) => name.split('.')[0])), contentRules, 'every rule has a trace');
  for (const [index, name] of names.entries()) {
    // Each trace gets its own lock, since the gateway's state of a lock would carry over to the next trace.
    const mac = testMac(1000 + index);
    const file = path.join(folder, name);
    const text = readFileSync(path.join(traces, name), 'utf8');
    writeFileSync(file, text.replaceAll('A4:C1:38:F0:E1:D2', formatMac(mac)));
    const { error, report } = await replay(gateway, file, { provision: true });
    t.equal(error, '', name);
    t.same(report.differences, [], name);
    t.equal(report.same, true, name);
    const device = await gateway.store.findDevice(mac);
    const found = device === null ? [] : await gateway.store.readFindings(device.device.id, MAX_READ_ROWS);
    const rules = new Set(found.map(({ finding }) => finding.rule as string));
    for (const { rule } of expected.filter((finding) => finding.file === name && contentRules.has(finding.rule))) {
      const isNoted = report.notes.some((note) => note.kind === 'finding-missing' && note.rule === rule);
      const isOfPhone = text.includes('"phone"');
      t.ok(rules.has(rule) || isNoted || isOfPhone, `${name}: ${rule} was found, or is noted`);
    }
  }
});

t.test('findings of only the gateway or only trace check are differences', async (t) => {
  const gateway = await testGateway(t);
  const mac = testMac(1);
  const { secret } = await gateway.accounts.addDevice({ mac });
  const secrets = path.join(folder, 'one.csv');
  writeFileSync(secrets, `${mac.toLowerCase()},${secret}\n`);
  const period = { ...RESET, reason: 'REASON_PERIOD_TRACKING' } as Ping;
  const first = traceFile('first.jsonl', [ping(mac, 1, { body: period })]);
  t.equal((await replay(gateway, first, { secrets })).report.same, true);
  const hourLater = { boot: 2, body: period, timeMs: START_MS + Hours(1) };
  const second = traceFile('second.jsonl', [ping(mac, 1, hourLater)]);
  const unexpected = await replay(gateway, second, { secrets });
  t.equal(unexpected.report.same, false);
  t.match(unexpected.report.differences, [
    { line: 2, mac: formatMac(mac), kind: 'finding-unexpected', rule: 'period-too-soon' },
  ]);

  const proxyWithoutFindings = await filteringOperator(t, gateway, (event) => ({ ...event, findings: [] }));
  const broken = traceFile('broken.jsonl', [
    ping(mac, 1, { boot: 3, body: { ...RESET, batteryPercent: 120 } as Ping }),
  ]);
  const missing = await replay(gateway, broken, { secrets, operatorPort: proxyWithoutFindings });
  t.equal(missing.report.same, false);
  t.match(missing.report.differences, [{ line: 2, kind: 'finding-missing', rule: 'out-of-range' }]);
});

type EventOfStream = Record<string, unknown> & { readonly event: string };

/** A proxy for the operator interface that changes events of the stream; null closes the stream. Returns the port. */
async function filteringOperator(
  t: Test,
  gateway: Gateway,
  change: (event: EventOfStream) => object | null,
): Promise<number> {
  const relay = (from: IncomingMessage, to: ServerResponse, isStream: boolean): void => {
    to.writeHead(from.statusCode ?? 500, { 'content-type': 'application/json' });
    to.flushHeaders();
    if (!isStream) {
      from.pipe(to);
      return;
    }
    from.setEncoding('utf8').on('data', (text: string) => {
      // On loopback each chunk has complete lines.
      for (const line of text.trimEnd().split('\n')) {
        const changed = change(JSON.parse(line) as EventOfStream);
        if (changed === null) to.end();
        else if (!to.writableEnded) to.write(`${JSON.stringify(changed)}\n`);
      }
    });
  };
  const server = createServer((incoming, outgoing) => {
    const { method, url, headers } = incoming;
    const target = { host: '127.0.0.1', port: gateway.operatorPort, method, path: url, headers };
    const forward = request(target, (answer) => relay(answer, outgoing, url === '/events'));
    incoming.pipe(forward);
    outgoing.on('close', () => forward.destroy());
    forward.on('error', () => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

t.test('if the event stream ends, the replay fails because findings are unknown', async (t) => {
  const gateway = await testGateway(t);
  const operatorPort = await filteringOperator(t, gateway, (event) => (event.event === 'ping' ? null : event));
  const file = traceFile('stream.jsonl', shortSession(testMac(1)));
  const { error } = await replay(gateway, file, { provision: true, operatorPort });
  t.match(error, /^gateway-down: the gateway closed its event stream/);
});

t.test('a lock with a wrong secret is a difference', async (t) => {
  const gateway = await testGateway(t);
  const [right, wrong] = [testMac(1), testMac(2)];
  const { secret } = await gateway.accounts.addDevice({ mac: right });
  await gateway.accounts.addDevice({ mac: wrong });
  const secrets = path.join(folder, 'wrong.csv');
  writeFileSync(secrets, `mac,secret\r\n"${formatMac(right)}","${secret}"\r\n\r\n${wrong},not-it\r\n`);
  const file = traceFile('two.jsonl', [
    ...shortSession(right),
    { event: 'tick', atMs: START_MS + Minutes(1) },
    ping(wrong, 61),
    ping(wrong, 62),
  ]);
  const { report } = await replay(gateway, file, { secrets });
  t.equal(report.same, false);
  t.match(report.differences, [
    { line: 8, mac: formatMac(wrong), kind: 'refused', message: /^CONNACK 5: .*\(wrong secret\)$/ },
    { line: 8, kind: 'unsent' },
    { line: 9, kind: 'unsent' },
  ]);
  t.equal(report.differences.length, 3);
  t.notOk(JSON.stringify(report).includes('not-it'));
  t.equal((await stored(gateway, right)).length, 3, 'the other lock is still replayed');
});

t.test('a connection that the gateway closes is a difference', async (t) => {
  const gateway = await testGateway(t, { wrapStore: failingOnce(2) });
  const mac = testMac(1);
  const file = traceFile('ended.jsonl', [
    ...shortSession(mac).slice(0, 4),
    close(mac, 4),
    connect(mac, 5),
    ping(mac, 6),
    close(mac, 7),
  ]);
  const { report } = await replay(gateway, file, { provision: true });
  t.equal(report.same, false);
  t.same(report.differences.map(({ line, kind }) => `${line} ${kind}`).sort(), [
    '4 ended',
    '4 unacknowledged',
    '5 unsent',
  ]);
  t.same(
    (await stored(gateway, mac)).map(({ sequence }) => sequence),
    [1, 6],
    'the lock continues with the trace’s next connection',
  );
});

/** A store that refuses the first commit with an uplink of this sequence. */
function failingOnce(sequence: number): (store: Store) => Store {
  let hasFailed = false;
  return (store) => {
    const append = (commit: Commit): Promise<void> => {
      const hasUplink = commit.incoming.some((each) => each.type === 'uplink' && each.sequence === sequence);
      if (hasFailed || !hasUplink) return store.append(commit);
      hasFailed = true;
      return Promise.reject(new Error('the disk is full'));
    };
    return new Proxy(store, {
      get: (target, name) => {
        if (name === 'append') return append;
        const member: unknown = Reflect.get(target, name);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
  };
}

t.test('duplicates, conflicts and takeovers are no differences; uplinks known before are noted', async (t) => {
  const gateway = await testGateway(t);
  const mac = testMac(1);
  const { secret } = await gateway.accounts.addDevice({ mac });
  const secrets = path.join(folder, 'duplicates.csv');
  writeFileSync(secrets, `${mac},${secret}`);
  const file = traceFile('duplicates.jsonl', [
    connect(mac, 0),
    ping(mac, 1),
    ping(mac, 1, {}, 2),
    connect(mac, 3),
    ping(mac, 2, {}, 4),
    ping(mac, 2, { timeMs: START_MS + 5 }, 5),
    close(mac, 6, 'takeover'),
    connect(mac, 7),
    ping(mac, 3, {}, 8),
  ]);
  const causes: string[] = [];
  gateway.events.on('disconnected', ({ cause }) => causes.push(cause));
  const once = await replay(gateway, file, { secrets });
  t.equal(once.report.same, true, 'both find the conflict');
  t.same(once.report.differences, []);
  t.same(causes, ['takeover', 'takeover', 'closed']);
  const sequences = (await stored(gateway, mac)).map(({ sequence }) => sequence);
  t.same(sequences, [1, 2, 2, 3], 'the repeat of 1 is not stored, the conflict with 2 is');
  const again = await replay(gateway, file, { secrets });
  t.equal(again.report.same, true);
  t.match(
    again.report.notes.find(({ kind }) => kind === 'known'),
    { message: /^3 uplinks known to the gateway before/ },
  );
  t.equal((await stored(gateway, mac)).length, 4, 'nothing was stored twice');
});

t.test('--as-now shifts times to now and gives new uplink numbers', async (t) => {
  const gateway = await testGateway(t);
  const mac = testMac(1);
  const { secret } = await gateway.accounts.addDevice({ mac });
  const secrets = path.join(folder, 'as-now.csv');
  writeFileSync(secrets, `${mac},${secret}`);
  const brokenClock = { timeMs: -5, boot: 2 };
  const raw = ping(mac, 2, { boot: 2 }) as TraceEvent & { uplink: Uplink };
  const file = traceFile('as-now.jsonl', [
    connect(mac, 1),
    ping(mac, 1),
    [raw, encodeUplink(raw.uplink)],
    ping(mac, 3, brokenClock),
    close(mac, 4),
  ]);
  const before = gateway.clock.now();
  for (const _ of [1, 2]) {
    const { report } = await replay(gateway, file, { secrets, asNow: true });
    t.equal(report.same, true);
    t.same(
      report.notes.filter(({ kind }) => kind === 'known'),
      [],
    );
  }
  const uplinks = (await stored(gateway, mac)).map(({ bytes }) => {
    const decoded = decodeUplink(bytes);
    return decoded.ok ? decoded.value : null;
  });
  t.same(
    uplinks.map((each) => `${each?.boot}/${each?.sequence}`),
    ['1/1', '2/2', '2/3', '3/1', '4/2', '4/3'],
    'the second replay’s boots are above the first’s',
  );
  const [first, second, third] = uplinks.map((each) => each?.timeMs ?? 0);
  t.ok(first !== undefined && first >= before && first <= gateway.clock.now(), 'the first event is now');
  t.equal((second ?? 0) - (first ?? 0), 1000, 'and intervals do not change');
  t.equal(third, -5, 'a time outside the range of dates does not change');
  const unchanged = await replay(gateway, traceFile('later.jsonl', [ping(mac, 1, { boot: 9 })]), {
    secrets,
    asNow: true,
  });
  t.equal(unchanged.report.same, true);
  t.equal((await stored(gateway, mac)).at(-1)?.boot, 9, 'a boot that is already new does not change');
});

t.test('an uplink that the gateway quarantines is a difference', async (t) => {
  const gateway = await testGateway(t);
  const mac = testMac(1);
  const long: Uplink = { ...uplink(2), body: { ...RESET, firmwareVersion: 'x'.repeat(1100) } as Ping };
  const file = traceFile('long.jsonl', [connect(mac, 0), ping(mac, 1), ping(mac, 2, long), close(mac, 4)]);
  const { report } = await replay(gateway, file, { provision: true });
  t.equal(report.same, false);
  t.match(report.differences, [{ line: 4, kind: 'quarantined', message: /at most 1024 are taken/ }]);
  t.equal(report.differences.length, 1);
});

t.test('errors in files, flags and gateways are reported with their codes', async (t) => {
  const gateway = await testGateway(t);
  const mac = testMac(1);
  const file = traceFile('short.jsonl', shortSession(mac));
  const secrets = path.join(folder, 'bad.csv');
  const errorOf = async (content: string): Promise<string> => {
    writeFileSync(secrets, content);
    const { error } = await replay(gateway, file, { secrets });
    return error.replace(folder, '');
  };
  t.equal(await errorOf('mac,secret\nnonsense\n'), 'input-secrets: /bad.csv:2: there is no comma: expected MAC,SECRET');
  t.match(await errorOf('A4C1,hush\n'), /^input-secrets: \/bad.csv:1: "A4C1" is no MAC/);
  t.match(await errorOf(`${mac},\n`), /^input-secrets: \/bad.csv:1: the secret is empty/);
  const threeColumns = await errorOf(`${mac},hush,hush\n`);
  t.match(threeColumns, /^input-secrets: \/bad.csv:1: /);
  t.notMatch(threeColumns, /hush/, 'the error does not show the secret');
  t.match(await errorOf(`${mac},a\n${formatMac(mac)},b\n`), /bad.csv:2: .* is listed twice/);
  t.match(await errorOf(`${testMac(9)},hush\n`), /^input-secrets: .* has no secret for A4:C1:38:00:00:01$/);
  const missingFile = { secrets: path.join(folder, 'no.csv') };
  t.match((await replay(gateway, file, missingFile)).error, /^input-secrets: .* can’t be read/);
  t.match((await replay(gateway, file)).error, /^input-secrets: .*--secrets FILE.csv or --provision/);
  const bad = path.join(folder, 'not-a-trace.jsonl');
  writeFileSync(bad, '{}\n');
  t.match((await replay(gateway, bad, { provision: true })).error, /^input-trace: .*:1: /);
  t.same(await gateway.store.listDevices(), [], 'no lock was added');

  const elsewhere = { provision: true, mqtt: { host: '127.0.0.1', port: 1 } };
  t.match((await replay(gateway, file, elsewhere)).error, /^gateway-down: no MQTT at 127.0.0.1:1 /);
  await gateway.accounts.addDevice({ mac: testMac(2) });
  const real = traceFile('real.jsonl', [...shortSession(mac), ping(testMac(2), 5)]);
  t.match(
    (await replay(gateway, real, { provision: true })).error,
    /^input-provision: A4:C1:38:00:00:02 is not simulated, .*: give --secrets instead$/,
  );
  await gateway.accounts.addMerchant('Basalt');
  const other = traceFile('other.jsonl', shortSession(testMac(3)));
  t.match((await replay(gateway, other, { provision: true })).error, /^merchant-needed/);
  t.equal((await replay(gateway, other, { provision: true, merchant: MERCHANT })).report.same, true);
  t.equal((await replay(gateway, other, { provision: true })).report.same, true, 'a simulated lock gets a new secret');
});

t.test('uplinks sent to another gateway’s MQTT port are reported as missing', async (t) => {
  const [watched, receiving] = [await testGateway(t), await testGateway(t)];
  const mac = testMac(1);
  const { secret } = await receiving.accounts.addDevice({ mac });
  const secrets = path.join(folder, 'elsewhere.csv');
  writeFileSync(secrets, `${mac},${secret}`);
  const file = traceFile('elsewhere.jsonl', [ping(mac, 1)]);
  const mqtt = { host: '127.0.0.1', port: receiving.mqttPort };
  const { report } = await replay(watched, file, { secrets, mqtt });
  t.equal(report.same, false);
  // The gateway whose event stream the replay reads reported no such uplink.
  t.match(report.differences, [{ kind: 'untold' }]);
});

t.test('the command prints text, sets exit codes and handles Ctrl-C', async (t) => {
  const gateway = await openGateway(t, tempFolder(t));
  await gateway.accounts.addMerchant(MERCHANT);
  const connection = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
  const startProcess = (...args: string[]): Program => {
    const program = new Program(t, process.execPath, [LOCKGATE, 'trace', 'replay', ...args]);
    program.endStdin('');
    return program;
  };
  const lockgate = (...args: string[]) => runLockgate(['trace', 'replay', ...args]);
  const macs = Array.from({ length: 40 }, (_, index) => testMac(index + 1));
  const many = macs.flatMap(shortSession).sort((a, b) => a.atMs - b.atMs);
  const broken = path.join(traces, 'low-battery-theft-only.breaks-1.jsonl');
  const json = await lockgate(broken, '--provision', '--speed', 'max', '--json', ...connection);
  t.same(json.exit, { code: 0, signal: null }, 'a finding of both trace check and the gateway is no difference');
  t.match(JSON.parse(json.stdout.join('')), { file: broken, same: true, differences: [] });
  const refused = path.join(folder, 'refused.csv');
  writeFileSync(refused, 'A4:C1:38:F0:E1:D2,wrong');
  const differs = await lockgate(broken, '--secrets', refused, '--speed', '1000', ...connection);
  t.same(differs.exit, { code: 1, signal: null });
  t.match(differs.stdout.join('\n'), /differs {2}line 2 {2}A4:C1:38:F0:E1:D2 {2}CONNACK 5.*\n3 differences\.$/s);
  const quick = startProcess(traceFile('quick.jsonl', many), '--provision', '--speed', 'max', ...connection);
  t.same(await quick.waitForExit(), { code: 0, signal: null });
  t.match(
    quick.stdout.join('\n'),
    /120 uplinks of 40 locks over 40 connections to mqtt:.*\nNo differences: the gateway/,
  );
  t.same(quick.stderr, [], 'no warning, and no progress where there is no terminal');
  for (const wrong of [
    ['--speed', '0'],
    ['--speed', 'fast'],
    ['--mqtt', 'http://x'],
    ['--secrets', 'x', '--provision'],
  ])
    t.match(
      (await lockgate(traceFile('quick.jsonl', many), ...connection, ...wrong)).exit,
      { code: 2 },
      wrong.join(' '),
    );
  t.match((await lockgate(traceFile('quick.jsonl', many), '--provision', '--data', folder)).exit, { code: 3 });

  const mac = testMac(99);
  const slow = traceFile('slow.jsonl', [connect(mac, 0), ping(mac, 0), ping(mac, Days(1) / 1000)]);
  const arrived = new Promise<void>((resolve) => gateway.events.once('uplink', () => resolve()));
  const ended = new Promise<string>((resolve) => {
    gateway.events.once('disconnected', ({ cause }) => resolve(cause));
  });
  const waiting = startProcess(slow, '--provision', ...connection);
  await arrived;
  waiting.kill('SIGINT');
  t.same(await waiting.waitForExit(), { code: 130, signal: null });
  t.equal(await ended, 'closed', 'with a DISCONNECT');
  t.match(waiting.stderr.join('\n'), /^Interrupted: \d of 3 events were replayed\.$/);
});

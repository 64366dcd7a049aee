// `lockgate trace replay` against real gateways: uplinks (messages of locks) arrive unchanged, and with the same
// findings as `trace check`. `connect(mac, 4)` is an event 4 s after a trace's start; `ping(mac, 2, members)` is uplink
// 2 with these members, received after 2 s. `RESET` is the body of a ping about which no rule has a finding.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import t, { type Test } from 'tap';
import type { Gateway } from '../../../../gateway/gateway.js';
import { Hours } from '../../../../proto/clock.js';
import { RULES } from '../../../../proto/power/rules.js';
import type { TraceEvent } from '../../../../proto/trace/trace.js';
import { decodeUplink, encodeUplink } from '../../../../proto/wire/codec.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import type { Ping, Uplink } from '../../../../proto/wire/ping.js';
import {
  close,
  connect,
  MAX_READ_ROWS,
  ping,
  RESET,
  replay,
  START_MS,
  shortSession,
  stored,
  traces,
  traceWriter,
  uplink,
} from '../../../helpers/cli/replay-run.js';
import { testGateway, testMac } from '../../../helpers/gateway/test-gateway.js';
import { quickOrLong } from '../../../helpers/house/test-length.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';

const folder = tempFolder(t);
const traceFile = traceWriter(folder);

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
const REPLAYED = quickOrLong(/-1\.jsonl$/, /\.jsonl$/);

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
    // Their numbers are above those of all other locks in this file.
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

t.test('--as-now shifts times to now and gives new uplink numbers', async (t) => {
  const gateway = await testGateway(t);
  const mac = testMac(1);
  const { secret } = await gateway.accounts.addDevice({ mac });
  const secrets = path.join(folder, 'as-now.csv');
  writeFileSync(secrets, `${mac},${secret}`);
  const brokenClock = { timeMs: -5, boot: 2 };
  // `ping` returns an event of an uplink.
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

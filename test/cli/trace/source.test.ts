/**
 * Traces from a gateway: exports of stored events, and recordings of live events, such as uplinks (messages of locks).
 */
import { request } from 'node:http';
import got from 'got';
import t from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { afterThisTurn, Hours, ManualClock, Minutes, Seconds } from '../../../proto/clock.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { TraceCheck } from '../../../proto/trace/check.js';
import type { TraceFinding } from '../../../proto/trace/findings.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import type { TraceEvent, TraceHeader } from '../../../proto/trace/trace.js';
import type { CellularPing, LockState } from '../../../proto/wire/ping.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import {
  MERCHANT,
  openGateway,
  testBytes,
  testGateway,
  testMac,
  waitForEvents,
} from '../../helpers/gateway/test-gateway.js';
import { connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac();
const OTHER_MAC = testMac(2);
/** More findings than a lock of these tests has. */
const MAX_FINDINGS = 99;

/** Exports a trace from the gateway. Returns its lines. */
async function exportLines(gateway: Gateway, query = ''): Promise<string[]> {
  const url = `http://127.0.0.1:${gateway.operatorPort}/trace${query}`;
  const { body } = await got(url, { headers: { authorization: `Bearer ${gateway.operatorToken}` } });
  return body.trimEnd().split('\n');
}

/** The findings of a check of a trace. */
function findingsOf(lines: readonly string[]): TraceFinding[] {
  const reader = new TraceReader();
  reader.read(lines[0] ?? '');
  const check = new TraceCheck(POWER_MODEL, reader.header as TraceHeader);
  for (const line of lines.slice(1)) {
    const read = reader.read(line);
    if (!read.ok) throw new Error(`line ${reader.line}: ${read.error.message}`);
    if (read.value !== null) check.judge(read.value, reader.line);
  }
  return check.findings();
}

/** Reads a trace and checks it. Returns its events after the header, and the broken rules. */
function checkLines(lines: readonly string[]): {
  events: TraceEvent[];
  rules: string[];
  header: TraceReader['header'];
} {
  const reader = new TraceReader();
  const events: TraceEvent[] = [];
  let check: TraceCheck | undefined;
  lines.forEach((line, index) => {
    const read = reader.read(line);
    if (!read.ok) throw new Error(`line ${index + 1}: ${read.error.message}`);
    if (index === 0 || reader.header === null) return;
    check ??= new TraceCheck(POWER_MODEL, reader.header);
    // Null only for an empty line, and there is none.
    events.push(read.value as TraceEvent);
    check.judge(read.value as TraceEvent, index + 1);
  });
  return { events, rules: (check?.findings() ?? []).map(({ rule }) => rule), header: reader.header };
}

const STATE_PING: CellularPing = {
  kind: 'cellular',
  reason: 'REASON_STATE_PING',
  lockState: 'locked',
  batteryPercent: 81,
  firmwareVersion: '2.4.1',
  ebikeVolts: null,
  tetherState: 'detached',
  position: null,
};

/** Waits until the gateway's clock has left the millisecond in which the last uplink was received. */
async function untilNextMillisecond(gateway: Gateway): Promise<void> {
  while (gateway.clock.now() === (await gateway.store.readLastReceivedAtMs()))
    await new Promise<void>((resolve) => afterThisTurn(resolve));
}

/** The bytes of a state ping that is made now. */
function statePing(gateway: Gateway, sequence: number, lockState: LockState): Buffer {
  return testBytes(sequence, { timeMs: gateway.clock.now(), body: { ...STATE_PING, lockState } });
}

t.test('an export has the received uplinks and connections, and gives the same findings', async (t) => {
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder);
  await gateway.accounts.addMerchant(MERCHANT);
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  const other = await connectedLock(t, gateway, OTHER_MAC);
  await lock.send(statePing(gateway, 1, 'unlocked'));
  await other.send(statePing(gateway, 1, 'unlocked'));
  const uplinkWithFinding = waitForEvents(gateway, 'uplink', 1, ({ findings }) => findings.length > 0);
  await lock.send(statePing(gateway, 2, 'unlocked'));
  t.match(await uplinkWithFinding, [{ mac: MAC, findings: [{ rule: 'state-unchanged', about: { sequence: 2 } }] }]);
  const disconnected = waitForEvents(gateway, 'disconnected', 1);
  lock.client.stream.destroy();
  t.match(await disconnected, [{ cause: 'dropped' }]);

  const { events, rules } = checkLines(await exportLines(gateway, `?mac=${MAC}`));
  t.same(
    events.map(({ event }) => event),
    ['connect', 'ping', 'ping', 'disconnect'],
  );
  t.same(rules.sort(), ['not-closed', 'state-unchanged'], 'the gateway found the same');
  const { device } = (await gateway.store.findDevice(MAC)) ?? {};
  const stored = await gateway.store.readFindings(device?.id ?? 0, MAX_FINDINGS);
  t.same(stored.map(({ finding }) => finding.rule).sort(), ['not-closed', 'state-unchanged']);
  const bothLocks = checkLines(await exportLines(gateway));
  t.equal(bothLocks.events.length, 6, 'two connects, three pings and a disconnect');
  await gateway.close();

  const restarted = await openGateway(t, folder);
  const afterRestart = checkLines(await exportLines(restarted));
  t.same(
    afterRestart.events.slice(6).map(({ event }) => event),
    ['disconnect', 'gateway', 'gateway'],
    'the other lock’s disconnect, and the gateway’s stop and start',
  );
  t.same(afterRestart.rules.sort(), ['not-closed', 'state-unchanged'], 'the gateway’s stop causes no finding');
});

t.test('the header of a partial export has the locks’ states at its start', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(statePing(gateway, 1, 'unlocked'));
  await untilNextMillisecond(gateway);
  const since = new Date(gateway.clock.now()).toISOString();
  await lock.send(statePing(gateway, 2, 'unlocked'));
  const { events, rules, header } = checkLines(await exportLines(gateway, `?since=${since}`));
  t.equal(events.length, 1);
  t.match(header?.locks.get(MAC), { lockState: 'unlocked', connected: true });
  t.same(rules, ['state-unchanged'], 'found from the header');
  const { events: before2020 } = checkLines(await exportLines(gateway, `?until=2020-01-01T00:00:00Z`));
  t.same(before2020, []);
  // The last is the MAC of a lock that the gateway does not have.
  for (const query of ['?since=yesterday', '?mac=zz', '?mac=A4C138F0E1D2'])
    await t.rejects(exportLines(gateway, query), query);
});

// A period sequence is a lock's daily series of pings. The rule period-too-soon allows the next one after 23 h.
t.test('the header has the start of the last period sequence, by the lock’s clock', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, MAC);
  const madeMs = gateway.clock.now() - Hours(2);
  const periodPing = (sequence: number, timeMs: number) =>
    testBytes(sequence, { timeMs, body: { ...STATE_PING, reason: 'REASON_PERIOD_TRACKING' } });
  await lock.send(periodPing(1, madeMs));
  await lock.send(periodPing(2, madeMs + Seconds(30)));
  await untilNextMillisecond(gateway);
  const since = new Date(gateway.clock.now()).toISOString();
  await lock.send(periodPing(3, madeMs + Hours(23)));
  const { rules, header } = checkLines(await exportLines(gateway, `?since=${since}`));
  t.equal(header?.locks.get(MAC)?.lastPeriodMs, madeMs, 'the start of the sequence, not the receipt of its last ping');
  t.same(rules, ['clock-ahead'], 'exactly 23 h after is not too soon');
});

t.test('a recording starts with the known states and continues with live events', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(statePing(gateway, 1, 'unlocked'));
  const lines: string[] = [];
  const options = { headers: { authorization: `Bearer ${gateway.operatorToken}` } };
  const live = request(`http://127.0.0.1:${gateway.operatorPort}/trace/live?mac=${MAC}`, options);
  t.teardown(() => live.destroy());
  const enough = new Promise<void>((resolve) => {
    live.on('response', (answer) => {
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => {
        lines.push(...chunk.trimEnd().split('\n'));
        // The header and three events.
        if (lines.length >= 4) resolve();
      });
    });
  });
  live.end();
  while (lines.length === 0) await new Promise<void>((resolve) => afterThisTurn(resolve));
  const other = await connectedLock(t, gateway, OTHER_MAC);
  await other.send(statePing(gateway, 1, 'locked'));
  await lock.send(statePing(gateway, 2, 'locked'));
  await lock.send(statePing(gateway, 3, 'locked'));
  await lock.client.endAsync();
  await enough;
  const { events, rules, header } = checkLines(lines);
  t.match(header?.locks.get(MAC), { lockState: 'unlocked', connected: true });
  t.same(
    events.map(({ event }) => event),
    ['ping', 'ping', 'disconnect'],
    'only events of the requested lock',
  );
  t.same(rules.sort(), ['close-missing', 'state-unchanged']);
});

t.test(
  'the check of an export that starts in the middle of a lock’s history finds what the gateway found',
  async (t) => {
    const clock = new ManualClock(Date.UTC(2026, 10, 20, 6));
    const gateway = await testGateway(t, { runClock: clock });
    const { secret } = await gateway.accounts.addDevice({ mac: MAC });
    const send = async (lock: TestLock, boot: number, sequence: number, body: Partial<CellularPing>) => {
      const ping = { ...STATE_PING, reason: 'REASON_THEFT' as const, ...body };
      await lock.send(testBytes(sequence, { boot, timeMs: clock.now(), body: ping }));
      clock.advance(Seconds(30));
    };
    const position = { latitudeDegrees: 52.1, longitudeDegrees: 4.9, uncertaintyMeters: 8 };
    const locate = { reason: 'REASON_CELL_PING' as const, position };
    const connect = async (password: string): Promise<TestLock> => {
      const lock = await TestLock.connect(t, gateway.mqttPort, MAC, password);
      await lock.client.subscribeAsync('down', { qos: 1 });
      return lock;
    };
    const disconnect = async (lock: TestLock): Promise<void> => {
      const disconnected = waitForEvents(gateway, 'disconnected', 1);
      await lock.client.endAsync();
      await disconnected;
      clock.advance(Seconds(1));
    };
    const command = async (type: string): Promise<void> => {
      const sent = waitForEvents(gateway, 'command', 1, ({ record }) => record.state === 'sent');
      t.match(await callOperator(gateway, 'POST', '/commands', { macs: [MAC], type }), { status: 201 });
      await sent;
      clock.advance(Seconds(1));
    };
    const first = await connect(secret);
    for (let sequence = 1; sequence <= 3; sequence += 1) await send(first, 41, sequence, {});
    await command('locate-cell');
    await disconnect(first);
    // The flash is wiped, and later the secret is rotated.
    clock.advance(Hours(1));
    await callOperator(gateway, 'POST', `/devices/${MAC}/reflashed`, { at: new Date(clock.now()).toISOString() });
    clock.advance(Minutes(1));
    const sinceMs = clock.now();
    const wiped = await connect(secret);
    await send(wiped, 1, 1, locate);
    await send(wiped, 1, 2, { lockState: 'unlocked' });
    await disconnect(wiped);
    const renewed = await connect(await gateway.accounts.rotateLockSecret(MAC));
    await send(renewed, 1, 1, locate);
    // A cellular ping must not have this reason.
    await send(renewed, 1, 2, { ...locate, reason: 'REASON_GPS_PING' as never });
    clock.advance(Hours(30));
    await send(renewed, 1, 3, locate);
    await disconnect(renewed);

    const lines = await exportLines(gateway, `?mac=${MAC}&since=${new Date(sinceMs).toISOString()}`);
    const credentials = lines.slice(1).map((line) => JSON.parse(line).credential);
    t.same(credentials.filter(Boolean), [1, 1, 2, 2, 2], 'each uplink names its credential');
    const found = findingsOf(lines).map(({ rule, about }) => `${rule} ${about?.boot}/${about?.sequence}`);
    const { device } = (await gateway.store.findDevice(MAC)) ?? {};
    const stored = (await gateway.store.readFindings(device?.id ?? 0, MAX_FINDINGS))
      .map(({ finding }) => finding)
      .filter(({ atMs }) => atMs >= sinceMs)
      .map(({ rule, about }) => `${rule} ${about?.boot}/${about?.sequence}`);
    t.same(found.sort(), stored.sort());
    for (const rule of ['locate-unasked', 'theft-while-unlocked']) t.match(found.join(), rule);
    t.notMatch(found.join(), /sequence-conflict|boot-back/);
  },
);

t.test('presence events follow connections', async (t) => {
  const gateway = await testGateway(t);
  const onlineAndAsleep = waitForEvents(gateway, 'presence', 2);
  const online = waitForEvents(gateway, 'presence', 1);
  const lock = await connectedLock(t, gateway, MAC);
  // Changes within one commit are reported as one, so the test waits for the first.
  await online;
  await lock.client.endAsync();
  t.match(await onlineAndAsleep, [
    { mac: MAC, presence: { presence: 'online' } },
    { mac: MAC, presence: { presence: 'asleep' } },
  ]);
});

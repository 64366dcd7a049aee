/** Traces from a gateway: exports of stored events, and recordings of live events. */
import { request } from 'node:http';
import got from 'got';
import t from 'tap';
import type { Gateway } from '../../gateway/gateway.js';
import { afterThisTurn, Hours, Seconds } from '../../proto/clock.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { TraceCheck } from '../../proto/trace/check.js';
import { TraceReader } from '../../proto/trace/reader.js';
import type { TraceEvent } from '../../proto/trace/trace.js';
import type { CellularPing, LockState } from '../../proto/wire/ping.js';
import { eventsOf, MERCHANT, openGateway, testBytes, testGateway, testMac } from '../helpers/gateway/test-gateway.js';
import { connectedLock, TestLock } from '../helpers/mqtt/test-lock.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const MAC = testMac();
const OTHER = testMac(2);

async function exported(gateway: Gateway, query = ''): Promise<string[]> {
  const url = `http://127.0.0.1:${gateway.operatorPort}/trace${query}`;
  const { body } = await got(url, { headers: { authorization: `Bearer ${gateway.operatorToken}` } });
  return body.trimEnd().split('\n');
}

/** Reads a trace and checks it. Returns its events after the header, and the broken rules. */
function judged(lines: readonly string[]): { events: TraceEvent[]; rules: string[]; header: TraceReader['header'] } {
  const reader = new TraceReader();
  const events: TraceEvent[] = [];
  let check: TraceCheck | undefined;
  lines.forEach((line, index) => {
    const read = reader.read(line);
    if (!read.ok) throw new Error(`line ${index + 1}: ${read.error.message}`);
    if (index === 0 || reader.header === null) return;
    check ??= new TraceCheck(POWER_MODEL, reader.header, false);
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
  const other = await connectedLock(t, gateway, OTHER);
  await lock.send(statePing(gateway, 1, 'unlocked'));
  await other.send(statePing(gateway, 1, 'unlocked'));
  const found = eventsOf(gateway, 'uplink', 1, ({ findings }) => findings.length > 0);
  await lock.send(statePing(gateway, 2, 'unlocked'));
  t.match(await found, [{ mac: MAC, findings: [{ rule: 'state-unchanged', about: { sequence: 2 } }] }]);
  const gone = eventsOf(gateway, 'disconnected', 1);
  lock.client.stream.destroy();
  t.match(await gone, [{ cause: 'dropped' }]);

  const { events, rules } = judged(await exported(gateway, `?mac=${MAC}`));
  t.same(
    events.map(({ event }) => event),
    ['connect', 'ping', 'ping', 'disconnect'],
  );
  t.same(rules.sort(), ['not-closed', 'state-unchanged'], 'the gateway found the same');
  const stored = await gateway.store.readFindings(1, 9);
  t.same(stored.map(({ finding }) => finding.rule).sort(), ['not-closed', 'state-unchanged']);
  const all = judged(await exported(gateway));
  t.equal(all.events.length, 6, 'all locks, in the order of receipt');
  await gateway.close();

  const again = await openGateway(t, folder);
  const after = judged(await exported(again));
  t.same(
    after.events.slice(6).map(({ event }) => event),
    ['disconnect', 'gateway', 'gateway'],
    'stopped and started',
  );
  t.same(after.rules.sort(), ['not-closed', 'state-unchanged'], 'the gateway’s stop causes no finding');
});

t.test('the header of a partial export has the locks’ states at its start', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(statePing(gateway, 1, 'unlocked'));
  while (gateway.clock.now() === (await gateway.store.readLastReceivedAtMs()))
    await new Promise<void>((resolve) => afterThisTurn(resolve));
  const since = new Date(gateway.clock.now()).toISOString();
  await lock.send(statePing(gateway, 2, 'unlocked'));
  const { events, rules, header } = judged(await exported(gateway, `?since=${since}`));
  t.equal(events.length, 1);
  t.match(header?.locks.get(MAC), { lockState: 'unlocked', connected: true });
  t.same(rules, ['state-unchanged'], 'found from the header');
  const { events: none } = judged(await exported(gateway, `?until=2020-01-01T00:00:00Z`));
  t.same(none, []);
  for (const query of ['?since=yesterday', '?mac=zz', '?mac=A4C138F0E1D2'])
    await t.rejects(exported(gateway, query), query);
});

t.test('the header has the time of the last period sequence by the lock’s clock, which the rule uses', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, MAC);
  const madeMs = gateway.clock.now() - Hours(2);
  const periodPing = (sequence: number, timeMs: number) =>
    testBytes(sequence, { timeMs, body: { ...STATE_PING, reason: 'REASON_PERIOD_TRACKING' } });
  await lock.send(periodPing(1, madeMs));
  await lock.send(periodPing(2, madeMs + Seconds(30)));
  while (gateway.clock.now() === (await gateway.store.readLastReceivedAtMs()))
    await new Promise<void>((resolve) => afterThisTurn(resolve));
  const since = new Date(gateway.clock.now()).toISOString();
  await lock.send(periodPing(3, madeMs + Hours(23)));
  const { rules, header } = judged(await exported(gateway, `?since=${since}`));
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
        if (lines.length >= 4) resolve();
      });
    });
  });
  live.end();
  while (lines.length === 0) await new Promise<void>((resolve) => afterThisTurn(resolve));
  const other = await connectedLock(t, gateway, OTHER);
  await other.send(statePing(gateway, 1, 'locked'));
  await lock.send(statePing(gateway, 2, 'locked'));
  await lock.send(statePing(gateway, 3, 'locked'));
  await lock.client.endAsync();
  await enough;
  const { events, rules, header } = judged(lines);
  t.match(header?.locks.get(MAC), { lockState: 'unlocked', connected: true });
  t.same(
    events.map(({ event }) => event),
    ['ping', 'ping', 'disconnect'],
    'only events of the requested lock',
  );
  t.same(rules, ['state-unchanged', 'close-missing'], 'the lock disconnected without a close-connection ping');
});

t.test('presence events follow connections', async (t) => {
  const gateway = await testGateway(t);
  const seen = eventsOf(gateway, 'presence', 2);
  const online = eventsOf(gateway, 'presence', 1);
  const lock = await connectedLock(t, gateway, MAC);
  // Changes within one commit are reported as one, so the test waits for the first.
  await online;
  await lock.client.endAsync();
  t.match(await seen, [
    { mac: MAC, presence: { presence: 'online' } },
    { mac: MAC, presence: { presence: 'asleep' } },
  ]);
});

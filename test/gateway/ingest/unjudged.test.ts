/**
 * An exception while one lock is judged (quality.md §2): the lock's pings are stored, acknowledged and delivered
 * unjudged, its state stays unchanged, and there is a notice; other locks are not affected. After a failed commit, only
 * the states of its locks are read again.
 */
import got from 'got';
import t, { type Test } from 'tap';
import { GatewayEvents, type JudgingTurned } from '../../../gateway/events.js';
import type { Gateway, GatewayOptions } from '../../../gateway/gateway.js';
import { type DeviceEvent, Ingest, type Sender } from '../../../gateway/ingest/ingest.js';
import { CURRENT_JUDGE, type VersionedJudge } from '../../../gateway/ingest/judging.js';
import { Locks } from '../../../gateway/locks/locks.js';
import { StoreFailure } from '../../../gateway/store/contract/errors.js';
import type { Commit, Store } from '../../../gateway/store/contract/store.js';
import { ManualClock, Minutes, Seconds } from '../../../proto/clock.js';
import type { JudgeEvent } from '../../../proto/power/judge/event.js';
import { judgeInPlace } from '../../../proto/power/judge/judge.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { ChangeSignal } from '../../helpers/clocks/change-signal.js';
import { NO_COMMANDS } from '../../helpers/commands/no-commands.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { MERCHANT, openGateway, testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { lockSender } from '../../helpers/mqtt/lock-sender.js';
import { connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { RIDE_PING, RIDE_POWER } from '../../helpers/sim/ride-ping.js';
import { openStore } from '../../helpers/store/new-store.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';

const [BAD, GOOD] = [testMac(1), testMac(2)];
const WHY = 'a mistake of ours';
const START_MS = 1_763_618_400_000;
const PATIENCE = 20;

t.setTimeout(Minutes(2));

/** A judge that throws at some events of one lock, with its belief half written. */
class FailingJudge implements VersionedJudge {
  version = '1.0.0';
  /** The events of {@link BAD} at which the judge fails. */
  fails: (event: JudgeEvent) => boolean;
  /** How often the judge was called for {@link BAD}. */
  asked = 0;

  constructor(fails: FailingJudge['fails'] = () => true) {
    this.fails = fails;
  }

  judge: typeof judgeInPlace = (model, belief, event, out) => {
    if (belief.mac === formatMac(BAD)) {
      this.asked += 1;
      if (this.fails(event)) {
        Object.assign(belief, { uplinks: -1, runs: undefined, powerFrom: undefined });
        throw new Error(WHY);
      }
    }
    judgeInPlace(model, belief, event, out);
  };
}

async function gatewayWith(
  test: Test,
  judging: VersionedJudge,
  folder = tempFolder(test),
  options: GatewayOptions = {},
) {
  const gateway = await openGateway(test, folder, { judging, ...options });
  const turned: JudgingTurned[] = [];
  const changeSignal = new ChangeSignal();
  gateway.events.on('judging', (event) => {
    turned.push(event);
    changeSignal.notify();
  });
  const heard = (count: number): Promise<void> =>
    changeSignal.waitUntil(
      () => turned.length >= count,
      PATIENCE,
      () => `${turned.length} of ${count} changes`,
    );
  return { gateway, turned, heard, folder };
}

async function body(gateway: Gateway, where: string): Promise<Record<string, unknown>> {
  return (await callOperator(gateway, 'GET', where)).body as Record<string, unknown>;
}

async function unjudgedNotices(gateway: Gateway): Promise<string[]> {
  const { notices } = (await body(gateway, '/notices?kind=lock-unjudged')) as {
    notices: { subject: string; resolved_at: string | null }[];
  };
  return notices.map(({ subject, resolved_at }) => `${subject} ${resolved_at === null ? 'open' : 'over'}`);
}

const isUplink = ({ type }: JudgeEvent): boolean => type === 'uplink';

t.test('pings of an unjudged lock are stored, acknowledged and delivered, and operators get a notice', async (t) => {
  const judging = new FailingJudge((event) => event.type === 'uplink' && event.uplink.sequence === 2);
  const { gateway, turned, heard } = await gatewayWith(t, judging);
  const receiver = await testReceiver(t);
  await gateway.accounts.addMerchant(MERCHANT);
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const bad = await connectedLock(t, gateway, BAD);
  const good = await connectedLock(t, gateway, GOOD);
  const arrived = receiver.waitForRequests(8);
  for (let sequence = 1; sequence <= 4; sequence++) {
    await bad.send(testBytes(sequence));
    await good.send(testBytes(sequence));
  }
  await heard(1);
  t.match(turned, [{ mac: BAD, state: 'stopped', why: WHY }]);
  await arrived;
  const { id: badId, merchantId } = (await gateway.store.findDevice(BAD))?.device ?? { id: 0, merchantId: 0 };
  const stored = (await gateway.store.readEvents(merchantId, 0, 100)).map(({ mac, sequence }) => `${mac} ${sequence}`);
  t.same(stored.filter((each) => each.startsWith(BAD)).length, 4);
  t.equal((await got(`http://127.0.0.1:${gateway.httpPort}/readyz`)).statusCode, 200);
  const mac = formatMac(BAD);
  t.match(await body(gateway, '/readyz'), { status: 'ready', reasons: [], unjudged: [{ mac, why: WHY }] });
  t.same(await unjudgedNotices(gateway), [`${mac} open`]);
  t.match(await body(gateway, `/devices/${mac}`), {
    unjudged: { why: WHY, version: '1.0.0' },
    presence: 'online',
    uplinks: [{}, {}, {}, {}],
    state: { reason: 'REASON_STATE_PING' },
  });
  t.match(await body(gateway, `/devices/${formatMac(GOOD)}`), { unjudged: null });
  const state = JSON.parse((await gateway.store.readDeviceState(badId)) ?? '');
  t.match(
    state,
    { belief: { uplinks: 1 }, ping: { sequence: 1 }, unjudged: { why: WHY } },
    'the state before the failure',
  );
  const steps = (await body(gateway, `/why?id=${mac}`)).steps as { code: string }[];
  t.ok(steps.some(({ code }) => code === 'unjudged') && steps.some(({ code }) => code === 'judge-failed'));
  t.equal((await callOperator(gateway, 'GET', `/why?id=${encodeURIComponent(`${mac} 1/2`)}`)).status, 200);
  await bad.send(testBytes(4));
  const again = (await gateway.store.readEvents(merchantId, 0, 100)).filter((each) => each.mac === BAD);
  t.equal(again.length, 4, 'a repeat is recognised');
  const trace = await got(`http://127.0.0.1:${gateway.operatorPort}/trace?mac=${mac}&since=2100-01-01T00:00:00Z`, {
    headers: { authorization: `Bearer ${gateway.operatorToken}` },
  });
  t.equal(trace.body.split('\n').length, 2, 'a trace has its header');
});

for (const type of ['connect', 'disconnect', 'gateway'] as const)
  t.test(
    `when the judge fails at a ${type} event, uplinks are still acknowledged and the gateway can restart`,
    async (t) => {
      const judging = new FailingJudge((event) => event.type === type);
      const folder = tempFolder(t);
      const { gateway, heard } = await gatewayWith(t, judging, folder);
      await gateway.accounts.addMerchant(MERCHANT);
      const good = await connectedLock(t, gateway, GOOD);
      const { secret } = await gateway.accounts.addDevice({ mac: BAD });
      const bad = await TestLock.connect(t, gateway.mqttPort, BAD, secret);
      await bad.send(testBytes(1));
      const gone = waitForEvents(gateway, 'disconnected', 1);
      await bad.client.endAsync();
      await gone;
      await good.send(testBytes(1));
      const back = await TestLock.connect(t, gateway.mqttPort, BAD, secret);
      await back.send(testBytes(2));
      await good.send(testBytes(2));
      // This event is reported when the gateway stops and when the next one starts.
      if (type !== 'gateway') await heard(1);
      t.match(await body(gateway, '/readyz'), { status: 'ready' });
      await gateway.close();
      const next = (await gatewayWith(t, judging, folder)).gateway;
      const later = await TestLock.connect(t, next.mqttPort, BAD, secret);
      await later.send(testBytes(3));
      t.match(await body(next, '/readyz'), { status: 'ready', unjudged: [{ mac: formatMac(BAD), why: WHY }] });
    },
  );

t.test('a lock stays unjudged after a restart, and another version tries once to judge it', async (t) => {
  const judging = new FailingJudge(isUplink);
  const { gateway, heard, folder } = await gatewayWith(t, judging);
  await gateway.accounts.addMerchant(MERCHANT);
  const bad = await connectedLock(t, gateway, BAD);
  await bad.send(testBytes(1));
  await bad.send(testBytes(2));
  await heard(1);
  t.same(await unjudgedNotices(gateway), [`${formatMac(BAD)} open`]);
  await gateway.close();

  judging.asked = 0;
  const same = await gatewayWith(t, judging, folder);
  t.match(await body(same.gateway, '/readyz'), { unjudged: [{ mac: formatMac(BAD) }] });
  t.equal(judging.asked, 0, 'the same version does not try to judge');
  await same.gateway.close();

  judging.version = '1.0.1';
  const newer = await gatewayWith(t, judging, folder);
  t.ok(judging.asked > 0, 'another version tries');
  t.match(await body(newer.gateway, '/readyz'), { unjudged: [{ mac: formatMac(BAD), version: '1.0.1' }] });
  await newer.gateway.close();
  judging.asked = 0;
  await (await gatewayWith(t, judging, folder)).gateway.close();
  t.equal(judging.asked, 0, 'once');

  judging.version = '1.0.2';
  judging.fails = () => false;
  const mended = await gatewayWith(t, judging, folder);
  t.match(await body(mended.gateway, '/readyz'), { unjudged: [] });
  t.match(await body(mended.gateway, `/devices/${formatMac(BAD)}`), { unjudged: null, presence: 'asleep' });
  t.same(await unjudgedNotices(mended.gateway), [`${formatMac(BAD)} over`]);
});

t.test('device rejudge rebuilds a lock’s state from the log and stores the findings', async (t) => {
  const judging = new FailingJudge((event) => event.type === 'uplink' && event.uplink.sequence === 2);
  const { gateway, turned, heard } = await gatewayWith(t, judging);
  await gateway.accounts.addMerchant(MERCHANT);
  const bad = await connectedLock(t, gateway, BAD);
  const good = await connectedLock(t, gateway, GOOD);
  // The second, third and fourth ping repeat the previous lock state, which is a violation.
  for (let sequence = 1; sequence <= 4; sequence++) {
    await bad.send(testBytes(sequence));
    await good.send(testBytes(sequence));
  }
  await heard(1);
  const rejudge = (mac: string) => callOperator(gateway, 'POST', `/devices/${mac}/rejudge`);
  const mac = formatMac(BAD);
  t.match(await rejudge(mac), { status: 409, body: { code: 'judge-failed', detail: new RegExp(WHY) } });
  t.match(await rejudge(formatMac(GOOD)), { status: 409, body: { code: 'lock-is-judged' } });
  t.match(await rejudge(formatMac(testMac(7))), { status: 404 });
  judging.fails = () => false;
  t.match(await rejudge(mac), { status: 200, body: { mac, judged: true } });
  await heard(2);
  t.match(turned.at(-1), { mac: BAD, state: 'resumed' });
  t.match(await body(gateway, '/readyz'), { unjudged: [] });
  t.same(await unjudgedNotices(gateway), [`${mac} over`]);
  const shown = async (of: string) => (await body(gateway, `/devices/${of}`)) as Record<string, unknown>;
  const [one, other] = [await shown(mac), await shown(formatMac(GOOD))];
  t.equal(one.unjudged, null);
  t.equal(one.presence, 'online');
  t.same(
    { ...(one.state as object), received_at: 0 },
    { ...(other.state as object), received_at: 0 },
    'the same state as the judged lock’s',
  );
  const rules = (of: Record<string, unknown>): string[] => (of.findings as { rule: string }[]).map(({ rule }) => rule);
  t.same(rules(one).sort(), rules(other).sort(), 'with the same findings, each once');
  t.ok(rules(one).length > 0);
  const { entries } = (await body(gateway, '/audit?action=device.rejudge')) as { entries: { outcome: string }[] };
  t.equal(entries.length, 4);
  await bad.send(testBytes(5));
  t.equal(rules(await shown(mac)).length, rules(one).length + 1, 'and it is judged from then on');
});

/** An ingest on a store, without a gateway. */
async function ingestOn(test: Teardown, judging: VersionedJudge, wrap: (store: Store) => Store = (store) => store) {
  const opened = await openStore(tempFolder(test));
  test.teardown(() => opened.close());
  const store = wrap(opened);
  await opened.addMerchant(MERCHANT, 1);
  const senders: Sender[] = [];
  for (let number = 1; number <= 20; number++) {
    const mac = testMac(number);
    await opened.addDevice({ mac, merchant: MERCHANT, simulated: false, secretHash: Buffer.from(mac), nowMs: 1 });
    senders.push(await lockSender(opened, mac));
  }
  const clock = new ManualClock(START_MS);
  const events = new GatewayEvents();
  const locks = new Locks(store, clock, () => undefined, judging);
  test.teardown(() => locks.stop());
  const ingest = new Ingest({ commands: NO_COMMANDS, store, locks, clock, events, onStored: () => undefined });
  const take = (sender: Sender, sequence: number): Promise<string> =>
    new Promise((resolve) => {
      const bytes = testBytes(sequence, { timeMs: START_MS, power: RIDE_POWER, body: RIDE_PING });
      ingest.take(sender, bytes, (error) => resolve(error === undefined ? 'acked' : error.message));
    });
  return { opened, store, locks, ingest, senders, clock, events, take };
}

const AT_MS = START_MS + Seconds(1);
const HAPPENINGS: readonly DeviceEvent[] = [
  { type: 'tick', atMs: AT_MS },
  { type: 'connect', source: 'lock', atMs: AT_MS },
  { type: 'disconnect', source: 'lock', cause: 'dropped', atMs: AT_MS },
  { type: 'command', id: 1, command: { type: 'locate-gps' }, atMs: AT_MS } as DeviceEvent,
  { type: 'gateway', state: 'start', atMs: AT_MS },
];

for (const event of HAPPENINGS)
  t.test(`when the judge fails at a ${event.type}, only that lock is not judged`, async (t) => {
    const judging = new FailingJudge(({ type }) => type === event.type);
    const { ingest, locks, senders, take, opened } = await ingestOn(t, judging);
    const [bad, good] = senders as [Sender, Sender];
    t.equal(await take(bad, 1), 'acked');
    for (const { deviceId, mac } of [bad, good]) ingest.recordEvent(deviceId, mac, event);
    t.equal(await take(good, 1), 'acked');
    t.equal(await take(bad, 2), 'acked');
    await ingest.idle();
    t.same(
      [...locks.unjudged()].map(({ lock }) => lock.mac),
      [BAD],
    );
    t.equal(locks.find(bad.deviceId)?.dueMs, Number.POSITIVE_INFINITY, 'the lock gets no more ticks');
    const state = JSON.parse((await opened.readDeviceState(bad.deviceId)) ?? '');
    t.match(
      state,
      { unjudged: { why: WHY }, ping: { sequence: 1 }, belief: { uplinks: 1 } },
      'the state before the failure',
    );
  });

t.test('an acknowledgement of a command is stored with the command’s state even if the judge fails', async (t) => {
  const judging = new FailingJudge((event) => event.type === 'uplink' && event.uplink.body.kind === 'ack');
  const changes: unknown[] = [];
  const { ingest, senders, take, locks } = await ingestOn(t, judging, (store) =>
    withOverrides(store, {
      append: async (commit: Commit) => {
        changes.push(...(commit.commands ?? []));
        await store.append({ ...commit, commands: [] });
      },
    }),
  );
  const [bad, good] = senders as [Sender, Sender];
  const body = { kind: 'ack', commandId: 7, result: 'ok', detail: '', highWindow: null } as const;
  await new Promise<void>((resolve, reject) => {
    ingest.take(bad, testBytes(1, { body }), (error) => (error === undefined ? resolve() : reject(error)));
  });
  t.equal(await take(good, 1), 'acked');
  t.match(changes, [{ type: 'acknowledged', id: 7, state: 'done' }]);
  t.equal([...locks.unjudged()].length, 1);
});

t.test('a gateway starts even if the judge fails at a lock’s log', async (t) => {
  let commits = 0;
  const { ingest, senders, clock, opened, take } = await ingestOn(t, CURRENT_JUDGE, (store) =>
    withOverrides(store, {
      // The stored states are those after the first pings; only the log has the later pings.
      append: async (commit: Commit) => {
        commits += 1;
        await store.append(commits > 2 ? { ...commit, states: new Map() } : commit);
      },
    }),
  );
  const [bad, good] = senders as [Sender, Sender];
  for (let sequence = 1; sequence <= 5; sequence++) for (const sender of [bad, good]) await take(sender, sequence);
  await ingest.idle();
  const judging = new FailingJudge((event) => event.type === 'uplink' && event.uplink.sequence === 4);
  const locks = new Locks(opened, clock, () => undefined, judging);
  await locks.load();
  locks.stop();
  const [one, other] = [locks.find(bad.deviceId)?.state, locks.find(good.deviceId)?.state];
  t.match(
    one,
    { ping: { sequence: 3 }, belief: { uplinks: 3 }, unjudged: { why: WHY } },
    'judged up to where it fails',
  );
  t.match(other, { ping: { sequence: 5 }, belief: { uplinks: 5 } });
  t.equal(other?.unjudged, undefined);
});

t.test('after a failed commit, only the states of its locks are read again', async (t) => {
  let fails = false;
  const read: (readonly number[] | undefined)[] = [];
  const { clock, senders, take } = await ingestOn(t, CURRENT_JUDGE, (store) =>
    withOverrides(store, {
      append: async (commit: Commit) => {
        if (fails) throw new StoreFailure('append', new Error('no room'));
        await store.append(commit);
      },
      readDeviceStates: async (deviceIds?: readonly number[]) => {
        const states = await store.readDeviceStates(deviceIds);
        read.push(states.map(({ deviceId }) => deviceId));
        return states;
      },
    }),
  );
  for (const sender of senders) t.equal(await take(sender, 1), 'acked');
  fails = true;
  const [first] = senders as [Sender];
  t.match(await take(first, 2), /no room/);
  fails = false;
  clock.advance(Seconds(1));
  const answer = take(first, 2);
  t.equal(await answer, 'acked');
  t.same(read, [[first.deviceId]]);
});

t.test('locks whose states can’t be read wait to be judged, and their uplinks are acknowledged', async (t) => {
  let [failsToWrite, failsToRead] = [false, false];
  const site = await ingestOn(t, CURRENT_JUDGE, (store) =>
    withOverrides(store, {
      append: async (commit: Commit) => {
        if (failsToWrite) throw new StoreFailure('append', new Error('no room'));
        await store.append(commit);
      },
      readDeviceStates: async (deviceIds?: readonly number[]) => {
        if (failsToRead) throw new StoreFailure('read the devices', new Error('a bad sector'));
        return await store.readDeviceStates(deviceIds);
      },
    }),
  );
  const { clock, senders, take, locks, events, ingest } = site;
  const [bad, good] = senders as [Sender, Sender];
  const turned: string[] = [];
  const changeSignal = new ChangeSignal();
  events.on('judging', ({ mac, state, why }) => {
    turned.push(`${mac} ${state} ${why}`);
    changeSignal.notify();
  });
  for (const sender of [bad, good]) t.equal(await take(sender, 1), 'acked');
  [failsToWrite, failsToRead] = [true, true];
  t.match(await take(bad, 2), /no room/);
  failsToWrite = false;
  clock.advance(Seconds(1));
  t.equal(await take(good, 2), 'acked');
  t.equal(await take(bad, 2), 'acked', 'the uplink is stored, and is not judged with a state that was never stored');
  t.equal(await take(bad, 3), 'acked');
  t.equal(await take(good, 3), 'acked');
  t.match(turned, [/^A4C138000001 stopped its stored state could not be read: .*a bad sector/]);
  failsToRead = false;
  await changeSignal.waitUntil(
    () => turned.length === 2,
    PATIENCE,
    () => turned.join(),
  );
  t.equal(turned[1], `${BAD} resumed `);
  t.equal(await take(bad, 4), 'acked');
  await ingest.idle();
  t.match(locks.find(bad.deviceId)?.state, { ping: { sequence: 4 }, belief: { uplinks: 4 } }, 'nothing is missing');
  t.match(locks.find(good.deviceId)?.state, { ping: { sequence: 3 }, belief: { uplinks: 3 } });
  t.same([...locks.unjudged()], []);
});

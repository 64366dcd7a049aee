/**
 * An exception in the judge, the code that checks a lock’s events against the power model: from then on the lock is
 * "unjudged". Its pings are stored, acknowledged and delivered without the check, its state stays unchanged, and there
 * is a notice; other locks are not affected. failing-judge.test.ts tests ingest without a gateway.
 */
import got from 'got';
import t, { type Test } from 'tap';
import type { Gateway, GatewayOptions } from '../../../gateway/gateway.js';
import type { VersionedJudge } from '../../../gateway/ingest/judging.js';
import type { JudgingTurned } from '../../../gateway/lock-events.js';
import { LOG_START } from '../../../gateway/store/contract/log/log-position.js';
import { Minutes } from '../../../proto/clock.js';
import type { JudgeEvent } from '../../../proto/power/judge/event.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { ChangeSignal } from '../../helpers/clocks/change-signal.js';
import { BAD_MAC, ERROR_MESSAGE, FailingJudge } from '../../helpers/gateway/failing-judge.js';
import { MERCHANT, openGateway, testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/** The lock at which the judge never fails. */
const GOOD = testMac(2);
/** A wait that takes longer fails the test. */
const MAX_WAIT_SECONDS = 20;

t.setTimeout(Minutes(2));

/** A gateway with this judge, and the changes of judging that it reports. */
async function gatewayWith(
  test: Test,
  judging: VersionedJudge,
  folder = tempFolder(test),
  options: GatewayOptions = {},
) {
  const gateway = await openGateway(test, folder, { judging, ...options });
  const judgingChanges: JudgingTurned[] = [];
  const changeSignal = new ChangeSignal();
  gateway.events.on('judging', (event) => {
    judgingChanges.push(event);
    changeSignal.notify();
  });
  const waitForChanges = (count: number): Promise<void> =>
    changeSignal.waitUntil(
      () => judgingChanges.length >= count,
      MAX_WAIT_SECONDS,
      () => `${judgingChanges.length} of ${count} changes`,
    );
  return { gateway, judgingChanges, waitForChanges, folder };
}

/** The body of the operator's interface at this path. */
async function body(gateway: Gateway, path: string): Promise<Record<string, unknown>> {
  return (await callOperator(gateway, 'GET', path)).body as Record<string, unknown>;
}

/** The notices about unjudged locks, such as `A4:C1:38:00:00:01 open`. */
async function unjudgedNotices(gateway: Gateway): Promise<string[]> {
  const { notices } = (await body(gateway, '/notices?kind=lock-unjudged')) as {
    notices: { subject: string; resolved_at: string | null }[];
  };
  return notices.map(({ subject, resolved_at }) => `${subject} ${resolved_at === null ? 'open' : 'over'}`);
}

const isUplink = ({ type }: JudgeEvent): boolean => type === 'uplink';

t.test('pings of an unjudged lock are stored, acknowledged and delivered, and operators get a notice', async (t) => {
  const judging = new FailingJudge((event) => event.type === 'uplink' && event.uplink.sequence === 2);
  const { gateway, judgingChanges, waitForChanges } = await gatewayWith(t, judging);
  const receiver = await testReceiver(t);
  await gateway.accounts.addMerchant(MERCHANT);
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const bad = await connectedLock(t, gateway, BAD_MAC);
  const good = await connectedLock(t, gateway, GOOD);
  const arrived = receiver.waitForRequests(8);
  for (let sequence = 1; sequence <= 4; sequence++) {
    await bad.send(testBytes(sequence));
    await good.send(testBytes(sequence));
  }
  await waitForChanges(1);
  t.match(judgingChanges, [{ mac: BAD_MAC, state: 'stopped', why: ERROR_MESSAGE }]);
  await arrived;
  const { id: badId, merchantId } = (await gateway.store.findDevice(BAD_MAC))?.device ?? { id: 0, merchantId: 0 };
  const stored = (await gateway.store.readEvents(merchantId, LOG_START, 100)).map(
    ({ mac, sequence }) => `${mac} ${sequence}`,
  );
  t.same(stored.filter((each) => each.startsWith(BAD_MAC)).length, 4);
  t.equal((await got(`http://127.0.0.1:${gateway.httpPort}/readyz`)).statusCode, 200);
  const mac = formatMac(BAD_MAC);
  t.match(await body(gateway, '/readyz'), { status: 'ready', reasons: [], unjudged: [{ mac, why: ERROR_MESSAGE }] });
  t.same(await unjudgedNotices(gateway), [`${mac} open`]);
  t.match(await body(gateway, `/devices/${mac}`), {
    unjudged: { why: ERROR_MESSAGE, version: '1.0.0' },
    presence: 'online',
    uplinks: [{}, {}, {}, {}],
    state: { reason: 'REASON_STATE_PING' },
  });
  t.match(await body(gateway, `/devices/${formatMac(GOOD)}`), { unjudged: null });
  const state = JSON.parse((await gateway.store.readDeviceState(badId)) ?? '');
  t.match(
    state,
    { belief: { uplinks: 1 }, ping: { sequence: 1 }, unjudged: { why: ERROR_MESSAGE } },
    'the state before the failure',
  );
  const steps = (await body(gateway, `/why?id=${mac}`)).steps as { code: string }[];
  t.ok(steps.some(({ code }) => code === 'unjudged') && steps.some(({ code }) => code === 'judge-failed'));
  t.equal((await callOperator(gateway, 'GET', `/why?id=${encodeURIComponent(`${mac} 1/2`)}`)).status, 200);
  await bad.send(testBytes(4));
  const storedAfterRepeat = (await gateway.store.readEvents(merchantId, LOG_START, 100)).filter(
    (each) => each.mac === BAD_MAC,
  );
  t.equal(storedAfterRepeat.length, 4, 'a repeat is recognised');
  const trace = await got(`http://127.0.0.1:${gateway.operatorPort}/trace?mac=${mac}&since=2100-01-01T00:00:00Z`, {
    headers: { authorization: `Bearer ${gateway.operatorToken}` },
  });
  t.equal(trace.body.split('\n').length, 2, 'a trace without events has its header');
});

for (const type of ['connect', 'disconnect', 'gateway'] as const)
  t.test(
    `when the judge fails at a ${type} event, uplinks are still acknowledged and the gateway can restart`,
    async (t) => {
      const judging = new FailingJudge((event) => event.type === type);
      const folder = tempFolder(t);
      const { gateway, waitForChanges } = await gatewayWith(t, judging, folder);
      await gateway.accounts.addMerchant(MERCHANT);
      const good = await connectedLock(t, gateway, GOOD);
      const { secret } = await gateway.accounts.addDevice({ mac: BAD_MAC });
      const bad = await TestLock.connect(t, gateway.mqttPort, BAD_MAC, secret);
      await bad.send(testBytes(1));
      const gone = waitForEvents(gateway, 'disconnected', 1);
      await bad.client.endAsync();
      await gone;
      await good.send(testBytes(1));
      const back = await TestLock.connect(t, gateway.mqttPort, BAD_MAC, secret);
      await back.send(testBytes(2));
      await good.send(testBytes(2));
      // This event is reported when the gateway stops and when the next one starts.
      if (type !== 'gateway') await waitForChanges(1);
      t.match(await body(gateway, '/readyz'), { status: 'ready' });
      await gateway.close();
      const next = (await gatewayWith(t, judging, folder)).gateway;
      const later = await TestLock.connect(t, next.mqttPort, BAD_MAC, secret);
      await later.send(testBytes(3));
      t.match(await body(next, '/readyz'), {
        status: 'ready',
        unjudged: [{ mac: formatMac(BAD_MAC), why: ERROR_MESSAGE }],
      });
    },
  );

t.test('a lock stays unjudged after a restart, and another version tries once to judge it', async (t) => {
  const judging = new FailingJudge(isUplink);
  const { gateway, waitForChanges, folder } = await gatewayWith(t, judging);
  await gateway.accounts.addMerchant(MERCHANT);
  const bad = await connectedLock(t, gateway, BAD_MAC);
  await bad.send(testBytes(1));
  await bad.send(testBytes(2));
  await waitForChanges(1);
  t.same(await unjudgedNotices(gateway), [`${formatMac(BAD_MAC)} open`]);
  await gateway.close();

  judging.callCount = 0;
  const sameVersion = await gatewayWith(t, judging, folder);
  t.match(await body(sameVersion.gateway, '/readyz'), { unjudged: [{ mac: formatMac(BAD_MAC) }] });
  t.equal(judging.callCount, 0, 'the same version does not try to judge');
  await sameVersion.gateway.close();

  judging.version = '1.0.1';
  const newerVersion = await gatewayWith(t, judging, folder);
  t.ok(judging.callCount > 0, 'another version tries');
  t.match(await body(newerVersion.gateway, '/readyz'), { unjudged: [{ mac: formatMac(BAD_MAC), version: '1.0.1' }] });
  await newerVersion.gateway.close();
  judging.callCount = 0;
  await (await gatewayWith(t, judging, folder)).gateway.close();
  t.equal(judging.callCount, 0, 'another version tries only once');

  judging.version = '1.0.2';
  judging.throwsAt = () => false;
  const repaired = await gatewayWith(t, judging, folder);
  t.match(await body(repaired.gateway, '/readyz'), { unjudged: [] });
  t.match(await body(repaired.gateway, `/devices/${formatMac(BAD_MAC)}`), { unjudged: null, presence: 'asleep' });
  t.same(await unjudgedNotices(repaired.gateway), [`${formatMac(BAD_MAC)} over`]);
});

t.test('device rejudge rebuilds a lock’s state from the log and stores the findings', async (t) => {
  const judging = new FailingJudge((event) => event.type === 'uplink' && event.uplink.sequence === 2);
  const { gateway, judgingChanges, waitForChanges } = await gatewayWith(t, judging);
  await gateway.accounts.addMerchant(MERCHANT);
  const bad = await connectedLock(t, gateway, BAD_MAC);
  const good = await connectedLock(t, gateway, GOOD);
  // The second, third and fourth ping repeat the previous lock state, which is a violation.
  for (let sequence = 1; sequence <= 4; sequence++) {
    await bad.send(testBytes(sequence));
    await good.send(testBytes(sequence));
  }
  await waitForChanges(1);
  const rejudge = (mac: string) => callOperator(gateway, 'POST', `/devices/${mac}/rejudge`);
  const mac = formatMac(BAD_MAC);
  t.match(await rejudge(mac), { status: 409, body: { code: 'judge-failed', detail: new RegExp(ERROR_MESSAGE) } });
  t.match(await rejudge(formatMac(GOOD)), { status: 409, body: { code: 'lock-is-judged' } });
  t.match(await rejudge(formatMac(testMac(7))), { status: 404 });
  judging.throwsAt = () => false;
  t.match(await rejudge(mac), { status: 200, body: { mac, judged: true } });
  await waitForChanges(2);
  t.match(judgingChanges.at(-1), { mac: BAD_MAC, state: 'resumed' });
  t.match(await body(gateway, '/readyz'), { unjudged: [] });
  t.same(await unjudgedNotices(gateway), [`${mac} over`]);
  const shown = async (of: string) => (await body(gateway, `/devices/${of}`)) as Record<string, unknown>;
  const [badLock, goodLock] = [await shown(mac), await shown(formatMac(GOOD))];
  t.equal(badLock.unjudged, null);
  t.equal(badLock.presence, 'online');
  t.same(
    { ...(badLock.state as object), received_at: 0 },
    { ...(goodLock.state as object), received_at: 0 },
    'the same state as the judged lock’s',
  );
  const rules = (of: Record<string, unknown>): string[] => (of.findings as { rule: string }[]).map(({ rule }) => rule);
  t.same(rules(badLock).sort(), rules(goodLock).sort(), 'with the same findings, each once');
  t.ok(rules(badLock).length > 0, 'there are findings to compare');
  const { entries } = (await body(gateway, '/audit?action=device.rejudge')) as { entries: { outcome: string }[] };
  t.equal(entries.length, 4, 'each call is in the audit log, refused ones too');
  await bad.send(testBytes(5));
  t.equal(rules(await shown(mac)).length, rules(badLock).length + 1, 'and it is judged from then on');
});

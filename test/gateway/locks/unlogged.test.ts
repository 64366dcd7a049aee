/**
 * A state that is made by judging a lock's whole log again keeps the two members that the log can't restore:
 * `reported`, the troubles that the merchant got an event about, and `usedTo`, the newest key of the uplinks before an
 * erasure. So the merchant does not get the same event twice.
 */
import path from 'node:path';
import t, { type Test } from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import type { DeviceState } from '../../../gateway/locks/device-state.js';
import { openDurable } from '../../../gateway/store/sqlite/durable-file.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { BAD_MAC, FailingJudge } from '../../helpers/gateway/failing-judge.js';
import { MERCHANT, openGateway, testBytes, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { TestLock } from '../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const ROUTE = `/devices/${formatMac(BAD_MAC)}`;
/** The sequence at which the judge fails, where it is to fail. */
const FAILS_AT = 4;

/** A ping that says that the battery is low. */
function lowBytes(sequence: number): Buffer {
  const reason = 'REASON_CLOSE_CONNECTION' as const;
  return testBytes(sequence, { body: { kind: 'close_connection', reason, lockState: 'locked', batteryPercent: 7 } });
}

async function stateOf(gateway: Gateway): Promise<DeviceState> {
  return JSON.parse((await gateway.store.findDevice(BAD_MAC))?.state ?? 'null') as DeviceState;
}

/**
 * A gateway with a lock that was erased after its second ping, and whose third one says that the battery is low, as its
 * merchant was told.
 */
async function setUp(test: Test) {
  const folder = tempFolder(test);
  const judging = new FailingJudge((event) => event.type === 'uplink' && event.uplink.sequence === FAILS_AT);
  const gateway = await openGateway(test, folder, { judging });
  await gateway.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(test);
  await gateway.accounts.addWebhookUrl({ url: receiver.url, filter: { events: ['battery'] } });
  const { secret } = await gateway.accounts.addDevice({ mac: BAD_MAC });
  const connect = (to: Gateway): Promise<TestLock> => TestLock.connect(test, to.mqttPort, BAD_MAC, secret);
  const erased = await connect(gateway);
  await erased.send(testBytes(1));
  await erased.send(testBytes(2));
  await callOperator(gateway, 'POST', `${ROUTE}/erase`);
  await erased.closed;
  const told = receiver.waitForRequests(1);
  const lock = await connect(gateway);
  await lock.send(lowBytes(3));
  await told;
  const { reported, usedTo } = await stateOf(gateway);
  test.match({ reported, usedTo }, { reported: { isBatteryLow: true }, usedTo: { boot: 1, sequence: 2 } });

  /** Checks that the state has both members, and that the merchant’s next event says that the battery is charged. */
  const check = async (present: Gateway): Promise<void> => {
    const state = await stateOf(present);
    test.same({ reported: state.reported, usedTo: state.usedTo }, { reported, usedTo });
    const returned = await connect(present);
    await returned.send(lowBytes(FAILS_AT + 1));
    await returned.send(testBytes(FAILS_AT + 2));
    await receiver.waitForRequests(2);
    const bodies = receiver.requests.map(({ body }) => String(body));
    test.match(bodies, [/"low"/, /"charged"/]);
  };
  return { folder, judging, gateway, lock, check };
}

t.test('a reflash mark', async (t) => {
  const { gateway, check } = await setUp(t);
  t.match(await callOperator(gateway, 'POST', `${ROUTE}/reflashed`), { status: 200 });
  await check(gateway);
});

t.test('device rejudge, after the judge failed', async (t) => {
  const { gateway, judging, lock, check } = await setUp(t);
  await lock.send(lowBytes(FAILS_AT));
  judging.throwsAt = () => false;
  t.match(await callOperator(gateway, 'POST', `${ROUTE}/rejudge`), { status: 200 });
  await check(gateway);
});

t.test('a start with another version, after the judge failed', async (t) => {
  const { folder, gateway, lock, check } = await setUp(t);
  await lock.send(lowBytes(FAILS_AT));
  await gateway.close();
  const judging = Object.assign(new FailingJudge(() => false), { version: '2.0.0' });
  const next = await openGateway(t, folder, { judging });
  t.equal((await stateOf(next)).unjudged, undefined);
  await check(next);
});

t.test('a start with a state whose checksum is wrong', async (t) => {
  const { folder, gateway, check } = await setUp(t);
  await gateway.close();
  const db = openDurable(path.join(folder, 'lockgate.sqlite'));
  // A trigger would compute the sum anew at an update that does not set it.
  db.exec('UPDATE device_state SET sum = sum + 1');
  db.close();
  const next = await openGateway(t, folder);
  t.match(await waitForEvents(next, 'state-rebuilt', 1), [{ mac: BAD_MAC, from: 'log' }]);
  await check(next);
});

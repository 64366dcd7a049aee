/**
 * A gateway that shares its store with others: locks are claimed before they connect, adopted when their gateway is
 * gone, and released when another one asks; URLs likewise. The other gateways are scripted.
 */
import t from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { LOG_START } from '../../../gateway/store/contract/log/log-position.js';
import { systemClock } from '../../../proto/clock.js';
import { testBytes, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { runLoopTurns } from '../../helpers/mqtt/manual-broker.js';
import { connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { ScriptedOwnership } from '../../helpers/store/scripted-ownership.js';
import type { Teardown } from '../../helpers/store/temp-folder.js';

const MAC = testMac();

async function setUp(test: Teardown): Promise<{ gateway: Gateway; others: ScriptedOwnership }> {
  const others = new ScriptedOwnership();
  return { gateway: await testGateway(test, { wrapStore: others.wrap }), others };
}

async function sequences({ store }: Gateway): Promise<number[]> {
  return (await store.readEvents(1, LOG_START, 99)).map(({ sequence }) => sequence);
}

t.test('a lock is claimed when it connects; one that another gateway keeps gets CONNACK 3', async (t) => {
  const { gateway, others } = await setUp(t);
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  others.claims.set('1/lock', { isGranted: false });
  const refused = waitForEvents(gateway, 'refused', 1);
  await t.rejects(TestLock.connect(t, gateway.mqttPort, MAC, secret), /unavailable/i);
  t.match(await refused, [{ why: /another gateway serves it/ }]);
  others.claims.delete('1/lock');
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await lock.send(testBytes(1));
  t.same(await sequences(gateway), [1]);
  t.ok(others.owned.has('1/lock'));
  t.notOk(others.owned.has('1/phone'), 'its phones are another part');
});

t.test('a lock that another gateway asks for is drained, and gone with its state', async (t) => {
  const { gateway, others } = await setUp(t);
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  const disconnected = waitForEvents(gateway, 'disconnected', 1);
  others.wish({ deviceId: 1, source: 'lock' });
  await lock.closed;
  t.match(await disconnected, [{ cause: 'takeover' }]);
  for (; others.released.length === 0; ) await runLoopTurns();
  t.same(others.released, [{ deviceId: 1, source: 'lock' }]);
  const stored = JSON.parse((await gateway.store.readDeviceState(1)) ?? '{}');
  t.match(stored.ping, { sequence: 1 }, 'its state is stored');
  t.equal(stored.belief.isConnected, false);
});

t.test('a lock comes back with the state that another gateway stored', async (t) => {
  const { gateway, others } = await setUp(t);
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const first = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await first.send(testBytes(1));
  others.wish({ deviceId: 1, source: 'lock' });
  await first.closed;
  const second = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await second.send(testBytes(1));
  await second.send(testBytes(2));
  t.same(await sequences(gateway), [1, 2], 'the repeat is known as one');
});

t.test('a lock whose gateway is gone is adopted, and its silence counts again from then on', async (t) => {
  const { gateway, others } = await setUp(t);
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  others.wish({ deviceId: 1, source: 'lock' });
  for (; others.released.length === 0; ) await runLoopTurns();
  const changed = waitForEvents(gateway, 'locks-changed', 1);
  const unheardSinceMs = systemClock.now();
  others.orphans = [{ deviceId: 1, source: 'lock', unheardSinceMs }];
  await changed;
  const events: unknown[] = [];
  for await (const chunk of gateway.store.readLog(1, 50))
    for (const entry of chunk) if (entry.type === 'lock-event') events.push(entry.event);
  t.match(events.slice(-2), [
    { event: 'gateway', state: 'stop' },
    { event: 'gateway', state: 'start' },
  ]);
});

t.test('a URL is followed by its owner only, and given to another gateway that is to have it', async (t) => {
  const { gateway, others } = await setUp(t);
  const receiver = await testReceiver(t);
  const { url } = await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const lock = await connectedLock(t, gateway, MAC);
  const delivered = waitForEvents(gateway, 'delivery', 1);
  await lock.send(testBytes(1));
  await delivered;
  t.ok(others.ownedUrls.has(url.id));
  others.wishUrl(url.id);
  for (; others.ownedUrls.size > 0; ) await runLoopTurns();
  await lock.send(testBytes(2));
  t.equal(receiver.requests.length, 1, 'it sends nothing more');
  others.urlsElsewhere.clear();
  await waitForEvents(gateway, 'delivery', 1);
  t.equal(receiver.requests.length, 2, 'when the other gateway is gone, it goes on');
});

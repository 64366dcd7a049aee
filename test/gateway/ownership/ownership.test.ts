/**
 * Several gateways may share a store. Each lock and each webhook URL has one gateway as its owner, which alone writes
 * its state. A gateway claims a lock before it connects, adopts one whose gateway is gone, and releases it when another
 * gateway asks; URLs likewise. Here one gateway is real, and ScriptedOwnership plays the others in its store.
 */
import mqtt from 'mqtt';
import t from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { LOG_START } from '../../../gateway/store/contract/log/log-position.js';
import type { Claim } from '../../../gateway/store/contract/slots/ownership.js';
import { systemClock } from '../../../proto/clock.js';
import { testBytes, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { runLoopTurns } from '../../helpers/mqtt/manual-broker.js';
import { connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { ScriptedOwnership } from '../../helpers/store/scripted-ownership.js';
import type { Teardown } from '../../helpers/store/temp-folder.js';

/** In a new store, the first merchant and the first lock have this id. */
const FIRST_ID = 1;
const MAC = testMac();

async function setUp(test: Teardown): Promise<{ gateway: Gateway; others: ScriptedOwnership }> {
  const others = new ScriptedOwnership();
  return { gateway: await testGateway(test, { wrapStore: others.wrap }), others };
}

/** The sequence numbers of the first merchant's stored events. */
async function storedSequences({ store }: Gateway): Promise<number[]> {
  return (await store.readEvents(FIRST_ID, LOG_START, 99)).map(({ sequence }) => sequence);
}

t.test(
  'a lock is claimed when it connects; a lock that another gateway owns gets CONNACK 3 (unavailable)',
  async (t) => {
    const { gateway, others } = await setUp(t);
    const { secret } = await gateway.accounts.addDevice({ mac: MAC });
    // A lock and its phones are claimed each for itself, as `id/lock` and `id/phone`.
    others.claims.set('1/lock', { isGranted: false });
    const refused = waitForEvents(gateway, 'refused', 1);
    await t.rejects(TestLock.connect(t, gateway.mqttPort, MAC, secret), /unavailable/i);
    t.match(await refused, [{ why: /another gateway serves the lock/ }]);
    others.claims.delete('1/lock');
    const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
    await lock.send(testBytes(1));
    t.same(await storedSequences(gateway), [1]);
    t.ok(others.owned.has('1/lock'));
    t.notOk(others.owned.has('1/phone'), 'its phones are claimed separately');
  },
);

t.test('a lock that another gateway asks for is disconnected and released, after its state was stored', async (t) => {
  const { gateway, others } = await setUp(t);
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  const disconnected = waitForEvents(gateway, 'disconnected', 1);
  others.wish({ deviceId: 1, source: 'lock' });
  await lock.closed;
  t.match(await disconnected, [{ cause: 'takeover' }]);
  for (; others.released.length === 0; ) await runLoopTurns();
  t.same(others.released, [{ deviceId: 1, source: 'lock' }]);
  const stored = JSON.parse((await gateway.store.readDeviceState(FIRST_ID)) ?? '{}');
  t.match(stored.ping, { sequence: 1 }, 'its last ping is stored');
  t.equal(stored.belief.isConnected, false);
});

t.test('a client that leaves while its lock is claimed keeps the lock from nobody', async (t) => {
  const { gateway, others } = await setUp(t);
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  let grant: (claim: Claim) => void = () => undefined;
  const claim = new Promise<Claim>((resolve) => {
    grant = resolve;
  });
  others.claims.set('1/lock', claim);
  const identity = { clientId: MAC, username: MAC, password: secret };
  const port = gateway.mqttPort;
  const client = mqtt.connect({ host: '127.0.0.1', port, reconnectPeriod: 0, protocolVersion: 4, ...identity });
  client.on('error', () => undefined);
  for (; others.claimCount === 0; ) await runLoopTurns();
  await client.endAsync(true);
  // Enough for the gateway to notice that the connection has closed.
  for (let turns = 0; turns < 50; turns += 1) await runLoopTurns();
  grant({ isGranted: true, unheardSinceMs: null });
  for (; !others.owned.has('1/lock'); ) await runLoopTurns();
  others.claims.delete('1/lock');
  await TestLock.connect(t, port, MAC, secret).then((lock) => lock.client.endAsync(true));
  others.wish({ deviceId: 1, source: 'lock' });
  for (; others.released.length === 0; ) await runLoopTurns();
  t.same(others.released, [{ deviceId: 1, source: 'lock' }], 'the lock is released when another gateway asks');
});

t.test('an account is changed once no other gateway serves the lock or its phones, and not before', async (t) => {
  const { gateway, others } = await setUp(t);
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  others.claims.set('1/phone', { isGranted: false });
  await t.rejects(gateway.accounts.rotateLockSecret(MAC), { code: 'busy' });
  await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  others.claims.delete('1/phone');
  await gateway.accounts.rotateLockSecret(MAC);
  t.same([...others.owned], ['1/lock', '1/phone'], 'it has claimed both');
  await t.rejects(TestLock.connect(t, gateway.mqttPort, MAC, secret), /not authorized/i);
});

t.test('a lock that connects again after its release continues from its stored state', async (t) => {
  const { gateway, others } = await setUp(t);
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const first = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await first.send(testBytes(1));
  others.wish({ deviceId: 1, source: 'lock' });
  await first.closed;
  const second = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await second.send(testBytes(1));
  await second.send(testBytes(2));
  t.same(await storedSequences(gateway), [1, 2], 'the uplink sent twice is recognized');
});

t.test(
  'a lock whose gateway is gone is adopted, and the gap is recorded so that it is not judged as silence',
  async (t) => {
    const { gateway, others } = await setUp(t);
    const lock = await connectedLock(t, gateway, MAC);
    await lock.send(testBytes(1));
    others.wish({ deviceId: 1, source: 'lock' });
    for (; others.released.length === 0; ) await runLoopTurns();
    const adopted = waitForEvents(gateway, 'locks-changed', 1);
    const unheardSinceMs = systemClock.now();
    others.orphans = [{ deviceId: 1, source: 'lock', unheardSinceMs }];
    await adopted;
    const events: unknown[] = [];
    for await (const chunk of gateway.store.readLog(FIRST_ID, 50))
      for (const entry of chunk) if (entry.type === 'lock-event') events.push(entry.event);
    t.match(
      events.slice(-2),
      [
        { event: 'gateway', state: 'stop' },
        { event: 'gateway', state: 'start' },
      ],
      'as if this gateway had been stopped meanwhile',
    );
  },
);

t.test('only a URL’s owner delivers to it: never after its release, and again when it is free', async (t) => {
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
  t.equal(receiver.requests.length, 1, 'a released URL gets nothing from this gateway');
  others.urlsElsewhere.clear();
  await waitForEvents(gateway, 'delivery', 1);
  t.equal(receiver.requests.length, 2, 'when the other gateway is gone, this one delivers again');
});

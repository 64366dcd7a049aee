/** A lock on a real gateway: who may connect, what a lock may send, and what happens to its uplinks. */
import t from 'tap';
import { StoreFailure } from '../../../gateway/store/contract/errors.js';
import { LOG_START } from '../../../gateway/store/contract/log/log-position.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import {
  MERCHANT,
  openGateway,
  testBytes,
  testGateway,
  testMac,
  testUplink,
  waitForEvents,
} from '../../helpers/gateway/test-gateway.js';
import { connackCode, connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac();
/** In a new store, the first merchant and the first lock have this id. */
const FIRST_ID = 1;
/** The CONNACK code of a refused login. */
const NOT_AUTHORIZED = 5;

t.test('a lock authenticates with its MAC as client id and user name, and its secret', async (t) => {
  const gateway = await testGateway(t);
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const other = await gateway.accounts.addDevice({ mac: testMac(2) });
  const good = { clientId: MAC, username: MAC, password: secret };
  t.equal(await connackCode(gateway.mqttPort, good), 0);
  const refused = {
    'a wrong secret': { ...good, password: `${secret}x` },
    'an empty secret': { ...good, password: '' },
    'no password': { clientId: MAC, username: MAC },
    'another lock’s secret': { ...good, password: other.secret },
    'an unknown MAC': { ...good, clientId: testMac(3), username: testMac(3) },
    'a client id that isn’t the MAC': { ...good, clientId: 'mqttjs_1' },
    'another lock’s client id': { ...good, clientId: testMac(2) },
    'another spelling of the MAC': { ...good, clientId: MAC.toLowerCase(), username: MAC.toLowerCase() },
    'a will': { ...good, will: { topic: 'up', payload: Buffer.from('x'), qos: 0, retain: false } },
  } as const;
  for (const [title, options] of Object.entries(refused)) {
    const refusal = waitForEvents(gateway, 'refused', 1);
    t.equal(await connackCode(gateway.mqttPort, options), NOT_AUTHORIZED, title);
    t.match(await refusal, [{ what: 'connect' }], `${title}: reported to operators`);
  }
  await gateway.accounts.rotateLockSecret(MAC);
  t.equal(await connackCode(gateway.mqttPort, good), NOT_AUTHORIZED, 'an old secret is refused after it was rotated');
});

t.test('an uplink is stored before it is acknowledged, and once', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, MAC);
  const announced = waitForEvents(gateway, 'uplink', 3);
  await lock.send(testBytes(1));
  t.match(await gateway.store.readEvents(FIRST_ID, LOG_START, 9), [
    { mac: MAC, boot: 1, sequence: 1, bytes: testBytes(1) },
  ]);
  await lock.send(testBytes(1));
  await lock.send(testBytes(2));
  t.match(
    await gateway.store.readEvents(FIRST_ID, LOG_START, 9),
    [{ sequence: 1 }, { sequence: 2 }],
    'the repeat makes no event',
  );
  t.match(await announced, [{ repeated: false }, { repeated: true }, { repeated: false }]);
  const reading = await gateway.store.findDevice(MAC);
  t.match(JSON.parse(reading?.state ?? 'null'), { belief: { lockState: 'locked' }, ping: { sequence: 2 } });
});

t.test('a late uplink is stored and does not overwrite newer state', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(5));
  await lock.send(testBytes(4));
  const state = JSON.parse((await gateway.store.findDevice(MAC))?.state ?? 'null') as { ping: { sequence: number } };
  t.equal(state.ping.sequence, 5);
  t.same(
    (await gateway.store.readEvents(FIRST_ID, LOG_START, 9)).map(({ sequence }) => sequence),
    [5, 4],
  );
});

t.test('bytes that are not an uplink are acknowledged, quarantined and visible', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, MAC);
  const seen = waitForEvents(gateway, 'quarantined', 3);
  await lock.send(Buffer.from('garbage'));
  await lock.send(Buffer.alloc(0));
  // An uplink may have 1,024 bytes.
  await lock.send(Buffer.alloc(1025));
  t.match(await seen, [{ code: 'undecodable' }, { code: 'no-boot' }, { code: 'too-long' }]);
  const stored = await gateway.store.readQuarantine(FIRST_ID, 9);
  t.same(
    stored.map(({ bytes }) => bytes.toString()),
    ['\0'.repeat(1025), '', 'garbage'],
  );
  t.same(await gateway.store.readEvents(FIRST_ID, LOG_START, 9), []);
});

t.test('a publish to any topic but up closes the connection and stores nothing', async (t) => {
  const gateway = await testGateway(t);
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const publishes = [
    { topic: 'other', qos: 1, retain: false },
    { topic: `up/${MAC}`, qos: 1, retain: false },
    { topic: 'down', qos: 0, retain: false },
    { topic: '$SYS/x', qos: 1, retain: false },
    { topic: 'up', qos: 2, retain: false },
    { topic: 'up', qos: 1, retain: true },
  ] as const;
  for (const { topic, qos, retain } of publishes) {
    const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
    lock.client.publish(topic, testBytes(1), { qos, retain }, () => undefined);
    await lock.closed;
    t.pass(`${topic} at QoS ${qos}${retain ? ', retained,' : ''} closed the connection`);
  }
  t.same(await gateway.store.readEvents(FIRST_ID, LOG_START, 9), []);
});

t.test('a lock can subscribe only to down', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, MAC);
  for (const topic of ['#', '+', 'up', '$SYS/#', '$share/a/down', 'down/x'])
    await t.rejects(lock.client.subscribeAsync(topic, { qos: 1 }), topic);
  await t.rejects(lock.client.subscribeAsync('down', { qos: 2 }));
  t.match(await lock.client.subscribeAsync('down', { qos: 1 }), [{ topic: 'down', qos: 1 }]);
});

t.test('a second connection of a lock takes over from the first', async (t) => {
  const gateway = await testGateway(t);
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const first = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  const ended = waitForEvents(gateway, 'disconnected', 1);
  const second = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await first.closed;
  t.match(await ended, [{ mac: MAC, cause: 'takeover' }]);
  await second.send(testBytes(1));
});

t.test('an uplink that could not be stored is not acknowledged; the next connection works', async (t) => {
  let isStoreFailing = true;
  const gateway = await testGateway(t, {
    wrapStore: (store) =>
      new Proxy(store, {
        get: (target, name) => {
          if (name === 'append' && isStoreFailing)
            return () => Promise.reject(new StoreFailure('append', new Error('disk full')));
          const member = Reflect.get(target, name) as unknown;
          return typeof member === 'function' ? member.bind(target) : member;
        },
      }),
  });
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  let acknowledged = false;
  lock.client.publish('up', testBytes(1), { qos: 1 }, (error) => {
    acknowledged = !error;
  });
  await lock.closed;
  t.equal(acknowledged, false);
  isStoreFailing = false;
  const reconnected = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await reconnected.send(testBytes(1));
  t.match(await gateway.store.readEvents(FIRST_ID, LOG_START, 9), [{ sequence: 1 }]);
});

t.test('after a restart the gateway continues with its stored state', async (t) => {
  const folder = tempFolder(t);
  const first = await openGateway(t, folder);
  await first.accounts.addMerchant(MERCHANT);
  const { secret } = await first.accounts.addDevice({ mac: MAC });
  const before = await TestLock.connect(t, first.mqttPort, MAC, secret);
  await before.send(testBytes(1));
  const clockBefore = first.clock.now();
  await first.close();
  const second = await openGateway(t, folder);
  t.ok(second.clock.now() >= clockBefore, 'the run’s clock never goes back');
  const after = await TestLock.connect(t, second.mqttPort, MAC, secret);
  const seen = waitForEvents(second, 'uplink', 2);
  await after.send(testBytes(1));
  await after.send(testBytes(2));
  t.match(await seen, [{ repeated: true }, { repeated: false }]);
});

t.test('a closing gateway answers received uplinks and accepts no more', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, MAC);
  const acked: number[] = [];
  for (let sequence = 1; sequence <= 200; sequence++) {
    const bytes = Buffer.from(encodeUplink(testUplink(sequence)));
    lock.client.publish('up', bytes, { qos: 1 }, (error) => {
      if (!error) acked.push(sequence);
    });
  }
  await waitForEvents(gateway, 'uplink', 20);
  // The store's description is `SQLite, FILE`; the folder is that of the file.
  const folder = (gateway.store.description.split(', ')[1] ?? '').replace(/\/[^/]*$/, '');
  await gateway.close();
  await lock.closed;
  const reopened = await openGateway(t, folder);
  const stored = new Set((await reopened.store.readEvents(FIRST_ID, LOG_START, 1000)).map(({ sequence }) => sequence));
  t.ok(acked.length >= 20, `${acked.length} were acknowledged`);
  t.same(
    acked.filter((sequence) => !stored.has(sequence)),
    [],
    'none of them is missing',
  );
});

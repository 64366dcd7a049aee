/**
 * Two gateways share a PostgreSQL database: what an operator asks of one reaches a lock that the other serves. Both run
 * in this process, each with a data folder of its own. The long test two-gateways.test.ts kills one of them.
 */
import { copyFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { readCommandRequest } from '../../../gateway/commands/command-input.js';
import type { Config } from '../../../gateway/config.js';
import { type Gateway, startGateway } from '../../../gateway/gateway.js';
import { systemClock } from '../../../proto/clock.js';
import { decodeDownlink } from '../../../proto/wire/codec.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { CommandAck } from '../../../proto/wire/ping.js';
import { NO_THREADS, testBytes, testConfig, testMac } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { connackCode, TestLock } from '../../helpers/mqtt/test-lock.js';
import { postgresMissing } from '../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../helpers/store/postgres/test-database.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

t.setTimeout(170_000);
const options = { skip: postgresMissing ?? false };
const databases = new TestDatabases(t);
const MAC = testMac();
/** MQTT 3.1.1's return code of a CONNACK for a wrong credential. */
const NOT_AUTHORIZED = 5;

/** Two gateways on one new database, with a merchant and a lock. */
async function startTwo(
  t: Test,
  settings: Partial<Config> = {},
): Promise<{ one: Gateway; other: Gateway; secret: string }> {
  const [folder, otherFolder] = [tempFolder(t), tempFolder(t)];
  const store = await databases.urlOf(folder);
  const start = async (data: string): Promise<Gateway> => {
    const gateway = await startGateway({ ...testConfig(data), store, ...settings }, { ...NO_THREADS, isShared: true });
    t.teardown(() => gateway.close());
    return gateway;
  };
  const one = await start(folder);
  // All gateways on a database have its key.
  copyFileSync(path.join(folder, 'key'), path.join(otherFolder, 'key'));
  const other = await start(otherFolder);
  await one.accounts.addMerchant('Amber');
  const { secret } = await one.accounts.addDevice({ mac: MAC });
  return { one, other, secret };
}

/** Connects the lock as one that takes commands. Returns the ids of those that it gets. */
async function connectListening(t: Test, gateway: Gateway, secret: string) {
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  const ids: number[] = [];
  const listeners: (() => void)[] = [];
  lock.client.on('message', (_topic, payload) => {
    const downlink = decodeDownlink(payload);
    ids.push(downlink.ok ? downlink.value.id : 0);
    for (const listener of listeners) listener();
  });
  const received = (count: number): Promise<void> =>
    new Promise((resolve) => {
      const check = (): void => void (ids.length >= count && resolve());
      listeners.push(check);
      check();
    });
  await lock.client.subscribeAsync('down', { qos: 1 });
  return { lock, ids, received };
}

async function sendReset({ commands }: Gateway): Promise<number> {
  const [outcome] = await commands.send(readCommandRequest({ macs: [MAC], type: 'reset' }, systemClock.now()));
  return outcome !== undefined && 'record' in outcome ? outcome.record.id : 0;
}

/** The CONNACK that a gateway gives the lock. */
function connack({ mqttPort }: Gateway, mac: Mac, password: string): Promise<number> {
  return connackCode(mqttPort, { clientId: mac, username: mac, password });
}

t.test('a command stored by one gateway is sent by the one that serves the lock', options, async (t) => {
  const { one, other, secret } = await startTwo(t);
  const { lock, ids, received } = await connectListening(t, other, secret);
  await lock.send(testBytes(1));
  const first = await sendReset(one);
  await received(1);
  const body: CommandAck = { kind: 'ack', commandId: first, result: 'ok', detail: '', highWindow: null };
  await lock.send(testBytes(2, { body }));
  const second = await sendReset(one);
  await received(2);
  t.same(ids, [first, second]);
  t.match(await one.commands.find(first), { state: 'done', sentCount: 1 });
});

t.test('a command that another gateway cancels is not sent', options, async (t) => {
  const { one, other, secret } = await startTwo(t);
  const { lock } = await connectListening(t, other, secret);
  await lock.send(testBytes(1));
  await lock.client.endAsync(true);
  const cancelled = await sendReset(one);
  const last = await sendReset(one);
  t.match(await one.commands.cancel(cancelled), { state: 'cancelled' });
  await t.rejects(one.commands.cancel(cancelled), { code: 'command-sent' });
  const again = await connectListening(t, other, secret);
  await again.lock.send(testBytes(2));
  await again.received(1);
  t.same(again.ids, [last]);
});

t.test('a lock whose secret one gateway replaces is disconnected by the other', options, async (t) => {
  const { one, other, secret } = await startTwo(t);
  const lock = await TestLock.connect(t, other.mqttPort, MAC, secret);
  await lock.send(testBytes(1));
  const replaced = await one.accounts.rotateLockSecret(MAC);
  await lock.closed;
  for (const gateway of [one, other]) t.equal(await connack(gateway, MAC, secret), NOT_AUTHORIZED);
  t.equal(await connack(other, MAC, replaced), 0);
});

t.test(
  'a lock that one gateway erases or gives to another merchant is served anew by the other',
  options,
  async (t) => {
    const { one, other, secret } = await startTwo(t);
    const first = await TestLock.connect(t, other.mqttPort, MAC, secret);
    await first.send(testBytes(1));
    t.match(await one.accounts.devices.erase(MAC), { uplinks: 1 });
    await first.closed;
    const second = await TestLock.connect(t, other.mqttPort, MAC, secret);
    await second.send(testBytes(1));
    await second.send(testBytes(2));
    await one.accounts.addMerchant('Basil');
    await one.accounts.devices.change(MAC, { merchant: 'Basil' });
    await second.closed;
    const third = await TestLock.connect(t, other.mqttPort, MAC, secret);
    await third.send(testBytes(3));
    const { device } = (await other.store.findDevice(MAC)) ?? {};
    t.match(device, { merchantName: 'Basil' });
    const uplinks = await one.store.readUplinks(device?.id ?? 0, 10);
    t.same(
      uplinks.map(({ sequence }) => sequence),
      [3],
      'the new merchant sees what came after the move',
    );
  },
);

t.test('a merchant that one gateway closes has no connection at the other', options, async (t) => {
  const { one, other, secret } = await startTwo(t);
  const lock = await TestLock.connect(t, other.mqttPort, MAC, secret);
  await lock.send(testBytes(1));
  await one.accounts.merchants.close('Amber');
  await lock.closed;
  t.equal(await connack(other, MAC, secret), NOT_AUTHORIZED);
});

t.test('a webhook URL that is changed at one gateway is delivered to with the change', options, async (t) => {
  const { one, other, secret } = await startTwo(t);
  const [before, after] = [await testReceiver(t), await testReceiver(t)];
  const { url } = await other.accounts.addWebhookUrl({ url: before.url });
  const lock = await TestLock.connect(t, one.mqttPort, MAC, secret);
  await lock.send(testBytes(1));
  await before.waitForRequests(1);
  const stranger = one.store.ownership.urls.owns(url.id) ? other : one;
  await stranger.webhooks.settings.set(url.id, { url: after.url });
  await lock.send(testBytes(2));
  // The first event comes again if its outcome was not stored before the change.
  for (let count = 1; after.requests.every(({ json }) => json.sequence !== 2); count += 1)
    await after.waitForRequests(count);
  t.pass('the second event came to the new address');
});

t.test('one gateway of all sends notifications, of what any of them notes', options, async (t) => {
  const receiver = await testReceiver(t);
  const { one, other } = await startTwo(t, { notifyUrl: receiver.url });
  const sender = one.store.ownership.duties.holds('notifications') ? one : other;
  const noter = sender === one ? other : one;
  noter.events.emit('url-disabled', { atMs: systemClock.now(), urlId: 7, why: 'it is gone' });
  await receiver.waitForRequests(1);
  // The other gateway goes first: a message that it had sent too would arrive before its end.
  await noter.close();
  await sender.close();
  t.equal(receiver.requests.length, 1);
});

t.test('lists of any gateway show all locks with their states', options, async (t) => {
  const { one, other, secret } = await startTwo(t);
  const lock = await TestLock.connect(t, other.mqttPort, MAC, secret);
  await lock.send(testBytes(1));
  await lock.client.endAsync(true);
  const query = { filter: {}, order: { key: 'mac', isDescending: false } } as const;
  for (const gateway of [one, other]) {
    const { locks } = await gateway.merchants.ownData.lockList.page(query, { limit: 10 });
    t.match(locks, [{ device: { mac: MAC }, state: { ping: { sequence: 1 } } }]);
  }
});

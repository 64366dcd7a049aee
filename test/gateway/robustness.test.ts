/**
 * Faults that could leak resources of a gateway or keep it from stopping, one test each: listeners, timers, a second
 * close, a failing store, an interrupted delivery, a partly written file.
 */
import { getEventListeners } from 'node:events';
import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import t from 'tap';
import { RecordedClocks } from '../../gateway/clocks/recorded-clocks.js';
import { readOrMakeSecretFile } from '../../gateway/data-folder/secret-file.js';
import { startGateway } from '../../gateway/gateway.js';
import type { Store } from '../../gateway/store/contract/store.js';
import { parseRange } from '../../gateway/webhooks/sending/address-rule.js';
import { attemptDelivery } from '../../gateway/webhooks/sending/attempt.js';
import { GuardedConnections } from '../../gateway/webhooks/sending/guarded-connections.js';
import { ManualClock, Seconds, systemClock } from '../../proto/clock.js';
import { ManualMachine } from '../helpers/clocks/manual-machine.js';
import { withOverrides } from '../helpers/durability/sabotage.js';
import {
  openGateway,
  testBytes,
  testConfig,
  testGateway,
  testMac,
  waitForEvents,
} from '../helpers/gateway/test-gateway.js';
import { type ReceivedRequest, testReceiver } from '../helpers/gateway/test-receiver.js';
import { NO_JITTER } from '../helpers/gateway/webhook-setup.js';
import { connectedLock, TestLock } from '../helpers/mqtt/test-lock.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

t.test('a finished delivery leaves no listener, and a delivery under way can be aborted', async (t) => {
  let isAnswering = true;
  let arrived: () => void = () => undefined;
  const server = createServer((request, response) => {
    request.resume().on('end', () => (isAnswering ? response.writeHead(204).end() : arrived()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => new Promise<void>((resolve) => server.closeAllConnections() ?? server.close(() => resolve())));
  // Deliveries to this machine are refused unless its range is allowed.
  const connections = new GuardedConnections([parseRange('127.0.0.0/8')]);
  t.teardown(() => connections.closeIdle());
  const abortion = new AbortController();
  const request = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, headers: {}, body: '{}' };
  const attempt = () => attemptDelivery(request, connections, systemClock, abortion.signal);

  for (let round = 0; round < 5; round += 1) t.equal((await attempt()).status, 204);
  t.same(getEventListeners(abortion.signal, 'abort'), [], 'no listener of a finished delivery');

  isAnswering = false;
  const hanging = new Promise<void>((resolve) => {
    arrived = resolve;
  });
  const pending = attempt();
  await hanging;
  abortion.abort();
  t.match(await pending, { status: null, error: /cut off/ }, 'the delivery under way is aborted at once');
  t.match(await attempt(), { status: null }, 'no further delivery starts');
});

t.test('the run’s clock stops, whether it is writing its time or not', async (t) => {
  const waiting: (() => void)[] = [];
  let blocksWrites = false;
  let timeWrites = 0;
  const store = {
    readMetadata: async () => null,
    readLastReceivedAtMs: async () => null,
    listDevices: async () => [],
    writeMetadata: async (name: string) => {
      if (name === 'run-clock-ms') timeWrites += 1;
      if (blocksWrites) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
  const machine = new ManualMachine(0);
  const clocks = await RecordedClocks.start({ store, speed: 1, machine });
  t.equal(timeWrites, 1, 'its time is written at once');
  blocksWrites = true;
  machine.advance(Seconds(60));
  t.equal(timeWrites, 2, 'the next write waits for the one under way');
  const stopped = clocks.stop();
  for (const resolve of waiting) resolve();
  await stopped;
  t.equal(timeWrites, 3, 'its time is written at the stop');
  t.equal(machine.pending, 0, 'no timer is left that would keep the process running');
});

t.test('a gateway that is closed twice closes its store once', async (t) => {
  let closed = 0;
  const wrapStore = (store: Store): Store =>
    withOverrides(store, {
      close: async () => {
        closed += 1;
        await store.close();
      },
    });
  const gateway = await startGateway(testConfig(tempFolder(t)), { wrapStore });
  await Promise.all([gateway.close(), gateway.close()]);
  await gateway.close();
  t.equal(closed, 1, 'only the first call closes the store');
});

t.test('a gateway closes although its store fails', async (t) => {
  let fails = false;
  const gateway = await testGateway(t, {
    wrapStore: (store) =>
      withOverrides(store, {
        append: async (commit) => {
          if (fails) throw new Error('the disk is full');
          return await store.append(commit);
        },
      }),
  });
  const lock = await connectedLock(t, gateway, testMac());
  await lock.send(testBytes(1));
  const failed = waitForEvents(gateway, 'store-failed', 1);
  fails = true;
  lock.send(testBytes(2)).then(
    () => t.fail('an uplink that could not be stored was acknowledged'),
    () => undefined,
  );
  await failed;
  // The gateway tries to store the end of that connection too, and fails.
  await lock.closed;
  await gateway.close();
  t.pass('the gateway closed');
});

t.test('after a restart a failed delivery is retried at its time, with the next attempt’s number', async (t) => {
  const folder = tempFolder(t);
  const clock = new ManualClock(systemClock.now());
  const options = { deliveryClock: clock, random: NO_JITTER };
  const receiver = await testReceiver(t);
  const [hangingMac, failingMac] = [testMac(1), testMac(2)];
  const isFrom = (mac: string, { json }: ReceivedRequest): boolean => {
    return String(json.mac_addr).replaceAll(':', '') === mac;
  };
  receiver.answer = (request, response) => {
    if (isFrom(failingMac, request)) response.writeHead(500).end();
  };

  const first = await openGateway(t, folder, options);
  await first.accounts.addMerchant('Amber');
  await first.accounts.addWebhookUrl({ url: receiver.url });
  await (await connectedLock(t, first, hangingMac)).send(testBytes(1));
  await receiver.waitForRequests(1);
  const { secret } = await first.accounts.addDevice({ mac: failingMac });
  const failed = waitForEvents(first, 'delivery', 1);
  await (await TestLock.connect(t, first.mqttPort, failingMac, secret)).send(testBytes(1));
  t.match(await failed, [{ mac: failingMac, number: 1, outcome: 'pending' }]);
  // The hanging delivery is aborted and has no outcome, so the cursor is before both events.
  await first.close();

  receiver.answer = (_request, response) => void response.writeHead(204).end();
  const second = await openGateway(t, folder, options);
  let delivered = waitForEvents(second, 'delivery', 2);
  await (await TestLock.connect(t, second.mqttPort, failingMac, secret)).send(testBytes(2));
  const attempts = (await delivered).map(({ mac, number, outcome }) => ({ mac, number, outcome }));
  t.same(
    attempts.sort((a, b) => (a.mac < b.mac ? -1 : 1)),
    [
      { mac: hangingMac, number: 1, outcome: 'delivered' },
      { mac: failingMac, number: 1, outcome: 'delivered' },
    ],
    'the event without an outcome, and the new event',
  );
  t.equal(receiver.requests.length, 4, 'the failed delivery is not attempted yet');
  delivered = waitForEvents(second, 'delivery', 1);
  clock.advance(Seconds(5));
  t.match(await delivered, [{ mac: failingMac, number: 2, outcome: 'delivered' }], 'it is retried at its time');
});

t.test('a secret’s file is complete, readable only by its owner, and never replaced', async (t) => {
  const file = path.join(tempFolder(t), 'key');
  // A partial file, as left by a start that was killed while it wrote.
  writeFileSync(`${file}.new`, 'ha');
  t.equal(
    readOrMakeSecretFile(file, () => 'first'),
    'first',
  );
  t.equal(
    readOrMakeSecretFile(file, () => 'second'),
    'first',
  );
  t.equal(statSync(file).mode & 0o777, 0o600);
  t.same(readdirSync(path.dirname(file)), ['key'], 'no other file is left');
});

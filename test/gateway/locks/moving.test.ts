/**
 * A lock that is moved to another merchant or removed (interfaces.md §4): what each merchant sees afterwards, what
 * stays stored, and that commands of the previous merchant never reach the lock.
 */
import t from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { LOG_START } from '../../../gateway/store/contract/log/log-position.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { afterThisTurn, Hours, ManualClock, systemClock } from '../../../proto/clock.js';
import { decodeDownlink } from '../../../proto/wire/codec.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { within } from '../../helpers/clocks/change-signal.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import {
  gpsBytes,
  historyOf,
  NO_HISTORY,
  OTHER_POSITION,
  SECRET_POSITION,
} from '../../helpers/gateway/position-history.js';
import { openGateway, testBytes, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { NO_JITTER } from '../../helpers/gateway/webhook-setup.js';
import { connackCode, connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac();
const OTHER_MAC = testMac(2);
/** The merchant that is added first has this id. */
const FIRST_MERCHANT_ID = 1;
/** The CONNACK code of a refused login. */
const NOT_AUTHORIZED = 5;
/** How long a connection that the gateway closes may stay open. */
const MAX_WAIT_SECONDS = 5;

/** The trace of {@link MAC}: what its current merchant may see, as JSON Lines. */
async function traceOf(gateway: Gateway): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${gateway.operatorPort}/trace?mac=${MAC}`, {
    headers: { authorization: `Bearer ${gateway.operatorToken}` },
  });
  return await response.text();
}

t.test('a lock that is moved to another merchant shows nothing of its history there', async (t) => {
  const gateway = await testGateway(t);
  await gateway.accounts.addMerchant('Basil');
  const [amber, basil] = [await testReceiver(t), await testReceiver(t)];
  await gateway.accounts.addWebhookUrl({ url: amber.url, merchant: 'Amber' });
  await gateway.accounts.addWebhookUrl({ url: basil.url, merchant: 'Basil' });
  const { secret } = await gateway.accounts.addDevice({ mac: MAC, merchant: 'Amber' });
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await lock.send(gpsBytes(1, SECRET_POSITION));
  // An impossible latitude makes a finding, and bytes that are no ping are quarantined.
  await lock.send(gpsBytes(2, { ...SECRET_POSITION, latitudeDegrees: 91 }));
  await lock.send(Buffer.from('junk'));
  const shownBefore = await callOperator(gateway, 'GET', `/devices/${MAC}`);
  t.match(shownBefore.body, { uplinks: [{}, {}], findings: [{}], quarantine: [{}], state: { latitude: 12.3456789 } });

  const moved = await callOperator(gateway, 'PATCH', `/devices/${MAC}`, { merchant: 'Basil' });
  t.match(moved, { status: 200, body: { merchant: 'Basil', presence: 'never-seen' } });
  await within(MAX_WAIT_SECONDS, () => 'the end of the session', lock.closed);
  const device = (await callOperator(gateway, 'GET', `/devices/${MAC}`)).body as Record<string, unknown>;
  t.equal(device.merchant, 'Basil');
  t.same(historyOf(device), NO_HISTORY);
  t.match(device.state, { received_at: null, latitude: null, longitude: null, reason: null, battery_percent: null });
  t.notMatch(
    await traceOf(gateway),
    /12\.345|junk|"connect"|"ping"|"disconnect"/,
    'the trace has no event from before the move',
  );

  const reconnected = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  const stored = waitForEvents(gateway, 'uplink', 2);
  await reconnected.send(gpsBytes(2, { ...SECRET_POSITION, latitudeDegrees: 91 }));
  await reconnected.send(gpsBytes(3, OTHER_POSITION));
  t.match(await stored, [{ repeated: true }, { repeated: false }], 'a repeat is recognised after the move');
  await basil.waitForRequests(1);
  await amber.waitForRequests(2);
  t.match(
    basil.requests.map(({ json }) => json),
    [{ sequence: 3, latitude: 31.4159265 }],
  );
  t.same(
    amber.requests.map(({ json }) => json.sequence),
    [1, 2],
  );
  t.match((await callOperator(gateway, 'GET', `/devices/${MAC}`)).body, {
    uplinks: [{ sequence: 3 }],
    presence: 'online',
  });

  await callOperator(gateway, 'PATCH', `/devices/${MAC}`, { merchant: 'Amber' });
  t.match((await callOperator(gateway, 'GET', `/devices/${MAC}`)).body, {
    uplinks: [{ sequence: 2 }, { sequence: 1 }],
  });
});

t.test('events from before a move still go to the previous merchant', async (t) => {
  const [amber, basil] = [await testReceiver(t), await testReceiver(t)];
  amber.answer = (_request, response) => void response.writeHead(500).end();
  const deliveryClock = new ManualClock(systemClock.now());
  const gateway = await testGateway(t, { deliveryClock, random: NO_JITTER });
  await gateway.accounts.addMerchant('Basil');
  await gateway.accounts.addWebhookUrl({ url: amber.url, merchant: 'Amber' });
  await gateway.accounts.addWebhookUrl({ url: basil.url, merchant: 'Basil' });
  const { secret } = await gateway.accounts.addDevice({ mac: MAC, merchant: 'Amber' });
  const failed = waitForEvents(gateway, 'delivery', 1);
  await (await TestLock.connect(t, gateway.mqttPort, MAC, secret)).send(gpsBytes(1, SECRET_POSITION));
  t.match(await failed, [{ outcome: 'pending' }]);
  await gateway.accounts.devices.change(MAC, { merchant: 'Basil' });
  amber.answer = (_request, response) => void response.writeHead(204).end();
  const delivered = waitForEvents(gateway, 'delivery', 1);
  while (deliveryClock.pending === 0) await new Promise<void>((resolve) => afterThisTurn(resolve));
  // More than the 5 s until the first retry.
  deliveryClock.advance(60_000);
  t.match(await delivered, [{ outcome: 'delivered', number: 2 }]);
  t.equal(amber.requests.length, 2, 'the retry goes to the merchant that had the lock');
  t.equal(basil.requests.length, 0, 'the new merchant gets nothing of it');
});

t.test('an operator can change a lock’s settings; wrong changes are refused', async (t) => {
  const gateway = await testGateway(t);
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  const route = `/devices/${MAC}`;
  t.match(await callOperator(gateway, 'PATCH', route, {}), { status: 400, body: { code: 'input-change' } });
  t.match(await callOperator(gateway, 'PATCH', route, { simulated: 'yes' }), { status: 400 });
  t.match(await callOperator(gateway, 'PATCH', route, { merchant: 'Nobody' }), {
    status: 404,
    body: { code: 'no-such-merchant' },
  });
  t.match(await callOperator(gateway, 'PATCH', `/devices/${OTHER_MAC}`, { simulated: true }), { status: 404 });
  await lock.send(testBytes(2));
  t.pass('a refused change does not disconnect the lock');
  t.match(await callOperator(gateway, 'PATCH', route, { simulated: true }), { status: 200, body: { simulated: true } });
  await within(MAX_WAIT_SECONDS, () => 'the end of the session', lock.closed);
  t.match((await callOperator(gateway, 'GET', route)).body, { uplinks: [{}, {}], state: { lock_state: 'locked' } });
});

t.test('a removed lock is not listed, its history stays, and it can be added again', async (t) => {
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder);
  await gateway.accounts.addMerchant('Amber');
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  const phoneSecret = (await gateway.accounts.devices.addPhone({ mac: MAC, name: 'Ada', expiresAtMs: null })).secret;
  const phone = await TestLock.connectPhone(t, gateway.mqttPort, MAC, 'a', phoneSecret);
  await lock.send(testBytes(1));
  t.match(await callOperator(gateway, 'DELETE', `/devices/${MAC}`), { status: 200, body: { removed: true } });
  await within(MAX_WAIT_SECONDS, () => 'the end of both sessions', Promise.all([lock.closed, phone.closed]));
  const lockLogin = { clientId: MAC, username: MAC, password: secret };
  t.equal(await connackCode(gateway.mqttPort, lockLogin), NOT_AUTHORIZED);
  const phoneLogin = { clientId: `phone-${MAC}-a`, username: MAC, password: phoneSecret };
  t.equal(await connackCode(gateway.mqttPort, phoneLogin), NOT_AUTHORIZED);
  t.match(await callOperator(gateway, 'GET', `/devices/${MAC}`), { status: 404 });
  t.match(await callOperator(gateway, 'DELETE', `/devices/${MAC}`), { status: 404 });
  t.same((await callOperator(gateway, 'GET', '/devices')).body, { devices: [], next_cursor: null });
  t.equal(
    (await gateway.store.readEvents(FIRST_MERCHANT_ID, LOG_START, 9)).length,
    1,
    'its events are still delivered',
  );

  await gateway.close();
  const restarted = await openGateway(t, folder);
  t.same((await callOperator(restarted, 'GET', '/devices')).body, { devices: [], next_cursor: null });
  const added = await restarted.accounts.addDevice({ mac: MAC });
  t.equal(await connackCode(restarted.mqttPort, lockLogin), NOT_AUTHORIZED, 'the old secret stays revoked');
  const addedLock = await TestLock.connect(t, restarted.mqttPort, MAC, added.secret);
  await addedLock.send(testBytes(1));
  t.match((await callOperator(restarted, 'GET', `/devices/${MAC}`)).body, {
    uplinks: [{ sequence: 1 }, { sequence: 1 }],
  });
});

t.test('no client can connect while a lock is being removed, and its state is deleted', async (t) => {
  const connackCodes: number[] = [];
  const wrapStore = (store: Store): Store =>
    withOverrides(store, {
      removeDevice: async (...removal) => {
        connackCodes.push(await connackCode(gateway.mqttPort, { clientId: MAC, username: MAC, password: secret }));
        await store.removeDevice(...removal);
      },
    });
  const gateway = await testGateway(t, { wrapStore });
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await lock.send(testBytes(1));
  await gateway.accounts.devices.remove(MAC);
  t.same(connackCodes, [NOT_AUTHORIZED]);
  await (await connectedLock(t, gateway, OTHER_MAC)).send(testBytes(1));
  t.equal((await gateway.store.readDeviceStates()).length, 1, 'only the state of the other lock is left');
});

t.test('commands that wait when a lock is moved or removed never reach the lock', async (t) => {
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder);
  for (const merchant of ['Amber', 'Basil']) await gateway.accounts.addMerchant(merchant);
  let { secret } = await gateway.accounts.addDevice({ mac: MAC, merchant: 'Amber' });
  const reset = { macs: [MAC], type: 'reset' };
  const setMode = { macs: [MAC], type: 'set-power', parameters: { mode: 'HIGH' } };
  const locate = { macs: [MAC], type: 'locate-gps' };
  for (const body of [reset, setMode]) t.match(await callOperator(gateway, 'POST', '/commands', body), { status: 201 });
  await gateway.accounts.devices.change(MAC, { merchant: 'Basil' });
  const cancelled = { state: 'cancelled', finished_at: String, waits: null };
  t.match((await callOperator(gateway, 'GET', '/commands')).body, { commands: [cancelled, cancelled] });
  const movedLock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await movedLock.send(testBytes(1));
  const { twin } = (await callOperator(gateway, 'GET', `/devices/${MAC}`)).body as { twin: { wanted: object } };
  t.same(twin.wanted, {}, 'the cancelled change of mode is no longer wanted');
  t.match(await callOperator(gateway, 'POST', '/commands', locate), { status: 201 });
  t.equal(await firstCommandId(movedLock), 3, 'only the new merchant’s commands are sent');

  await callOperator(gateway, 'POST', '/commands', {
    ...reset,
    not_before: new Date(systemClock.now() + Hours(2)).toISOString(),
  });
  await gateway.accounts.devices.remove(MAC);
  t.match((await callOperator(gateway, 'GET', '/commands')).body, { commands: Array(4).fill(cancelled) });
  await gateway.close();
  const restarted = await openGateway(t, folder);
  t.same(await restarted.store.commands.readUnfinished(), []);
  ({ secret } = await restarted.accounts.addDevice({ mac: MAC, merchant: 'Amber' }));
  const addedLock = await TestLock.connect(t, restarted.mqttPort, MAC, secret);
  await addedLock.send(testBytes(1));
  t.match(await callOperator(restarted, 'POST', '/commands', locate), { status: 201 });
  t.equal(await firstCommandId(addedLock), 5, 'a lock that is added again does not get the old command either');
});

t.test('a command requested during a move or a removal does not wait for the lock', async (t) => {
  // Each command is requested just before the move or removal is committed, and stored just before or after it.
  const requests: Promise<unknown>[] = [];
  const requestReset = () => requests.push(gateway.commands.send(reset).catch((error: Error) => error));
  /** Called when the store is asked to add a command. */
  let onAdding: () => void = () => undefined;
  /** Requests commands while a move or removal runs: three that are being stored, and one just after its start. */
  const requestDuring = async (change: () => Promise<void>): Promise<void> => {
    for (let count = 0; count < 3; count++) requestReset();
    await new Promise<void>((resolve) => {
      onAdding = resolve;
    });
    const changed = change();
    requestReset();
    await changed;
  };
  const wrapStore = (store: Store): Store => {
    const add = async (commands: Parameters<typeof store.commands.add>[0]) => {
      onAdding();
      return await store.commands.add(commands);
    };
    return withOverrides(store, {
      commands: withOverrides(store.commands, { add }),
      changeDevice: (change) => requestDuring(() => store.changeDevice(change)),
      removeDevice: (...removal) => requestDuring(() => store.removeDevice(...removal)),
    });
  };
  const gateway = await testGateway(t, { wrapStore });
  const validity = { notBeforeMs: null, expiresAtMs: gateway.clock.now() + Hours(2), confirmsAirplane: false };
  const reset = {
    targets: { macs: [MAC] },
    expectedCount: 1,
    command: { type: 'reset' as const },
    askedBy: 'ann',
    ...validity,
  };
  await gateway.accounts.addMerchant('Basil');
  await gateway.accounts.addDevice({ mac: MAC, merchant: 'Amber' });
  const { id: deviceId } = (await gateway.store.findDevice(MAC))?.device ?? { id: 0 };
  await gateway.accounts.devices.change(MAC, { merchant: 'Basil' });
  await Promise.all(requests);
  const queued = await gateway.store.commands.list({ deviceId, state: 'queued', limit: 99 });
  t.notOk(
    queued.some(({ merchantId }) => merchantId === FIRST_MERCHANT_ID),
    'none of the previous merchant',
  );
  await gateway.accounts.devices.remove(MAC);
  const results = await Promise.all(requests);
  t.same(await gateway.store.commands.list({ deviceId, state: 'queued', limit: 99 }), []);
  t.match(results.at(-1), { code: 'no-such-device' }, 'the last command was requested too late');
  await gateway.accounts.addDevice({ mac: MAC, merchant: 'Basil' });
  await gateway.commands.send(reset);
  const waiting = await gateway.store.commands.readUnfinished();
  t.equal(waiting.length, 1, 'the lock that is added again has only its new command');
  const [command] = waiting;
  t.equal(command && gateway.commands.waitOf(command)?.for, 'connection', 'and no other command is before it');
});

/** The id of the first command that a lock gets once it listens. */
async function firstCommandId({ client }: TestLock): Promise<number> {
  const message = new Promise<Buffer>((resolve) => client.once('message', (_topic, payload) => resolve(payload)));
  await client.subscribeAsync('down', { qos: 1 });
  const downlink = decodeDownlink(await within(MAX_WAIT_SECONDS, () => 'a command', message));
  if (!downlink.ok) throw new Error(downlink.error.message);
  return downlink.value.id;
}

/** A lock that is erased: its positions are removed from the store's files, and never sent or stored again. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { LOG_START } from '../../../gateway/store/contract/log/log-position.js';
import { Days } from '../../../proto/clock.js';
import type { GpsPing } from '../../../proto/wire/ping.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { runLockgate } from '../../helpers/cli/program.js';
import { within } from '../../helpers/clocks/change-signal.js';
import {
  gpsBytes,
  historyOf,
  NO_HISTORY,
  OTHER_POSITION,
  SECRET_POSITION,
} from '../../helpers/gateway/position-history.js';
import { openGateway, testBytes, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { eventually, readDeliveries, receivedSequences, setUpWebhooks } from '../../helpers/gateway/webhook-setup.js';
import { connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac();
const OTHER_MAC = testMac(2);
/** How long a connection that the gateway closes may stay open. */
const MAX_WAIT_SECONDS = 5;
/** In a new store, the first merchant, lock and webhook URL have this id. */
const FIRST_ID = 1;

/** The bytes of all files of a store: the database and its write-ahead log. */
function filesOf(folder: string): Buffer {
  const files = readdirSync(folder).filter((name) => name.startsWith('lockgate.sqlite'));
  return Buffer.concat(files.map((name) => readFileSync(path.join(folder, name))));
}

/** A position as a ping has it on the wire (degrees × 10⁷ as sfixed32), and as our JSON has it. */
function storedForms({ latitudeDegrees, longitudeDegrees }: GpsPing['position']): Buffer[] {
  return [latitudeDegrees, longitudeDegrees].flatMap((degrees) => {
    const wire = Buffer.alloc(4);
    wire.writeInt32LE(Math.round(degrees * 1e7));
    return [wire, Buffer.from(String(degrees))];
  });
}

const PING_COUNT = 300;
const CONCURRENT_PINGS = 10;

t.test('erased data is removed from the files, and other data stays', async (t) => {
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder);
  await gateway.accounts.addMerchant('Amber');
  const receiver = await testReceiver(t);
  // The gateway stores the answers of failed attempts, so these contain the position too.
  receiver.answer = ({ body }, response) => void response.writeHead(500).end(body);
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const lock = await connectedLock(t, gateway, MAC);
  const other = await connectedLock(t, gateway, OTHER_MAC);
  const someFailed = waitForEvents(gateway, 'delivery', 4);
  const numbers = Array.from({ length: PING_COUNT }, (_, index) => index + 1);
  for (let from = 0; from < PING_COUNT; from += CONCURRENT_PINGS) {
    const sequences = numbers.slice(from, from + CONCURRENT_PINGS);
    // With `kept` from 0 to 6, so that the position is not at the same place of all pings.
    await Promise.all([
      ...sequences.map((sequence) => lock.send(gpsBytes(sequence, SECRET_POSITION, { kept: sequence % 7 }))),
      ...sequences.map((sequence) => other.send(gpsBytes(sequence, OTHER_POSITION))),
    ]);
  }
  const { latitudeDegrees } = SECRET_POSITION;
  // A latitude over 90° makes a finding, and bytes that can't be decoded go into quarantine.
  await lock.send(gpsBytes(PING_COUNT + 1, { ...SECRET_POSITION, latitudeDegrees: latitudeDegrees + 90 }));
  const validBytes = gpsBytes(PING_COUNT + 2, SECRET_POSITION);
  await lock.send(Buffer.concat([validBytes.subarray(2), Buffer.from([0xff])]));
  const secret = (await gateway.accounts.devices.addPhone({ mac: MAC, name: 'Ada', expiresAtMs: null })).secret;
  const phone = await TestLock.connectPhone(t, gateway.mqttPort, MAC, 'a', secret);
  await phone.send(gpsBytes(1, SECRET_POSITION));
  await someFailed;
  const device = (await callOperator(gateway, 'GET', `/devices/${MAC}`)).body as Record<string, unknown[]>;
  t.ok(device.findings?.length && device.quarantine?.length, 'each kind of data exists');
  const filesBefore = filesOf(folder);
  for (const form of storedForms(SECRET_POSITION))
    t.ok(filesBefore.includes(form), `${form.toString('hex')} is in the files`);

  const erased = await callOperator(gateway, 'POST', `/devices/${MAC}/erase`);
  t.match(erased, { status: 200, body: { uplinks: PING_COUNT + 2, quarantined: 1, pending_deliveries: Number } });
  const filesAfter = filesOf(folder);
  for (const form of storedForms(SECRET_POSITION))
    t.notOk(filesAfter.includes(form), `${form.toString('hex')} is not in the files`);
  t.notOk(filesAfter.includes(String(latitudeDegrees + 90)), 'no finding mentions the position');
  for (const form of storedForms(OTHER_POSITION))
    t.ok(filesAfter.includes(form), 'another lock’s positions are still there');

  await within(MAX_WAIT_SECONDS, () => 'the end of both connections', Promise.all([lock.closed, phone.closed]));
  const shownAfter = (await callOperator(gateway, 'GET', `/devices/${MAC}`)).body as Record<string, unknown>;
  t.equal(shownAfter.presence, 'never-seen');
  t.same(historyOf(shownAfter), NO_HISTORY);
  const events = await gateway.store.readEvents(FIRST_ID, LOG_START, 9999);
  t.same(new Set(events.map(({ mac }) => mac)), new Set([OTHER_MAC]), 'no event of the lock is delivered any more');
  const due = await gateway.store.readDueDeliveries(FIRST_ID, Number.MAX_SAFE_INTEGER, 9999);
  t.notOk(
    due.some(({ uplink }) => uplink.mac === MAC),
    'no delivery of the lock waits',
  );
  await gateway.close();
  const filesAfterStop = filesOf(folder);
  for (const form of storedForms(SECRET_POSITION))
    t.notOk(filesAfterStop.includes(form), 'the position is not in the files after the stop');
});

t.test(
  'an erased lock keeps working, and a repeat of an erased uplink is recognised, also after a restart',
  async (t) => {
    const folder = tempFolder(t);
    let gateway = await openGateway(t, folder);
    await gateway.accounts.addMerchant('Amber');
    const { secret } = await gateway.accounts.addDevice({ mac: MAC });
    const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
    // The third uplink has the sequence number of the second, but other content; it is an event too.
    const uplinks = [gpsBytes(1, SECRET_POSITION), gpsBytes(2, SECRET_POSITION), gpsBytes(2, OTHER_POSITION)];
    for (const bytes of uplinks) await lock.send(bytes);
    await gateway.accounts.devices.erase(MAC);
    for (const moment of ['at once', 'after a restart']) {
      const reconnected = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
      const stored = waitForEvents(gateway, 'uplink', 3);
      for (const bytes of uplinks) await reconnected.send(bytes);
      t.match(await stored, [{ repeated: true }, { repeated: true }, { repeated: true }], moment);
      t.same(await gateway.store.readEvents(FIRST_ID, LOG_START, 9), [], moment);
      await gateway.close();
      gateway = await openGateway(t, folder);
    }
    const reconnected = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
    await reconnected.send(gpsBytes(3, OTHER_POSITION));
    t.match((await callOperator(gateway, 'GET', `/devices/${MAC}`)).body, { uplinks: [{ sequence: 3 }] });
    await gateway.accounts.devices.remove(MAC);
    t.match(
      await callOperator(gateway, 'POST', `/devices/${MAC}/erase`),
      { status: 200, body: { uplinks: 1 } },
      'a removed lock can be erased too',
    );
    t.match(await callOperator(gateway, 'POST', `/devices/${OTHER_MAC}/erase`), { status: 404 });
  },
);

t.test('an event that waits for another attempt is not sent after it is erased', async (t) => {
  const gateway = await testGateway(t);
  const receiver = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const lock = await connectedLock(t, gateway, MAC);
  const other = await connectedLock(t, gateway, OTHER_MAC);
  let answerHeldRequest: () => void = () => undefined;
  receiver.answer = ({ json }, response) => {
    const answer = (): void => void response.writeHead(204).end();
    if (json.mac_addr === 'A4:C1:38:00:00:01') answerHeldRequest = answer;
    else answer();
  };
  await lock.send(gpsBytes(1, SECRET_POSITION));
  await receiver.waitForRequests(1);
  await lock.send(gpsBytes(2, SECRET_POSITION));
  const deliveryOf = (lockMac: string) => waitForEvents(gateway, 'delivery', 1, ({ mac }) => mac === lockMac);
  const otherDelivery = deliveryOf(OTHER_MAC);
  await other.send(gpsBytes(1, OTHER_POSITION));
  await otherDelivery;
  await gateway.accounts.devices.erase(MAC);
  const runningDelivery = deliveryOf(MAC);
  const nextOtherDelivery = deliveryOf(OTHER_MAC);
  answerHeldRequest();
  t.match(await runningDelivery, [{ outcome: 'delivered' }], 'the running attempt finishes');
  await other.send(gpsBytes(2, OTHER_POSITION));
  await nextOtherDelivery;
  t.same(
    receiver.requests.map(({ json }) => [json.mac_addr, json.sequence]),
    [
      ['A4:C1:38:00:00:01', 1],
      ['A4:C1:38:00:00:02', 1],
      ['A4:C1:38:00:00:02', 2],
    ],
  );
});

t.test('an erased event and the events that wait for it are dropped, and later events are delivered', async (t) => {
  const { clock, gateway, receiver } = await setUpWebhooks(t, { ordered: true });
  const lock = await connectedLock(t, gateway, MAC);
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  for (const sequence of [1, 2, 3]) await lock.send(gpsBytes(sequence, SECRET_POSITION));
  await eventually('all three events wait', async () => (await readDeliveries(gateway, ['pending'])).length === 3);
  t.match(await gateway.accounts.devices.erase(MAC), { uplinks: 3, pendingDeliveries: 3 });
  t.same(await readDeliveries(gateway), [], 'none of them is listed');
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  const secret = await gateway.accounts.devices.rotateSecret(MAC);
  const reconnected = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  const delivered = waitForEvents(gateway, 'delivery', 1, ({ outcome }) => outcome === 'delivered');
  await reconnected.send(gpsBytes(4, OTHER_POSITION));
  // The attempt must have ended: a day during an attempt would exceed its time limit.
  await delivered;
  clock.advance(Days(1));
  await reconnected.send(gpsBytes(5, OTHER_POSITION));
  await receiver.waitForRequests(3);
  t.same(receivedSequences(receiver), [1, 4, 5]);
});

t.test('erasing needs a confirmation on a terminal, and --yes elsewhere', async (t) => {
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder);
  await gateway.accounts.addMerchant('Amber');
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  const flags = ['--data', folder, '--gateway', `http://127.0.0.1:${gateway.operatorPort}`];
  const unconfirmed = await runLockgate(['device', 'erase', MAC, ...flags]);
  t.match([unconfirmed.exit, unconfirmed.stderr.join()], [{ code: 2 }, /erasing can’t be undone: confirm with --yes/]);
  t.equal((await gateway.store.readUplinks(FIRST_ID, 9)).length, 1, 'nothing was erased');
  const confirmed = await runLockgate(['device', 'erase', MAC, '--yes', ...flags]);
  t.match([confirmed.exit, confirmed.stdout.join()], [{ code: 0 }, /1 uplinks/]);
  t.equal((await gateway.store.readUplinks(FIRST_ID, 9)).length, 0, 'it was erased');
});

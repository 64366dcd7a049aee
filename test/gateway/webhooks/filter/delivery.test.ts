/**
 * Which events a webhook URL with a filter gets: filters by reason, type of ping and label of the lock
 * (interfaces.md §3). A URL's cursor is the position in the log up to which the URL needs no further event; events that
 * the filter does not select have no delivery. An event for a disabled URL has the state `kept` until an operator
 * recovers it.
 */
import path from 'node:path';
import t from 'tap';
import type { Gateway } from '../../../../gateway/gateway.js';
import { isBehind, LOG_START } from '../../../../gateway/store/contract/log/log-position.js';
import { checkDatabase } from '../../../../gateway/store/sqlite/check/check.js';
import type { Ping } from '../../../../proto/wire/ping.js';
import { MERCHANT, openGateway, testBytes, testMac } from '../../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../../helpers/gateway/test-receiver.js';
import {
  eventually,
  readDeliveries,
  receivedSequences,
  setUpWebhooks,
} from '../../../helpers/gateway/webhook-setup.js';
import { connectedLock } from '../../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';

const MAC = testMac();
const COMMON_FIELDS = { batteryPercent: 80, ebikeVolts: null, tetherState: 'detached', lockState: 'locked' } as const;
const CELLULAR: Ping = {
  ...COMMON_FIELDS,
  kind: 'cellular',
  reason: 'REASON_STATE_PING',
  firmwareVersion: '2',
  position: null,
};
const THEFT: Ping = { ...CELLULAR, reason: 'REASON_THEFT' };
const GPS: Ping = {
  ...COMMON_FIELDS,
  kind: 'gps',
  reason: 'REASON_PERIOD_TRACKING',
  position: { latitudeDegrees: 52.5, longitudeDegrees: 13.4, uncertaintyMeters: 6 },
  speedMetersPerSecond: 0,
  directionDegrees: 0,
};

/** Resolves when the URL's stored cursor is at the end of the log. */
async function cursorAtEnd({ store }: Gateway, urlId: number): Promise<void> {
  await eventually('the cursor is at the end of the log', async () => {
    // From beyond the log's end, this finds the id that the next event will get.
    const next = await store.webhooks.findFirstUplinkFrom(Number.MAX_SAFE_INTEGER);
    return isBehind((await store.webhooks.find(urlId))?.cursor ?? LOG_START, next - 1);
  });
}

t.test('a URL gets the events that its filter selects; its cursor skips all others', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t);
  const { settings } = gateway.webhooks;
  // Both conditions must hold: of the pings below, only those named THEFT pass.
  await settings.set(urlId, {
    filter: { reasons: ['REASON_THEFT', 'REASON_PERIOD_TRACKING'], pingTypes: ['cellular'] },
  });
  const lock = await connectedLock(t, gateway, MAC);
  for (const [index, body] of [CELLULAR, THEFT, GPS, CELLULAR, THEFT, GPS, CELLULAR].entries())
    await lock.send(testBytes(index + 1, { body }));
  await receiver.waitForRequests(2);
  await cursorAtEnd(gateway, urlId);
  t.strictSame(receivedSequences(receiver), [2, 5]);
  const listed = (await readDeliveries(gateway)).map(({ uplink, state }) => [uplink.sequence, state]);
  t.strictSame(
    listed,
    [
      [5, 'delivered'],
      [2, 'delivered'],
    ],
    'a skipped event has no delivery',
  );
  const backlog = (await gateway.store.readFigures()).backlogs[0];
  t.match(backlog, { behind: 0, pending: 0 });

  const { url } = await settings.set(urlId, { filter: { reasons: [] } });
  t.match(url.filter, { reasons: null, pingTypes: ['cellular'], labels: null }, 'the other members stay');
  t.equal((await settings.set(urlId, { filter: { pingTypes: [] } })).url.filter, null);
  await lock.send(testBytes(8, { body: GPS }));
  await receiver.waitForRequests(3);
  t.strictSame(receivedSequences(receiver), [2, 5, 8], 'without the filter, events skipped before are not sent');
});

t.test('of a disabled URL, only events that the filter selects can be recovered', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t);
  const { settings, redelivery } = gateway.webhooks;
  await settings.set(urlId, { filter: { pingTypes: ['gps'] }, state: 'disabled' });
  const lock = await connectedLock(t, gateway, MAC);
  for (const [index, body] of [CELLULAR, GPS, THEFT, GPS].entries()) await lock.send(testBytes(index + 1, { body }));
  const kept = await readDeliveries(gateway, ['kept']);
  t.strictSame(
    kept.map(({ uplink }) => uplink.sequence),
    [4, 2],
  );
  await settings.set(urlId, { state: 'active' });
  t.match(await redelivery.recover({ sinceMs: 0, urlId }), [{ urlId, events: 2 }]);
  await receiver.waitForRequests(2);
  t.strictSame(receivedSequences(receiver).sort(), [2, 4]);
});

t.test('the filter uses the labels that a lock has when its event is read', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t);
  await gateway.webhooks.settings.set(urlId, { filter: { labels: { city: 'Hamburg', fleet: 'a' } } });
  const lock = await connectedLock(t, gateway, MAC);
  const setLabels = (labels: Record<string, string>) => gateway.accounts.devices.change(MAC, { labels });
  await lock.send(testBytes(1));
  await cursorAtEnd(gateway, urlId);
  await setLabels({ city: 'Hamburg' });
  await lock.send(testBytes(2));
  await cursorAtEnd(gateway, urlId);
  await setLabels({ city: 'Hamburg', fleet: 'a', size: 'm' });
  await lock.send(testBytes(3));
  await receiver.waitForRequests(1);
  t.strictSame(receivedSequences(receiver), [3]);
});

t.test('wrong filters are refused with a sentence', async (t) => {
  const { gateway, urlId } = await setUpWebhooks(t);
  const set = (filter: object) => gateway.webhooks.settings.set(urlId, { filter });
  for (const filter of [{ reasons: ['theft'] }, { pingTypes: ['radio'] }, { labels: { 'a b': 'c' } }])
    await t.rejects(set(filter), { code: 'input-filter' }, JSON.stringify(filter));
  t.equal((await gateway.store.webhooks.find(urlId))?.filter, null);
  const added = gateway.accounts.addWebhookUrl({ url: 'http://127.0.0.1:9/', filter: { labels: { '': 'x' } } });
  await t.rejects(added, { code: 'input-filter' });
  t.match(await set({ reasons: ['REASON_UNRECOGNIZED_99', 'REASON_THEFT', 'REASON_THEFT'] }), {
    url: { filter: { reasons: ['REASON_UNRECOGNIZED_99', 'REASON_THEFT'] } },
  });
});

t.test('an event is sent again only to URLs whose filter selects it', async (t) => {
  const { gateway, receiver, urlId } = await setUpWebhooks(t);
  const other = await testReceiver(t);
  const filter = { reasons: ['REASON_THEFT'] };
  const { url } = await gateway.accounts.addWebhookUrl({ url: other.url, filter });
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  await receiver.waitForRequests(1);
  const id = String(receiver.requests[0]?.json.event_id);
  await eventually('it is delivered', async () => (await readDeliveries(gateway, ['delivered'])).length === 1);
  t.match(await gateway.webhooks.redelivery.resend(id), [{ urlId, became: 'due' }]);
  await t.rejects(gateway.webhooks.redelivery.resend(id, url.id), { code: 'event-filtered' });
});

t.test('db check accepts a cursor that skipped events because of a filter', async (t) => {
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder);
  await gateway.accounts.addMerchant(MERCHANT);
  const receiver = await testReceiver(t);
  const { url } = await gateway.accounts.addWebhookUrl({ url: receiver.url, filter: { reasons: ['REASON_THEFT'] } });
  const lock = await connectedLock(t, gateway, MAC);
  for (const sequence of [1, 2, 3]) await lock.send(testBytes(sequence));
  await cursorAtEnd(gateway, url.id);
  await gateway.webhooks.settings.set(url.id, { filter: { reasons: [] } });
  await gateway.close();
  t.strictSame((await checkDatabase(path.join(folder, 'lockgate.sqlite'))).damage, []);
});

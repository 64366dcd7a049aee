/**
 * `GET /v1/stream` and the operators' `GET /stream` of a real gateway over HTTP: the streams (server-sent events) of
 * changes to locks, what they send, to whom, and when they end (interfaces.md §2). Timing and limits are tested exactly
 * in feed.test.ts.
 */
import t from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { MAX_STREAMS_PER_MERCHANT } from '../../../gateway/live/live-feed.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { within } from '../../helpers/clocks/change-signal.js';
import { MERCHANT, testBytes, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { basicAuthorization, callMerchantApi } from '../../helpers/http/merchant-call.js';
import { StreamClient, type StreamEvent } from '../../helpers/http/stream-client.js';
import { connectedLock, type TestLock } from '../../helpers/mqtt/test-lock.js';
import type { Teardown } from '../../helpers/store/temp-folder.js';

const MAC = formatMac(testMac());

/** The last part of the snapshot with which a stream starts. */
const isLastOfSnapshot = ({ name, data }: StreamEvent): boolean => name === 'snapshot' && data.last === true;
/** An event of this name about this lock. Merchants' events have its MAC as `mac_addr`, operators' as `mac`. */
const isAbout =
  (mac: string, name = 'lock') =>
  (event: StreamEvent) =>
    event.name === name && (event.data.mac_addr ?? event.data.mac) === mac;

async function openMerchantStream(
  test: Teardown,
  gateway: Gateway,
  key: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<StreamClient> {
  const sentHeaders = { authorization: basicAuthorization(key), ...headers };
  return await StreamClient.open(test, gateway.httpPort, '/v1/stream', sentHeaders);
}

async function openOperatorStream(test: Teardown, gateway: Gateway, path = '/stream'): Promise<StreamClient> {
  const authorization = `Bearer ${gateway.operatorToken}`;
  return await StreamClient.open(test, gateway.operatorPort, path, { authorization });
}

/** A lock that is connected, and that the gateway's lists show as online. */
async function onlineLock(test: Teardown, gateway: Gateway, mac: Mac): Promise<TestLock> {
  const isListed = waitForEvents(gateway, 'locks-changed', 1);
  const lock = await connectedLock(test, gateway, mac);
  await isListed;
  return lock;
}

t.test('a merchant’s stream follows its locks: pings, names, additions, removals', async (t) => {
  const gateway = await testGateway(t);
  const lock = await onlineLock(t, gateway, testMac());
  await gateway.accounts.addMerchant('Basil');
  const { text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'test');
  const { text: othersKey } = await gateway.merchants.apiKeys.create('Basil', 'test');
  const stream = await openMerchantStream(t, gateway, key);
  const others = await openMerchantStream(t, gateway, othersKey);
  t.match(stream, {
    status: 200,
    headers: { 'content-type': /^text\/event-stream/, 'x-accel-buffering': 'no', 'cache-control': 'no-store' },
  });
  const { data } = await stream.until(isLastOfSnapshot);
  t.match(data, { locks: [{ mac_addr: MAC, battery_percent: null }] });
  await lock.send(testBytes(1));
  const change = await stream.until(isAbout(MAC));
  const listed = await callMerchantApi(gateway, '/v1/locks', { key });
  t.match(change.data, { battery_percent: 81, trouble: 'none' });
  t.same(change.data, (listed.body as { data: unknown[] }).data[0], 'a lock as in the list');

  await callMerchantApi(gateway, `/v1/locks/${MAC}`, { key, method: 'PATCH', body: { name: 'Harbour 7' } });
  await stream.until(({ data: { name } }) => name === 'Harbour 7');
  const added = testMac(2);
  await gateway.accounts.addDevice({ mac: added, merchant: MERCHANT });
  await stream.until(isAbout(formatMac(added)));
  await gateway.accounts.importDevices([{ mac: testMac(3) }], { merchant: MERCHANT });
  await stream.until(isAbout(formatMac(testMac(3))));
  t.equal(others.named('lock').length, 0, 'another merchant sees none of this');

  await gateway.accounts.devices.change(added, { merchant: 'Basil' });
  t.strictSame((await stream.until(isAbout(formatMac(added), 'removed'))).data, { mac_addr: formatMac(added) });
  await others.until(isAbout(formatMac(added)));
  await gateway.accounts.devices.remove(testMac());
  await stream.until(isAbout(MAC, 'removed'));
  t.notMatch(JSON.stringify(others.events), MAC);
});

t.test('a client that reconnects continues its stream; another merchant’s event id is ignored', async (t) => {
  const gateway = await testGateway(t);
  const lock = await onlineLock(t, gateway, testMac());
  await gateway.accounts.addMerchant('Basil');
  const { text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'test');
  const { text: othersKey } = await gateway.merchants.apiKeys.create('Basil', 'test');
  const first = await openMerchantStream(t, gateway, key);
  await first.until(isLastOfSnapshot);
  first.close();
  await lock.send(testBytes(1));
  const headers = { 'last-event-id': first.lastId };
  const second = await openMerchantStream(t, gateway, key, headers);
  const isAny = () => true;
  t.match(await second.until(isAny), { name: 'lock', data: { mac_addr: MAC, battery_percent: 81 } });
  const others = await openMerchantStream(t, gateway, othersKey, headers);
  t.match(await others.until(isAny), { name: 'snapshot', data: { locks: [], last: true } });
});

t.test('a stream ends when its key is revoked or the gateway stops, and streams are limited', async (t) => {
  const gateway = await testGateway(t);
  const { apiKeys } = gateway.merchants;
  const { text: key } = await apiKeys.create(MERCHANT, 'test');
  const { key: lost, text: lostKey } = await apiKeys.create(MERCHANT, 'lost');
  const otherStream = await openMerchantStream(t, gateway, key);
  const endingStream = await openMerchantStream(t, gateway, lostKey);
  await endingStream.until(isLastOfSnapshot);
  for (let count = 2; count < MAX_STREAMS_PER_MERCHANT; count += 1) await openMerchantStream(t, gateway, key);
  t.match(await callMerchantApi(gateway, '/v1/stream', { key }), {
    status: 429,
    headers: { 'retry-after': '1' },
    body: { budget: 'streams' },
  });
  await apiKeys.revoke(lost.publicId);
  await within(5, () => 'the end of the stream of the revoked key', endingStream.ended);
  // While this call is answered, the end of another stream would arrive too.
  t.match(await callMerchantApi(gateway, '/v1/locks', { key }), { status: 200 });
  t.notOk(otherStream.hasEnded, 'another key’s stream stays open');
  await gateway.close();
  await otherStream.ended;
});

t.test('an operator’s stream has all locks with merchants, and the events of “lockgate tail”', async (t) => {
  const gateway = await testGateway(t);
  const lock = await onlineLock(t, gateway, testMac());
  const stream = await openOperatorStream(t, gateway);
  t.match(stream, { status: 200, headers: { 'x-accel-buffering': 'no' } });
  const { data } = await stream.until(isLastOfSnapshot);
  const { body } = await callOperator(gateway, 'GET', '/devices');
  t.same(data.locks, (body as { devices: unknown[] }).devices, 'locks as in the list');
  t.match(data.locks, [{ mac: MAC, merchant: MERCHANT }]);
  await lock.send(testBytes(1));
  t.match((await stream.until(({ data: each }) => each.event === 'ping')).data, {
    mac: MAC,
    ping: { battery_percent: 81 },
  });
  await stream.until(isAbout(MAC));
  const locks = await openOperatorStream(t, gateway, '/stream?only=locks&seconds=0');
  await locks.ended;
  t.strictSame(
    locks.events.map(({ name }) => name),
    ['snapshot'],
  );
  const events = await openOperatorStream(t, gateway, '/stream?only=events');
  await lock.send(testBytes(2));
  await events.until(({ data: each }) => each.event === 'ping');
  t.strictSame(events.named('snapshot'), []);
  t.match(await callOperator(gateway, 'GET', '/stream?only=all'), { status: 400 });
});

t.test('an operator’s stream ends when its token is revoked', async (t) => {
  const gateway = await testGateway(t);
  const { body } = await callOperator(gateway, 'POST', '/tokens', { name: 'map', role: 'read' });
  const authorization = `Bearer ${(body as { token: string }).token}`;
  const stream = await StreamClient.open(t, gateway.operatorPort, '/stream', { authorization });
  await stream.until(isLastOfSnapshot);
  await callOperator(gateway, 'POST', '/tokens/map/revoke', {});
  await stream.ended;
  t.pass('it has ended');
});

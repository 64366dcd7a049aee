/**
 * `GET /events` of the operators' interface, the stream that `lockgate tail` reads, selects events by lock, merchant,
 * kind and reason (interfaces.md §4). A recording, which is a stream too, ends if it can’t start.
 */
import t, { type Test } from 'tap';
import { GatewayClient } from '../../../cli/client.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { MERCHANT, testBytes, testGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { TestLock } from '../../helpers/mqtt/test-lock.js';

type Event = Readonly<Record<string, unknown>>;

/** Starts a stream, and returns a function that reads until an event of this kind comes and returns all events read. */
async function listen(test: Test, gateway: Gateway, query: string) {
  const ending = new AbortController();
  test.teardown(() => ending.abort());
  const address = { gateway: `http://127.0.0.1:${gateway.operatorPort}`, token: gateway.operatorToken };
  const lines = await new GatewayClient(address).listen(`/events${query}`, ending.signal);
  return async (lastKind: string): Promise<readonly Event[]> => {
    const events: Event[] = [];
    do events.push(JSON.parse((await lines.next()).value as string) as Event);
    while (events.at(-1)?.event !== lastKind);
    return events;
  };
}

t.test('events are selected by merchant, lock, kind and reason', async (t) => {
  const gateway = await testGateway(t);
  await gateway.accounts.addMerchant('Basil');
  const readersOfMerchants = await Promise.all(
    [MERCHANT, 'Basil'].map((name) => listen(t, gateway, `?merchant=${name}`)),
  );
  const readOfLock = await listen(t, gateway, `?mac=${testMac(2)}&kind=ping&kind=disconnect`);
  const readByReason = await listen(t, gateway, '?reason=REASON_THEFT&reason=REASON_STATE_PING');
  const readFindings = await listen(t, gateway, '?kind=finding&merchant=Basil');
  for (const [number, merchant] of [
    [1, MERCHANT],
    [2, 'Basil'],
  ] as const) {
    // Locks and URLs that are added while the streams are open are selected too.
    const { secret } = await gateway.accounts.addDevice({ mac: testMac(number), merchant });
    await callOperator(gateway, 'POST', '/webhooks', { url: 'http://127.0.0.1:9/', merchant });
    // A change of the URL is an event.
    await callOperator(gateway, 'POST', `/webhooks/${number}`, { ordered: true });
    const lock = await TestLock.connect(t, gateway.mqttPort, testMac(number), secret);
    await lock.send(testBytes(1));
    await lock.client.endAsync();
  }
  for (const [index, read] of readersOfMerchants.entries()) {
    const events = await read('disconnect');
    const macs = new Set(events.flatMap(({ mac }) => (mac === undefined ? [] : [mac])));
    t.same([...macs], [formatMac(testMac(index + 1))], 'the merchant’s lock only');
    const urls = new Set(events.flatMap(({ url_id: id }) => (id === undefined ? [] : [id])));
    t.same([...urls], [index + 1], 'the merchant’s URL only');
  }
  t.same(
    (await readOfLock('disconnect')).map(({ event, mac }) => [event, mac]),
    ['ping', 'disconnect'].map((event) => [event, formatMac(testMac(2))]),
  );
  t.match(await readByReason('ping'), [{ event: 'ping', ping: { reason: 'REASON_STATE_PING' } }]);
  const [finding] = await readFindings('finding');
  t.match(finding, { event: 'finding', mac: formatMac(testMac(2)), finding: { rule: String } });
});

t.test('a query that no event can match is refused, with what is possible', async (t) => {
  const gateway = await testGateway(t);
  for (const [query, code, detail] of [
    ['?kind=pong', 'input-query', /expected connect, .*ping/],
    ['?reason=REASON_THEFT&kind=presence&kind=command', 'input-query', /no presence or command has one/],
    ['?reason=THEFT', 'input-query', /expected .*REASON_THEFT/],
    ['?mac=A4', 'input-mac', /A4/],
    ['?merchant=Nobody', 'no-such-merchant', /Nobody/],
    ['?since=1h', 'input-query', /there is no "since" here/],
  ] as const)
    t.match(await callOperator(gateway, 'GET', `/events${query}`), { body: { code, detail } }, query);
});

t.test('a recording that can’t start is cut off, and the gateway goes on', async (t) => {
  const gateway = await testGateway(t);
  t.intercept(gateway.store, 'listCredentials', { value: () => Promise.reject(new Error('the store is away')) });
  const address = { gateway: `http://127.0.0.1:${gateway.operatorPort}`, token: gateway.operatorToken };
  const ending = new AbortController();
  t.teardown(() => ending.abort());
  await t.rejects(async () => {
    const lines = await new GatewayClient(address).listen('/trace/live', ending.signal);
    await lines.next();
  });
  t.match(await callOperator(gateway, 'GET', '/healthz'), { body: { status: 'up' } });
});
